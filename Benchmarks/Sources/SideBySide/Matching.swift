import Figures
import PluginABI
import PluginHost
import Work

/// The URLs that take longest, in tables that are as full as registration allows.
struct Matching {
    let effort: Effort

    init(_ effort: Effort) { self.effort = effort }

    func rows() throws -> [Row] {
        try Table.all.flatMap { table in try effort.referenced { [try row(table)] } }
    }

    /// How long the slowest URL takes; the size is the number of routes.
    fileprivate func row(_ table: Table) throws -> Row {
        let host = try PluginHost.bench([])
        defer { host.shutdown() }
        var count = 0
        let most = effort.isCheck ? 100 : 10_000
        while count < most, (try? host.addRoute(table.pattern(count), to: "Nobody/nothing")) != nil { count += 1 }
        guard count > 0 else { throw Failure("No route of “\(table.pattern(0).prefix(60))” is accepted.") }
        var worst = 0.0
        for url in table.urls(16_384) {
            precondition(url.utf8.count <= 16_384)
            var times: [Double] = []
            for _ in 0..<(effort.isCheck ? 1 : effort.repetitions) {
                let start = now()
                keep(host.canOpen(url) ? 1 : 0)
                times.append((now() - start) / 1e6)
            }
            worst = max(worst, times.median)
        }
        var row = Row("slowest URL: \(table.name)", size: count, unit: "ms", ours: worst)
        row.goal = Goal(atMost: 20)
        return row
    }

    fileprivate struct Table: Sendable {
        let name: String
        let pattern: @Sendable (Int) -> String
        /// Makes URLs with this number of bytes.
        let urls: @Sendable (Int) -> [String]

        init(
            _ name: String, _ pattern: @escaping @Sendable (Int) -> String,
            urls: @escaping @Sendable (Int) -> [String]
        ) {
            (self.name, self.pattern, self.urls) = (name, pattern, urls)
        }
    }
}

extension Matching.Table {
    fileprivate static let all: [Self] = [
        Self(
            "/*/zN", { "a://h/*/z\($0)" },
            urls: { size in
                [filled("a://h/", "/z", size), filled("a://h/", "z", size - 4) + "/z99", filled("a://h/", "/", size)]
            }),
        Self(
            "/*N*", { "a://h/*\($0)*" },
            urls: { size in
                [filled("a://h/", "x", size), filled("a://h/", "01", size - 1), filled("a://h/", "%41", size)]
            }),
        // The following expressions begin with a q that the URLs do not contain. An input is read from its end, so each
        // is read to its beginning.
        Self(
            "one word of states: (q[ab]*a[ab]{50})", { "a://h/:x(q\($0)?[ab]*a[ab]{50})" },
            urls: { size in
                [filled("a://h/", "a", size), filled("a://h/", "ab", size)]
            }),
        Self(
            "many words of states: (q[ab]*a[ab]{900})", { "a://h/:x(q\($0)?[ab]*a[ab]{900})" },
            urls: { size in
                [filled("a://h/", "a", size), filled("a://h/", "ab", size)]
            }),
        Self(
            "every state behind every other, one word",
            { "a://h/:x(q\($0)?(?:a?b?c?d?e?f?g?h?i?j?k?l?m?n?)*)" },
            urls: { size in
                [filled("a://h/", "a", size), filled("a://h/", "abcdefghijklmn", size)]
            }),
        Self(
            "every state behind every other, many words",
            { "a://h/:x(q\($0)?(?:\(String(repeating: "a?b?[ab]?", count: 30)))*)" },
            urls: { size in
                [filled("a://h/", "a", size), filled("a://h/", "ab", size)]
            }),
        Self(
            "(q(?:[ab]{0,20}){0,20})*", { "a://h/:x(q\($0)?(?:(?:[ab]{0,20}){0,20})*)" },
            urls: { size in
                [filled("a://h/", "a", size), filled("a://h/", "ab", size)]
            }),
        Self(
            "60 capturing groups", { "a://h/\($0 > 0 ? "l\($0)/" : "")" + (0..<60).map { ":g\($0)([ab]*)" }.joined() },
            urls: { size in
                [filled("a://h/", "a", size), filled("a://h/", "ab", size)]
            }),
        Self(
            "large classes",
            { number in
                let members = (0..<2_000).map { "\\u{\(String(0x100 + 2 * $0 + number % 2, radix: 16))}" }.joined()
                return "a://h/:x(q\(number)?[\(members)]*)"
            },
            urls: { size in
                [filled("a://h/", "\u{500}", size), filled("a://h/", "\u{501}", size)]
            }),
        Self(
            "a tree in which everything is tried",
            { number in
                "a://h" + (0..<13).map { number >> $0 & 1 == 0 ? "/a" : "/:a\($0)" }.joined()
                    + String(repeating: "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", count: 20) + "/b"
            },
            urls: { size in
                let branches = String(repeating: "/a", count: 13)
                let rest = String(repeating: "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", count: 20)
                return ["a://h\(branches)\(rest)/x", filled("a://h\(branches)\(rest)/", "b", size)]
            }),
        Self(
            "hosts: *.N.*", { "a://*.\($0).*/:x" },
            urls: { size in
                [filled("a://", "a.", size - 2) + "/x", filled("a://", "1.2.", size / 2) + filled("/", "x", size / 2)]
            }),
        Self(
            "plain routes", { "a://h/\($0)/:x" },
            urls: { size in
                [
                    filled("a://h/", "/", size), filled("a://h/1/", "%41", size), filled("a://h/1/", "%2F", size),
                    filled("a://h/1/x?", "x=1&", size), filled("a://h/1/x?", "&", size),
                    filled("a://", "\u{130}", size),
                    filled("a://h/", "../", size), filled("a://h/1/x?x=", "+", size),
                ]
            }),
    ]

    /// Returns a text of at most `size` bytes: `start`, then `piece` as often as it fits.
    private static func filled(_ start: String, _ piece: String, _ size: Int) -> String {
        start + String(repeating: piece, count: max(0, (size - start.utf8.count) / piece.utf8.count))
    }
}
