import PluginABI
import Testing

@testable import PluginHost

/// Routes whose host is `*`, which are found without an automaton if no other pattern of a host is in the way.
@Suite struct EveryHostTests {
    private func table(_ patterns: [String]) throws -> RouteTable {
        var table = RouteTable()
        for pattern in patterns {
            let entry = try RouteEntry(
                RoutePattern(pattern), to: "T/a", name: nil, summary: "", defaults: [:], owner: .program)
            #expect(table.insert(entry) == nil, "\(pattern)")
        }
        return table
    }

    private func found(_ table: RouteTable, _ url: String) throws -> (pattern: String, values: [String: String?])? {
        try URLText.read(url) { url in
            guard let match = table.match(url) else { return nil }
            let entry = match.entry.takeUnretainedValue()
            let texts = (match.groups ?? entry.taken(url)).map { $0?.string }
            return (
                entry.pattern.text,
                Dictionary(uniqueKeysWithValues: zip(entry.destination.groups.map(\.name.text), texts))
            )
        }
    }

    private let patterns = [
        "https://*/shop/:id", "https://*/shop/:id/*", "https://*/plain", "https://*/img-:n.png", "https://*/",
        "https://own.example/shop/:id", "https:///shop/none",
    ]

    @Test func `a host is captured as by an automaton`() throws {
        let alone = try table(patterns)
        // With a second pattern of a host, both are matched.
        let others = try table(patterns + ["https://*.never.example/never"])
        let paths = ["/shop/7", "/shop/a%2Fb", "/shop/7/x/y", "/plain", "/img-3.png", "/", "/absent", "/shop/none"]
        for host in ["a", "OWN.example", "own.example", "127.0.0.1", "[::1]", "bücher.example", "a%2Fb", "x%20y", ""] {
            for path in paths {
                let url = "https://\(host)\(path)"
                let (one, other) = (try found(alone, url), try found(others, url))
                #expect(one?.pattern == other?.pattern && one?.values == other?.values, "\(url)")
                guard let one else { continue }
                let pattern = try RoutePattern(one.pattern)
                #expect(try URLText.read(url) { pattern.match($0) } == one.values, "\(url)")
            }
        }
        #expect(try found(alone, "https://a.b/shop/7")?.values == ["0": "a.b", "id": "7"])
    }

    @Test func `the steps do not depend on the length of the host`() throws {
        let table = try table(patterns)
        func steps(_ url: String) throws -> Int {
            var steps = 0
            try URLText.read(url) { url in _ = table.match(url, counting: &steps) }
            return steps
        }
        #expect(try steps("https://a/plain") == steps("https://\(String(repeating: "a.", count: 100))a/plain"))
    }
}
