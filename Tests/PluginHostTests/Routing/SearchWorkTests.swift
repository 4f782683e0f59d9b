import Foundation
import PluginABI
import Testing

@testable import PluginHost

/// The work of finding the route of a URL: never more than registration allows.
@Suite struct SearchWorkTests {
    private func entry(_ pattern: String) throws -> RouteEntry {
        try RouteEntry(RoutePattern(pattern), to: "T/a", name: nil, summary: "", defaults: [:], owner: .program)
    }

    /// Adds routes until one is refused, and returns how many were accepted, and the reason for the refusal.
    private func fill(
        _ table: inout RouteTable, upTo most: Int, _ pattern: (Int) -> String
    ) throws -> (Int, RouteTable.Conflict?) {
        for number in 0..<most {
            if let conflict = table.insert(try entry(pattern(number))) { return (number, conflict) }
        }
        return (most, nil)
    }

    private func steps(_ table: RouteTable, _ url: String) throws -> (Int, String?) {
        var steps = 0
        let found = try URLText.read(url) { url in
            table.match(url, counting: &steps)?.entry.takeUnretainedValue().pattern.text
        }
        return (steps, found)
    }

    private static func filled(_ start: String, _ piece: String) -> String {
        start + String(repeating: piece, count: (16_384 - start.utf8.count) / piece.utf8.count)
    }

    /// Texts are read from their end: a “q” at the beginning of a pattern keeps its automaton at work until that point.
    private static let tables: [(pattern: @Sendable (Int) -> String, urls: [String])] = [
        ({ "a://h/*\($0)*" }, [filled("a://h/", "x"), filled("a://h/", "01")]),
        ({ "a://h/:x(q\($0)?[ab]*a[ab]{40})" }, [filled("a://h/", "a")]),
        ({ "a://h/:x(q\($0)?[ab]*a[ab]{600})" }, [filled("a://h/", "a")]),
        ({ "a://h/:x(q\($0)?(?:a?b?c?d?e?f?g?h?)*)!" }, [filled("a://h/", "abh").dropLast() + "!"]),
        ({ "a://*.\($0).*/:x" }, [filled("a://", "a.").dropLast(2) + "/x"]),
    ]

    @Test("no URL takes more steps than registration allows, whatever patterns are accepted", arguments: tables.indices)
    func bounded(index: Int) throws {
        let (pattern, urls) = Self.tables[index]
        let most = 12_000_000
        var table = RouteTable(mostSteps: most)
        let (count, conflict) = try fill(&table, upTo: 200, pattern)
        #expect(count > 0)
        guard case .work(let steps, let other) = conflict else {
            Issue.record("\(count) routes like \(pattern(0)) are accepted")
            return
        }
        #expect(steps > most && other != nil)
        for url in urls {
            let (steps, _) = try self.steps(table, url)
            #expect((most / 20...most).contains(steps), "\(url.prefix(40))")
        }
    }

    @Test("the routes of all methods count together, and finding the methods of a URL takes no more steps")
    func methods() throws {
        let most = 12_000_000
        let methods = [nil] + RouteMethod.allCases
        var table = RouteTable(mostSteps: most)
        var conflict: RouteTable.Conflict?
        for number in 0..<200 where conflict == nil {
            let pattern = try RoutePattern("a://h/*\(number)*").answering(methods[number % methods.count])
            conflict = table.insert(
                try RouteEntry(pattern, to: "T/a", name: nil, summary: "", defaults: [:], owner: .program))
        }
        guard case .work(let steps, _) = conflict else {
            Issue.record("all routes are accepted")
            return
        }
        #expect(steps > most)
        for url in [Self.filled("a://h/", "x"), Self.filled("a://h/", "01")] {
            try URLText.read(url) { url in
                var steps = 0
                _ = table.methods(of: url, besides: nil, counting: &steps) { _ in true }
                #expect((most / 20...most).contains(steps))
                for method in RouteMethod.allCases {
                    var steps = 0
                    _ = table.match(url, method, counting: &steps) { _ in true }
                    #expect(steps <= most, "\(method)")
                }
            }
        }
    }

    @Test("a hundred routes behind a wildcard are found in a fraction of the allowed steps")
    func wildcards() throws {
        var table = RouteTable()
        let (count, _) = try fill(&table, upTo: 100) { "a://h/*/z\($0)" }
        #expect(count == 100)
        let (steps, found) = try steps(table, Self.filled("a://h/", "z/").dropLast(4) + "/z42")
        #expect(found == "a://h/*/z42")
        #expect(steps < SearchWork.most / 4)
    }

    @Test("the steps that a search may take do not grow with routes that no URL reaches together")
    func plainRoutes() throws {
        var table = RouteTable()
        let shapes = [
            "a://h/l%/:x", "a://h/area/:x/l%", "a://h%/x/*", "a://h/m%/*", "a://h/n%/:id(\\d+)", "b%://h/:id(\\d+)/*",
            "a://h/img%-:id.png",
        ]
        for number in 0..<200 {
            for shape in shapes where number < 50 || !shape.contains("img") {
                let pattern = shape.replacingOccurrences(of: "%", with: "\(number)")
                #expect(table.insert(try entry(pattern)) == nil, "\(pattern)")
            }
        }
        #expect(try steps(table, "a://h/n77/4").1 == "a://h/n77/:id(\\d+)")
    }

    @Test("routes whose segments are all tried together are bounded, too")
    func plainTree() throws {
        let most = 12_000_000
        var table = RouteTable(mostSteps: most)
        let (count, conflict) = try fill(&table, upTo: 200) { number in
            "a://h" + (0..<7).map { number >> $0 & 1 == 0 ? "/a" : "/:x\($0)" }.joined()
                + String(repeating: "/a", count: 200) + "/b"
        }
        #expect((10..<100).contains(count) && conflict != nil)
        let (steps, _) = try steps(table, "a://h" + String(repeating: "/a", count: 207) + "/c")
        #expect(steps > most / 2 && steps <= most)
    }

    @Test("an error about work names both patterns, the limit and the remedy; removed routes make room")
    func message() throws {
        let host = PluginHost(.init(folders: []))
        func pattern(_ number: Int) -> String { "a://h/:x(q\(number)?(?:(?:[ab]{0,20}){0,20})*)" }
        var number = 0
        let error = #expect(throws: PluginError.self) {
            while number < 1_000 {
                try host.addRoute(pattern(number), to: "T/a")
                number += 1
            }
        }
        #expect(error?.code == .conflict)
        let words = [
            "“\(pattern(number))” of the program", "\(SearchWork.most)", "among them “a://h/:x", "literal segment",
        ]
        for word in words {
            #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
        }
        let other = pattern(number).replacingOccurrences(of: "//h/", with: "//other/")
        try host.addRoute(other, to: "T/a")
        #expect(throws: PluginError.self) { try host.addRoute(pattern(number), to: "T/a") }
        #expect(throws: PluginError.self) { try host.addRoute("//" + pattern(number).dropFirst(5), to: "T/a") }
        #expect(host.removeRoute(pattern(0)))
        try host.addRoute(pattern(number), to: "T/a")
        try host.updateRoute(pattern(1), to: "T/b")
    }

    @Test("routes that are removed after a literal make room there")
    func removal() throws {
        var table = RouteTable(mostSteps: 12_000_000)
        let (count, _) = try fill(&table, upTo: 200) { "a://h/l/*\($0)*" }
        #expect(table.insert(try entry("a://h/m/x")) == nil)
        #expect(table.insert(try entry("a://h/:x/*y*")) != nil)
        for number in 0..<count {
            table.remove(try #require(table.entry(like: RoutePattern("a://h/l/*\(number)*"))))
        }
        #expect(table.count == 1)
        #expect(table.insert(try entry("a://h/:x/*y*")) == nil)
    }

    // MARK: Patterns

    @Test(
        "patterns that are deeply nested or long are read or refused in linear time",
        arguments: [10_000, 1_000_000])
    func depth(count: Int) {
        for (open, close) in [("(", ")"), ("(?:", ")"), ("[", "]")] {
            let nested = String(repeating: open, count: count / open.count)
            let closed = "a" + String(repeating: close, count: count / open.count)
            for text in [nested, nested + closed, "(\(nested)\(closed))"] {
                let error = #expect(throws: PluginError.self) { try RoutePattern("///:x" + text) }
                #expect(error?.code == .invalidPattern)
            }
        }
    }

    @Test("repetitions in a pattern are read or refused in linear time")
    func repeated() {
        for text in ["a|", "a*", ":a", "/:a", "(a)", "%41", "{a}?", "{/:", "[a&&", "\\", "(?:a|", "{", "\\("] {
            let long = String(repeating: text, count: 50_000 / text.count)
            for text in [long, "(\(long))", "([\(long)])"] { _ = try? RoutePattern("///" + text) }
        }
    }

    @Test("a pattern of more than a mebibyte is refused")
    func longPatterns() {
        for text in ["a", "*"] {
            let error = #expect(throws: PluginError.self) {
                try RoutePattern("a://h/" + String(repeating: text, count: 1 << 20))
            }
            #expect(error?.code == .invalidPattern && error?.message.contains("1048576") == true)
        }
    }

    @Test("a class of 64,000 members is read, inverted and searched in much less than quadratic time")
    func classes() throws {
        let members = (0..<64_000).map { "\\u{\(String(0x400 + 2 * $0, radix: 16))}" }
        let nested = members.map { "[\($0)]" }.joined()
        for text in ["[\(members.joined())]", "[\(members.reversed().joined())]", "[\(nested)]"] {
            let pattern = try PathPattern("/:x(\(text))")
            #expect(pattern.match([0x2F, 0x400 + 2 * 63_999]) != nil)
            #expect(pattern.match([0x2F, 0x401 + 2 * 31_999]) == nil)
            let inverted = try PathPattern("/:x([^\(text)]{1,9})")
            #expect(inverted.match([0x2F, 0x400 + 2 * 31_999]) == nil)
            #expect(inverted.match([0x2F, 0x401 + 2 * 31_999]) != nil)
        }
        let operators = "[\(members[..<30_000].joined())" + String(repeating: "--a", count: 30_000) + "]"
        #expect(throws: PluginError.self) { try PathPattern("/:x(\(operators))") }
        #expect(try PathPattern("/:x([a-z--[aeiou]&&[a-m]])").match([0x2F, 0x62]) != nil)
    }

    // MARK: Overlaps

    @Test("overlaps of large expressions are found, and expressions that differ at their end are distinguished at once")
    func overlaps() throws {
        let large = try (0..<10).map { try RoutePattern("a://h/:a((?:[ab]{0,20}){0,20}c\($0))") }
        let overlaps = Overlaps(large)
        #expect(large.indices.allSatisfy { overlaps.isComplete($0) && overlaps.others(of: $0).isEmpty })
        let same = try (0..<4).map { try RoutePattern("a://h/:a((?:[ab]{0,20}){0,20}c[a\($0)])") }
        let found = Overlaps(same)
        #expect(same.indices.allSatisfy { found.isComplete($0) && found.others(of: $0).count == 3 })
    }

    @Test("the search for overlaps stays within a total bound, and says where it ended")
    func overlapsWithinBudget() throws {
        let patterns = try (0..<40).map { try RoutePattern("a://h/:a([ab]*\($0 % 2 == 0 ? "c" : "d")[ab]{\($0)})") }
        let all = Overlaps(patterns)
        #expect(patterns.indices.allSatisfy(all.isComplete))
        let none = Overlaps(patterns, within: 0)
        #expect(patterns.indices.allSatisfy { !none.isComplete($0) && none.others(of: $0).isEmpty })
        let some = Overlaps(patterns, within: 20_000)
        #expect(!patterns.indices.allSatisfy(some.isComplete))
        // A pattern that need not be compared is complete.
        let other = Overlaps(patterns + [try RoutePattern("a://other/x")], within: 0)
        #expect(other.isComplete(patterns.count))
    }
}
