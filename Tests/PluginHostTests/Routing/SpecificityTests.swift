import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Which of several matching routes is found, and where only the text of the patterns decides.
@Suite struct SpecificityTests {
    private static func entry(_ pattern: String, _ method: RouteMethod? = nil) throws -> RouteEntry {
        try RouteEntry(
            RoutePattern(pattern).answering(method), to: "T/a", name: nil, summary: "", defaults: [:], owner: .program)
    }

    private static func table(_ patterns: [String]) throws -> RouteTable {
        var table = RouteTable()
        for pattern in patterns { #expect(table.insert(try entry(pattern)) == nil, "\(pattern)") }
        return table
    }

    private static func winner(_ table: RouteTable, _ url: String) throws -> String? {
        try URLText.read(url) { url in table.match(url)?.entry.takeUnretainedValue().pattern.text }
    }

    /// A URL, and the paths of two patterns that match it, the winner first.
    private static let pathCases: [(url: String, winner: String, loser: String)] = [
        // An optional group does not change the rank of what precedes it.
        ("x/7", "x/:n(\\d+)", "x/:id{/edit}?"),
        ("x/7", "x/:n(\\d+)", "x/:id{/:a}?"),
        ("x/7", "x/:n(\\d+)", "x/:id{/edit}*"),
        ("x/7", "x/:n(\\d+)", "x/:id{/a}?{/b}?"),
        ("x/7", "x/:n(\\d+)", "x/:name{.:kind}?"),
        ("x/7", "x/:n(\\d+)", "x/:name{-x}*"),
        ("x/7", "x/:n(\\d+)", "x/:name{/*}?"),
        ("x/7", "x/:n(\\d+)", "x/:name/*?"),
        ("x/7", "x/7{/edit}?", "x/:n"),
        ("x/7", "x/7{/edit}?", "x/:n(\\d+)"),
        ("x/7", "x/:n(\\d+){/edit}?", "x/:n"),
        ("x/7/edit", "x/:id{/edit}?", "x/:id/:a"),
        ("x/7/edit", "x/:n(\\d+)/*", "x/:id{/edit}?"),
        // A group that takes part has the rank that it has without the braces.
        ("x/edit", "x{/edit}?", "x/:n"),
        ("x/edit", "x{/edit}?", "x/:n(\\w+)"),
        ("x/edit", "x/:n", "x{/:m}*"),
        ("x/a.b", "x/:name{.:kind}?", "x/:n([a-z.]+)"),
        ("x/7", "x/:n(\\d+)?", "x/:n"),
        ("x/img-7", "x{/img-:id}?", "x/:n"),
        ("x", "x{/a}?", "x*"),
        // A pattern that ends precedes one that could go on, whatever the text of either.
        ("x/7", "x/:z", "x/:a{/edit}?"),
        ("x/7", "x/:z", "x/:a{/:b}?"),
        ("x/7", "x/:z", "x/:a/:b*"),
        ("x/7", "x/:z{/edit}?", "x/:a*"),
        ("x/a-7", "x/a-:z", "x/a-*"),
        // A segment with literals and groups counts as such even if its group can extend beyond it.
        ("x/a.png", "x/*.png", "x/:name"),
        ("x/a.png", "x/*.png", "x/:name(\\w+.png)"),
        ("x/img-7", "x{/img-*}", "x/:name"),
        ("x/img-7", "x{/img-:a}+", "x/:name"),
        ("x/img-7/img-8", "x{/img-:a}+", "x/:a/:b"),
        ("x/a/end", "x/:a/:b", "x/*/end"),
        ("x/a/b", "x{/a/*}", "x/:a/b"),
        ("x/a/b/c", "x{/a/:y/c}", "x/:a/b/c"),
        // After segments of the same rank, the next segment decides.
        ("x/a-1/b", "x/a-:z/b", "x/:a-1/:b"),
        ("x/a-1/b", "x/:z-1/b", "x/a-:a/:b"),
        ("x/a-1/b", "x/:z-1/b", "x/a-*"),
        ("x/7/b", "x/:z(\\d+)/b", "x/:a([0-9])/:b"),
        ("x/7/b/c", "x/:z(\\d+)/:b/c", "x/:a([0-9])/:b/*"),
        ("x/7/b/c", "x/:z(\\d+)/:b/:c", "x/:a([0-9])/:b/:c+"),
        // After a part that matches any number of segments, the rest decides; a pattern that ends with it comes last.
        ("x/a/y", "x/*/y", "x/*"), ("x/a/c", "x/:b+/c", "x/:a+"), ("x/a/c", "x/*/c", "x/*/:a"),
        ("x/a/c", "x/*/:z", "x/*/:a+"), ("x/a/c/d", "x/*/c/*", "x/*"), ("x/img-1.png", "x/img-*.png", "x/img-*"),
        ("x/a/b/c", "x/*/b/c", "x/*/*/c"), ("x/a/b/c", "x/*/*/c", "x/*/*"), ("x/a/b/c", "x/*/b/c", "x/*/c"),
    ]

    @Test("Of two paths that match, the more specific one is found, in any order", arguments: pathCases)
    func paths(url: String, winner: String, loser: String) throws {
        for patterns in [["h://\(winner)", "h://\(loser)"], ["h://\(loser)", "h://\(winner)"]] {
            #expect(try Self.winner(Self.table(patterns), "h://\(url)") == "h://\(winner)")
        }
        for pattern in [winner, loser] {
            #expect(try Self.winner(Self.table(["h://\(pattern)"]), "h://\(url)") == "h://\(pattern)")
        }
        let overlaps = try Overlaps([RoutePattern("h://\(winner)"), RoutePattern("h://\(loser)")])
        #expect(overlaps.others(of: 0).isEmpty && overlaps.isComplete(0))
    }

    /// A host, and two patterns of hosts that match it, the winner first.
    private static let hostCases: [(host: String, winner: String, loser: String)] = [
        ("a.test", "a.test", ":a.test"), ("7.test", ":z(\\d+).test", ":a.test"),
        ("7.test", ":z.test", "*.test"), ("7.test", ":z.test", "*"), ("a-7.test", "a-:z.test", ":a(.+).test"),
        ("a-7.test", "a-:z.test", ":a([a-z]-\\d).test"), ("a.b.test", "a.:z.test", ":a.b.test"),
        ("a.b.test", ":z.b.test", ":a.:b.test"), ("a.b.test", ":z.:b.test", "*.b.test"),
        ("a.test", ":z(a).test", "{:sub.}?test"), ("test", "{:sub.}?test", ":a"), ("a.test", "a{.test}?", ":a.test"),
        ("a.test", ":z.test", "{:sub.}?test"), ("a.test", "*.test", "*"), ("a.b.test", "*.b.test", "*.test"),
    ]

    @Test("Hosts are ranked as paths are, label by label", arguments: hostCases)
    func hosts(host: String, winner: String, loser: String) throws {
        for patterns in [["h://\(winner)/p", "h://\(loser)/p"], ["h://\(loser)/p", "h://\(winner)/p"]] {
            #expect(try Self.winner(Self.table(patterns), "h://\(host)/p") == "h://\(winner)/p")
        }
        #expect(try Self.winner(Self.table(["h://\(loser)/p"]), "h://\(host)/p") == "h://\(loser)/p")
        // The host decides before the path does; if the better host leads nowhere, the other route is found.
        #expect(
            try Self.winner(Self.table(["h://\(winner)/*", "h://\(loser)/p"]), "h://\(host)/p") == "h://\(winner)/*")
        #expect(
            try Self.winner(Self.table(["h://\(winner)/q", "h://\(loser)/p"]), "h://\(host)/p") == "h://\(loser)/p")
        let overlaps = try Overlaps([RoutePattern("h://\(winner)/p"), RoutePattern("h://\(loser)/p")])
        #expect(overlaps.others(of: 0).isEmpty)
    }

    @Test func `Behind hosts of the same rank, the path decides, then the text`() throws {
        let table = try Self.table([
            "h://:b.a/:x", "h://:z(\\w).a/x", "h://:a([a-z]).a/:x", "h://:c([a-c]).a/:x", "h://:d([a-c]).a/*",
        ])
        #expect(try Self.winner(table, "h://a.a/x") == "h://:z(\\w).a/x")
        #expect(try Self.winner(table, "h://a.a/y") == "h://:a([a-z]).a/:x")
        #expect(try Self.winner(table, "h://7.a/y") == "h://:b.a/:x")
        #expect(try Self.winner(table, "h://a.a/y/z") == "h://:d([a-c]).a/*")
    }

    /// Pairs of patterns that match one URL and are equally specific.
    @Test(arguments: [
        ("h://x/img-:id.png", "h://x/:a-:b.png"), ("h://x/a-:id", "h://x/:b-c"),
        ("h://x/:n(\\d+)", "h://x/:m(\\d\\d)"), ("h://x/a-*", "h://x/:b-*"),
        ("h://x/a-:b/*", "h://x/a-*"), ("h://x{/a}?", "h://x{/b}?"), ("h://x/*/a/*", "h://x/*/b/*"),
        ("h://:a(\\d+)/x", "h://:b(\\d)/x"), ("h://a-:b/x", "h://:c-d/x"),
        ("h://{:a.}?test/x", "h://{:b.}?{:c.}?test/x"), ("//:a(\\d)/x", "//:b([0-9])/x"),
        ("h://:a(\\d)/:x", "h://:b([0-9])/:y"), ("h:///:a(\\d)", "h:///:b([0-9])"),
        ("h://x/:a-1/:b(\\d)", "h://x/a-:b/:c(\\d)"),
    ])
    func `Where only the text decides, routes show it`(one: String, other: String) throws {
        let overlaps = try Overlaps([RoutePattern(one), RoutePattern(other)])
        #expect(overlaps.others(of: 0) == [1] && overlaps.others(of: 1) == [0])
    }

    @Test(arguments: [
        ("h://x/a-:id", "h://x/b-:id"), ("h://x{/a}?", "h://y{/b}?"), ("h://:a.test/x", "h://:b.other/x"),
        ("h://:a(\\d)/x", "h://:b([a-z])/x"), ("h://:a(\\d)/x", "g://:b(\\d)/x"), ("h://:a(\\d)/x", "h://:b(\\d)/y"),
        ("//:a(\\d)/x", "h://:b(\\d)/x"), ("h://x/:a(\\d)", "h:///:b(\\d)"), ("h://x/a-:b/c", "h://x/:a-b/d"),
        ("h://x/:a(\\d)/b", "h://x/:a([0-9])/:b"),
    ])
    func `Where no URL matches both, or a rule decides, nothing is shown`(one: String, other: String) throws {
        let overlaps = try Overlaps([RoutePattern(one), RoutePattern(other)])
        #expect(overlaps.others(of: 0).isEmpty && overlaps.isComplete(0))
    }

    @Test func `A pattern with optional groups is one route`() throws {
        let pattern = "h://x/:a{/b}?{/c-:d}?{.:e}?/*?"
        var table = try Self.table([pattern, "h://x/:z", "h://x/:z/*"])
        #expect(table.count == 3 && table.all.count == 3)
        let entry = try #require(table.entry(like: RoutePattern("h://x/:q{/b}?{/c-:r}?{.:s}?/*?")))
        #expect(entry.pattern.text == pattern)
        #expect(table.insert(try Self.entry("h://x/:q{/b}?{/c-:r}?{.:s}?/*?"))?.other === entry)
        #expect(table.count == 3)
        #expect(try Self.winner(table, "h://x/1/b/c-2.3/4") == pattern)
        table.remove(entry)
        #expect(table.all.map(\.pattern.text).sorted() == ["h://x/:z", "h://x/:z/*"])
        #expect(try Self.winner(table, "h://x/1/b/c-2.3/4") == "h://x/:z/*")
        #expect(table.insert(entry) == nil && table.entry(like: entry.pattern) === entry)
    }

    // MARK: Against all patterns, one by one

    /// A route that matches a URL, and its criteria of comparison with other routes.
    private struct Candidate {
        let pattern: String
        let rank: [[UInt8]]
        let texts: [String]
    }

    private static func candidates(_ entries: [RouteEntry], _ text: String) throws -> [Candidate] {
        try URLText.read(text) { url in
            let (path, host) = (PathScalars.scalars(url.path), url.host.map(PathScalars.scalars) ?? [])
            var candidates: [Candidate] = []
            for entry in entries {
                let pattern = entry.pattern
                guard let own = pattern.path, pattern.scheme == nil || pattern.scheme == url.scheme?.string else {
                    continue
                }
                var hosts: [[UInt8]] = []
                if let written = pattern.host {
                    if written.isLiteral {
                        if written.match(host) != nil { hosts = [[0]] }
                    } else {
                        hosts = written.variantNumbers.filter { written.automaton(ofVariant: $0).match(host) != nil }
                            .map { [1] + written.specificity(ofVariant: $0) }
                    }
                } else {
                    hosts = [[255]]
                }
                for variant in own.variantNumbers where own.automaton(ofVariant: variant).match(path) != nil {
                    for host in hosts {
                        candidates.append(
                            Candidate(
                                pattern: pattern.text,
                                rank: [
                                    [pattern.scheme == nil ? 1 : 0], host, own.specificity(ofVariant: variant),
                                    [pattern.method == nil ? 1 : 0],
                                ],
                                texts: [pattern.host?.text ?? "", own.text]))
                    }
                }
            }
            return candidates.sorted { left, right in
                for (mine, others) in zip(left.rank, right.rank) where mine != others {
                    return mine.lexicographicallyPrecedes(others)
                }
                return left.texts.lexicographicallyPrecedes(right.texts)
            }
        }
    }

    private static func pattern(_ generator: inout SplitMix) -> String {
        let hosts = [
            "t://h", "t://h", "t://h", "t://:s.h", "t://{:s.}?h", "t://*.h", "t://:s(a|bb).h", "t://a:s.h", "t://*",
            "//h",
            "t://", "t://:s([ab]).{:r.}?h", "//:s.h",
        ]
        let count = Int.random(in: 1...3, using: &generator)
        return hosts.randomElement(using: &generator)!
            + (0..<count).map { index in
                [
                    "/a", "/b", "/:n\(index)", "/:n\(index)(a|bb)", "/:n\(index)([ab]+)", "/a:n\(index)",
                    "/:n\(index)b",
                    "/:n\(index)?", "{/b}?", "/*", "/:n\(index)+", "/:n\(index)*", "/a*", "/*b", "/:n\(index){b}?",
                    "{/:n\(index)}*", "{/a:n\(index)}?", "{/a}+", "{/a}*", "/:n\(index)(a)?", "/*?", "/",
                    "{/a/:n\(index)}",
                    "{/a:n\(index)}+", "/:n\(index)(a.*)", "{a}?", "{*}?",
                ].randomElement(using: &generator)!
            }.joined()
    }

    @Test func `A table finds what a comparison of all patterns finds, and equally specific ones are shown`() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SplitMix(seed: seed)
        for _ in 0..<60 {
            var (table, entries) = (RouteTable(), [RouteEntry]())
            for _ in 0..<20 {
                let method: RouteMethod? = Int.random(in: 0..<4, using: &generator) == 0 ? .get : nil
                guard let entry = try? Self.entry(Self.pattern(&generator), method) else { continue }
                if table.insert(entry) == nil { entries.append(entry) }
            }
            for _ in 0..<5 {
                guard let leaving = entries.indices.randomElement(using: &generator) else { break }
                table.remove(entries.remove(at: leaving))
            }
            #expect(Set(table.all.map(\.pattern.text)) == Set(entries.map(\.pattern.text)), "seed \(seed)")
            #expect(table.all.count == entries.count && table.count == entries.count, "seed \(seed)")
            let overlaps = Overlaps(entries.map(\.pattern), within: .max)
            let numbers = Dictionary(uniqueKeysWithValues: entries.enumerated().map { ($1.pattern.text, $0) })
            for _ in 0..<60 {
                let url =
                    ["t://h", "t://a.h", "t://bb.h", "t://b.a.h", "u://h"].randomElement(using: &generator)!
                    + (0..<Int.random(in: 0...4, using: &generator)).map { _ in
                        "/" + ["a", "b", "bb", "ab", "aa", "c", ""].randomElement(using: &generator)!
                    }.joined()
                let candidates = try Self.candidates(entries, url)
                let patterns = entries.map(\.pattern.text)
                let found = try Self.winner(table, url)
                #expect(found == candidates.first?.pattern, "seed \(seed): \(url) in \(patterns)")
                guard let first = candidates.first else { continue }
                for other in candidates where other.rank == first.rank && other.pattern != first.pattern {
                    let others = overlaps.others(of: numbers[first.pattern]!)
                    #expect(
                        others.contains(numbers[other.pattern]!),
                        "seed \(seed): \(first.pattern) and \(other.pattern) on \(url)")
                }
            }
        }
    }
}
