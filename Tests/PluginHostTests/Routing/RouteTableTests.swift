import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

@Suite struct RouteTableTests {
    private func entry(_ pattern: String) throws -> RouteEntry {
        try RouteEntry(
            RoutePattern(pattern), to: "T/a", name: nil, summary: "", defaults: [:], owner: .program)
    }

    private func table(_ patterns: [String]) throws -> RouteTable {
        var table = RouteTable()
        for pattern in patterns { #expect(table.insert(try entry(pattern)) == nil, "\(pattern)") }
        return table
    }

    private func winner(_ patterns: [String], _ url: String) throws -> String? {
        let table = try table(patterns)
        return try URLText.read(url) { url in
            (table.match(url) ?? table.fallback(url))?.entry.takeUnretainedValue().pattern.text
        }
    }

    @Test("a route leads to target/action, and has a port or none")
    func written() throws {
        for action in ["T", "T/", "/a", "/T/a", "T/a/b", ""] {
            let error = #expect(throws: PluginError.self) {
                try RouteEntry(
                    RoutePattern("app:///x"), to: action, name: nil, summary: "", defaults: [:], owner: .program)
            }
            #expect(error?.code == .unknownAction, "\(action)")
        }
        #expect(throws: PluginError.self) { try RoutePattern("app://host:\u{301}80/x") }
        #expect(try RoutePattern("http://host:80/x").host?.text == "host")
        #expect(try RoutePattern("K://x".lowercased()).scheme == "k")
        #expect(throws: PluginError.self) { try RoutePattern("\u{212A}://x") }
    }

    @Test("routes share their destination if and only if it is the same")
    func sharedDestinations() throws {
        let routes = [
            ("app://a/x/:id", "T/a"), ("app://a/y/:id", "T/a"), ("app://a/z/:other", "T/a"),
            ("app://a/:other/z", "T/a"),
            ("app://a/w/:other", "T/b"), ("app://a/v/:other", "U/b"), ("app://a/v", "U/b"), ("app://a/u", "U/b"),
            ("app://a/u/w", "U/b"), ("app://a/u/d", "U/b"), ("app://a/u/e", "U/b"), ("app://a/u/*", "U/b"),
            ("app://a/t/:id/:other", "U/b"), ("app://a/s/:other/:id", "U/b"), ("app://a/r-:id/:other", "U/b"),
            ("app://:id.a/t/:other", "U/b"), ("app://a/q/:id/:other", "U/b"),
        ]
        func entry(_ pattern: String, _ action: String, after previous: RouteEntry? = nil) throws -> RouteEntry {
            try RouteEntry(
                RoutePattern(pattern), to: action, name: nil, summary: "",
                defaults: pattern == "app://a/u/d" ? ["n": 1] : [:], owner: .program, after: previous)
        }
        var entries: [RouteEntry] = []
        for (pattern, action) in routes { entries.append(try entry(pattern, action, after: entries.last)) }
        for (made, (pattern, action)) in zip(entries, routes) {
            let alone = try entry(pattern, action)
            #expect("\(made.target)/\(made.action)" == action)
            func said(_ entry: RouteEntry) -> [String] {
                let to = entry.destination
                return to.groups.map { "\($0.name.text) \($0.segment)" }
                    + ["\(to.segmentCount) segments, \(to.capturesWholeSegments), \(to.hasDefaults)"]
            }
            #expect(said(made) == said(alone), "\(pattern)")
        }
        let shared = zip(entries, entries.dropFirst()).filter { $0.destination === $1.destination }
        #expect(shared.map(\.1.pattern.text) == ["app://a/y/:id", "app://a/u", "app://:id.a/t/:other"])
    }

    /// The outcome of a search for a URL in a table.
    private struct Outcome: Equatable {
        var pattern: String
        var values: [String: String?]
    }

    private func outcome(_ table: RouteTable, _ url: String) throws -> Outcome? {
        try URLText.read(url) { url -> Outcome? in
            guard let match = table.match(url) else { return nil }
            let entry = match.entry.takeUnretainedValue()
            let texts = match.groups ?? entry.taken(url)
            let names = entry.destination.groups.map(\.name.text)
            return Outcome(
                pattern: entry.pattern.text,
                values: Dictionary(uniqueKeysWithValues: zip(names, texts.map { $0?.string })))
        }
    }

    private func taken(_ pattern: String, _ url: String) throws -> [String: String?]? {
        let pattern = try RoutePattern(pattern)
        return try URLText.read(url) { pattern.match($0) }
    }

    @Test("paths of the same bytes that are divided differently have different hashes")
    func segmentHash() {
        let paths = [["ab", "c"], ["a", "bc"], ["abc", ""]].map { $0.map { PathSegment.literal(Array($0.utf8)) } }
        #expect(Set(paths.map(\.hashValue)).count == 3)
    }

    @Test("the most specific route wins, segment by segment from the left")
    func specificity() throws {
        let routes = [
            "app://shop/*", "app://shop/:page", "app://shop/:page(\\d+)", "app://shop/img-:id.png", "app://shop/home",
            "app://shop/:a/b", "app://shop/home/*", "app://shop/:rest+", "app://", "///home", "//shop/about",
        ]
        for order in [routes, routes.reversed(), routes.shuffled()] {
            #expect(try winner(order, "app://shop/home") == "app://shop/home")
            #expect(try winner(order, "app://shop/img-3.png") == "app://shop/img-:id.png")
            #expect(try winner(order, "app://shop/42") == "app://shop/:page(\\d+)")
            #expect(try winner(order, "app://shop/forty") == "app://shop/:page")
            #expect(try winner(order, "app://shop/x/b") == "app://shop/:a/b")
            #expect(try winner(order, "app://shop/home/b") == "app://shop/home/*")
            #expect(try winner(order, "app://shop/x/c/d") == "app://shop/:rest+")
            #expect(try winner(order, "app://shop/") == "app://shop/*")
            #expect(try winner(order, "app://other/x") == "app://")
            #expect(try winner(order, "web://any/home") == "///home")
            #expect(try winner(order, "app://any/home") == "///home")
            #expect(try winner(order, "web://shop/about") == "//shop/about")
            #expect(try winner(order, "web://shop/nothing") == nil)
        }
    }

    @Test("after a dead end, the search continues with the next best branch")
    func backtracking() throws {
        let routes = ["a://h/x/y/z", "a://h/:a/y/w", "a://h/x/:b/v", "a://h/*"]
        #expect(try winner(routes, "a://h/x/y/w") == "a://h/:a/y/w")
        #expect(try winner(routes, "a://h/x/y/v") == "a://h/x/:b/v")
        #expect(try winner(routes, "a://h/x/y/u") == "a://h/*")
    }

    @Test("a host is compared without case, and never with a segment")
    func hosts() throws {
        let routes = ["app://Shop/detail", "app://*.example.com/x", "app://:sub.test/x"]
        #expect(try winner(routes, "APP://SHOP/detail") == "app://Shop/detail")
        #expect(try winner(routes, "app://shop/Detail") == nil)
        #expect(try winner(routes, "app:///shop/detail") == nil)
        #expect(try winner(routes, "app://a.b.example.com/x") == "app://*.example.com/x")
        #expect(try winner(routes, "app://one.test/x") == "app://:sub.test/x")
        #expect(try winner(["app://localhost:8080/x"], "app://localhost:8080/x") != nil)
    }

    @Test("patterns that differ only in the names of their groups have the same shape")
    func shapes() throws {
        #expect(try RoutePattern("a://h/:x/b").shape == RoutePattern("a://h/:y/b").shape)
        #expect(try RoutePattern("a://h/:x/b").shape != RoutePattern("a://h/:x(\\d+)/b").shape)
    }

    @Test("a route that is refused changes nothing")
    func refused() throws {
        var table = try table(["a://h/:b(x)", "a://h/:aa(x|y)"])
        #expect(table.insert(try entry("a://h/:a(x)"))?.other?.pattern.text == "a://h/:b(x)")
        #expect(try outcome(table, "a://h/x")?.pattern == "a://h/:aa(x|y)")
    }

    @Test("a path has up to 256 segments, and one with more is an error")
    func deepPaths() async throws {
        let path = String(repeating: "/a", count: 254)
        let host = try TestHost([]).host
        try host.addRoute("app://shop\(path)/:id", to: "A/open")
        #expect(host.routes.map(\.pattern) == ["app://shop\(path)/:id"])
        let found = try outcome(try table(["app://shop\(path)/:id"]), "app://shop\(path)/7")
        #expect(found?.values == ["id": "7"])
        for count in [255, 100_000] {
            let error = #expect(throws: PluginError.self) {
                try host.addRoute("app://shop/:id" + String(repeating: "/a", count: count), to: "A/open")
            }
            #expect(error?.code == .invalidPattern && error?.message.contains("256 segments, at position 10") == true)
        }
    }

    /// Makes random patterns from a small alphabet, so that they overlap.
    private struct Maker {
        var generator: SplitMix

        mutating func pattern() -> String {
            let count = Int.random(in: 1...3, using: &generator)
            var path = ""
            for index in 0..<count {
                let choices = [
                    "/a", "/b", "/:n\(index)", "/:n\(index)(a|bb)", "/a:n\(index)", "/:n\(index)?", "{/b}?", "/*",
                    "/:n\(index)+", "/a*", "/(b+)", "/:n\(index)-:m\(index)", "{/:n\(index)}*", "/{:n\(index)}?",
                    "{/a}+",
                    "/:n\(index)(b*|a)?", "/%2F", "/é", "/\\*", "/([^a]+)", "/(a|b)*", "/*?", "{/x-:n\(index)-y}?", "/",
                ]
                path += choices.randomElement(using: &generator)!
            }
            return "t://h" + path
        }

        mutating func url() -> String {
            let count = Int.random(in: 0...4, using: &generator)
            let pieces = ["a", "b", "bb", "ab", "a-b", "", "%2F", "é", "%C3%A9", "*", "x-1-y", "ba", "."]
            return "t://h" + (0..<count).map { _ in "/" + pieces.randomElement(using: &generator)! }.joined()
        }
    }

    @Test("the order of registration never matters, and a route is found if and only if a pattern matches")
    func order() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var maker = Maker(generator: SplitMix(seed: seed))
        for _ in 0..<20 {
            var shapes: Set<RoutePattern.Shape> = []
            let patterns = try (0..<12).map { _ in maker.pattern() }
                .filter { shapes.insert(try RoutePattern($0).shape).inserted }
            let one = try table(patterns)
            let other = try table(patterns.shuffled(using: &maker.generator))
            for _ in 0..<40 {
                let text = maker.url()
                let found = try outcome(one, text)
                #expect(try found == outcome(other, text), "seed \(seed): \(text) in \(patterns)")
                let matching = try patterns.filter { try taken($0, text) != nil }
                #expect((found == nil) == matching.isEmpty, "seed \(seed): \(text) in \(patterns)")
                if let found {
                    #expect(try taken(found.pattern, text) == found.values, "seed \(seed): \(text) by \(found.pattern)")
                }
            }
        }
    }

    /// A pattern of pieces of different kinds, no two of which are equally specific.
    private static func pattern(_ generator: inout SplitMix) -> String {
        let count = Int.random(in: 0...4, using: &generator)
        return ["t://h", "t://h", "t://:host"].randomElement(using: &generator)!
            + (0..<count).map { index in
                ["/a", "/b", "", "/x:n\(index)", "/:n\(index)(a|bb)", "/:n\(index)", "/:m\(index)"]
                    .randomElement(using: &generator)!
            }.joined() + ["", "", "", "/*", "/:rest+"].randomElement(using: &generator)!
    }

    @Test(
        "a table that changes, and each copy, gives the answers of a search of all its present patterns")
    func changes() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SplitMix(seed: seed)
        func ranks(_ entry: RouteEntry) -> [Int] {
            let (host, path) = (entry.pattern.host, entry.pattern.path)
            let segments = (host?.segments ?? []) + (path?.segments ?? [])
            return segments.map(\.rank.rawValue) + (path?.rest.map { [$0.rawValue] } ?? [])
        }
        /// Finds the most specific of all patterns that match: by host, then segment by segment from the left.
        func search(_ entries: [RouteEntry], _ url: String) throws -> RouteEntry? {
            try entries.filter { try taken($0.pattern.text, url) != nil }
                .min { ranks($0).lexicographicallyPrecedes(ranks($1)) }
        }
        func check(_ table: RouteTable, _ entries: [RouteEntry]) throws {
            #expect(Set(table.all.map(\.pattern.text)) == Set(entries.map(\.pattern.text)), "seed \(seed)")
            #expect(table.count == entries.count, "seed \(seed)")
            for _ in 0..<6 {
                let url =
                    ["t://h", "t://other"].randomElement(using: &generator)!
                    + (0..<Int.random(in: 0...4, using: &generator)).map { _ in
                        "/" + ["a", "b", "bb", "c", "", "x1", "%2F"].randomElement(using: &generator)!
                    }.joined()
                let expected = try search(entries, url)
                let found = try outcome(table, url)
                let values = try expected.flatMap { try taken($0.pattern.text, url) }
                #expect(found?.pattern == expected?.pattern.text, "seed \(seed): \(url)")
                #expect(found?.values == values, "seed \(seed): \(url)")
            }
        }
        for _ in 0..<6 {
            var (table, entries) = (RouteTable(), [RouteEntry]())
            for _ in 0..<40 {
                let before = (table, entries)
                let entry = try entry(Self.pattern(&generator))
                let known = entries.first { $0.pattern.shape == entry.pattern.shape }
                #expect(table.entry(like: entry.pattern) === known, "seed \(seed): \(entry.pattern.text)")
                if Int.random(in: 0..<5, using: &generator) < 3 {
                    #expect((table.insert(entry) == nil) == (known == nil), "seed \(seed): \(entry.pattern.text)")
                    if known == nil { entries.append(entry) }
                } else {
                    // An existing pattern, or one that does not exist, although another pattern of its shape may.
                    let leaving =
                        (Bool.random(using: &generator) ? entries.randomElement(using: &generator) : nil) ?? entry
                    table.remove(leaving)
                    entries.removeAll { $0 === leaving }
                }
                try check(table, entries)
                try check(before.0, before.1)
            }
        }
    }

    @Test("the automaton agrees with a simple backtracking matcher")
    func reference() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var maker = Maker(generator: SplitMix(seed: seed))
        for _ in 0..<600 {
            let text = maker.pattern()
            let pattern = try RoutePattern(text).path!
            for _ in 0..<8 {
                let path = try URLText.read(maker.url()) { PathScalars.scalars($0.path) }
                let expected = Reference.match(pattern.parts, path)
                let taken = pattern.automaton.match(path)
                #expect(taken == expected, "seed \(seed): \(text) on \(PathScalars.text(path))")
            }
        }
    }
}

/// A slow and simple matcher, which tries everything in JavaScript's order of preference.
enum Reference {
    static func match(_ parts: [PatternPart], _ path: [UInt32]) -> [Range<Int>?]? {
        let groups = parts.count { !$0.name.isEmpty }
        return match(parts[...], path, 0, 0, Array(repeating: nil, count: groups)) { end, taken in
            end == path.count ? taken : nil
        }
    }

    typealias Taken = [Range<Int>?]

    private static func match(
        _ parts: ArraySlice<PatternPart>, _ path: [UInt32], _ at: Int, _ group: Int, _ taken: Taken,
        _ done: (Int, Taken) -> Taken?
    ) -> Taken? {
        guard let part = parts.first else { return done(at, taken) }
        let rest = parts.dropFirst()
        let isGroup = !part.name.isEmpty
        let next = group + (isGroup ? 1 : 0)
        let expression: Expression =
            switch part.matcher {
            case .literal(let scalars): .literal(scalars)
            case .anything: .repetition(.scalars(.all), atLeast: 0, atMost: nil, isLazy: false)
            case .segment:
                .repetition(.scalars(ScalarSet.scalar(0x2F).inverted), atLeast: 1, atMost: nil, isLazy: true)
            case .expression(let expression): expression
            }
        if !isGroup {
            return take(.repeated(expression, part.modifier), path, at) { match(rest, path, $0, next, taken, done) }
        }
        if part.isBareRepetition {
            return take(.repeated(expression, part.modifier), path, at) { end in
                var taken = taken
                taken[group] = at..<end
                return match(rest, path, end, next, taken, done)
            }
        }
        let isRepeated = part.modifier == .zeroOrMore || part.modifier == .oneOrMore
        let again = Expression.concatenation([.literal(part.suffix), .literal(part.prefix), expression])
        let value =
            isRepeated
            ? Expression.concatenation([expression, .repetition(again, atLeast: 0, atMost: nil, isLazy: false)])
            : expression
        let found = take(.literal(part.prefix), path, at) { start in
            take(value, path, start) { end in
                take(.literal(part.suffix), path, end) { after in
                    if part.modifier == .optional, after == at { return nil }
                    var taken = taken
                    taken[group] = start..<end
                    return match(rest, path, after, next, taken, done)
                }
            }
        }
        if let found { return found }
        let mayBeMissing = part.modifier == .optional || part.modifier == .zeroOrMore
        return mayBeMissing ? match(rest, path, at, next, taken, done) : nil
    }

    private static func take(
        _ expression: Expression, _ path: [UInt32], _ at: Int, _ done: (Int) -> Taken?
    ) -> Taken? {
        switch expression {
        case .empty: return done(at)
        case .start: return at == 0 ? done(at) : nil
        case .end: return at == path.count ? done(at) : nil
        case .scalars(let set): return at < path.count && set.contains(path[at]) ? done(at + 1) : nil
        case .concatenation(let pieces):
            guard let first = pieces.first else { return done(at) }
            return take(first, path, at) { take(.concatenation(Array(pieces.dropFirst())), path, $0, done) }
        case .alternation(let choices):
            for choice in choices { if let found = take(choice, path, at, done) { return found } }
            return nil
        case .repetition(let repeated, let atLeast, let atMost, let isLazy):
            func more() -> Taken? {
                if atMost == 0 { return nil }
                return take(repeated, path, at) { end in
                    if end == at, atLeast == 0 { return nil }
                    return take(
                        .repetition(
                            repeated, atLeast: max(0, atLeast - 1), atMost: atMost.map { $0 - 1 }, isLazy: isLazy),
                        path, end, done)
                }
            }
            if atLeast > 0 { return more() }
            return isLazy ? done(at) ?? more() : more() ?? done(at)
        }
    }
}
