import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// How patterns match paths, according to the WHATWG URL Pattern standard.
@Suite struct PathPatternTests {
    /// A pattern, a path, and the values of the groups; nil for no match. A group that did not take part is "∅".
    static let cases: [(String, String, [String: String]?)] = [
        ("/foo/bar", "/foo/bar", [:]),
        ("/foo/bar", "/foo/bar/", nil),
        ("/foo/bar", "/foo/ba", nil),
        ("/foo/bar/", "/foo/bar/", [:]),
        ("/foo/:bar", "/foo/bar", ["bar": "bar"]),
        ("/foo/:bar", "/foo/", nil),
        ("/foo/:bar", "/foo", nil),
        ("/foo/:bar", "/foo/bar/baz", nil),
        ("/foo/:bar?", "/foo", ["bar": "∅"]),
        ("/foo/:bar?", "/foo/x", ["bar": "x"]),
        ("/foo/:bar?", "/foo/", nil),
        ("/foo/:bar?", "/foobar", nil),
        ("/foo/:bar+", "/foo/a/b/c", ["bar": "a/b/c"]),
        ("/foo/:bar+", "/foo", nil),
        ("/foo/:bar+", "/foo/", nil),
        ("/foo/:bar*", "/foo", ["bar": "∅"]),
        ("/foo/:bar*", "/foo/a/b", ["bar": "a/b"]),
        ("/foo/*", "/foo/", ["0": ""]),
        ("/foo/*", "/foo/a/b", ["0": "a/b"]),
        ("/foo/*", "/foo", nil),
        ("/foo/*?", "/foo", ["0": "∅"]),
        ("/foo/*?", "/foo/bar", ["0": "bar"]),
        ("/foo*", "/foobar/baz", ["0": "bar/baz"]),
        ("/foo/**", "/foo", ["0": "∅"]),
        ("/foo/**", "/foo/a/b", ["0": "a/b"]),
        ("/foo/(.*)", "/foo/", ["0": ""]),
        ("/foo/(.*)", "/foo/a/b", ["0": "a/b"]),
        ("/foo/:bar(.*)", "/foo/a/b", ["bar": "a/b"]),
        ("/foo/:bar(.*)", "/foo/", ["bar": ""]),
        ("/foo/:id(\\d+)", "/foo/123", ["id": "123"]),
        ("/foo/:id(\\d+)", "/foo/12a", nil),
        ("/foo/(\\d+)/(\\w+)", "/foo/1/ab", ["0": "1", "1": "ab"]),
        ("/foo/([^\\/]+?)", "/foo/bar", ["0": "bar"]),
        ("/foo/(bar)?", "/foo", ["0": "∅"]),
        ("/foo/(bar)?", "/foo/bar", ["0": "bar"]),
        ("/foo/(bar)+", "/foo/bar/bar", ["0": "bar/bar"]),
        ("/foo/(bar)*", "/foo", ["0": "∅"]),
        ("/foo{/bar}", "/foo/bar", [:]),
        ("/foo{/bar}?", "/foo", [:]),
        ("/foo{/bar}?", "/foo/bar", [:]),
        ("/foo{/bar}?", "/foo/bar/bar", nil),
        ("/foo{/bar}+", "/foo/bar/bar", [:]),
        ("/foo{/bar}*", "/foo", [:]),
        ("/foo{/:bar}?", "/foo/x", ["bar": "x"]),
        ("/foo/{:bar}?", "/foo/", ["bar": "∅"]),
        ("/foo/{:bar}?", "/foo", nil),
        ("/a/{b-:name}+", "/a/b-xb-y", ["name": "xb-y"]),
        ("/img-:id.png", "/img-7.png", ["id": "7"]),
        ("/img-:id.png", "/img-.png", nil),
        ("/:a-:b", "/x-y-z", ["a": "x", "b": "y-z"]),
        ("/:a:b", "/xyz", ["a": "x", "b": "yz"]),
        ("/:name.:ext?", "/file.txt", ["name": "file", "ext": "txt"]),
        ("/caf\u{E9}", "/caf%C3%A9", [:]),
        ("/caf%C3%A9", "/café", [:]),
        ("/:x", "/a%2Fb", ["x": "a/b"]),
        ("/a/b", "/a%2Fb", nil),
        ("/a%2Fb", "/a%2Fb", [:]),
        ("/a%2Fb", "/a/b", nil),
        ("/:x", "/a%252Fb", ["x": "a%2Fb"]),
        ("/a+b", "/a+b", nil),
        ("/a\\+b", "/a+b", [:]),
        ("/a\\:b", "/a:b", [:]),
        ("/a\\{b\\}", "/a{b}", [:]),
        ("/:\u{1D4D0}", "/x", ["\u{1D4D0}": "x"]),
        ("/:caf\u{E9}", "/x", ["caf\u{E9}": "x"]),
        ("*", "/any/thing", ["0": "/any/thing"]),
        ("", "", [:]),
        ("/([a-c]{2,3}|x)", "/abc", ["0": "abc"]),
        ("/([a-c]{2,3}|x)", "/a", nil),
        ("/([a-c]{2,3}|x)", "/x", ["0": "x"]),
        ("/(?:a|b)", "/a", nil),
    ]

    @Test(
        "a pattern matches paths as the standard says",
        arguments: cases.filter { $0.0 != "/(?:a|b)" && $0.0 != "/a+b" })
    func matches(pattern: String, path: String, expected: [String: String]?) throws {
        let compiled = try PathPattern(pattern)
        let scalars = try PathScalars.decode(path)
        let taken = compiled.match(scalars)?.mapValues { $0 ?? "∅" }
        #expect(taken == expected, "\(pattern) on \(path)")
    }

    @Test(
        "an invalid pattern is refused, with the position",
        arguments: [
            ("/foo/:", 5), ("/foo/(", 5), ("/foo/()", 5), ("/(?=x)", 2), ("/((a))", 2), ("/{a", 1), ("/a}", 2),
            ("/a\\", 2), ("/:a/:a", 4), ("/(a\\1)", 3), ("/(a{2000})", 3), ("/(a++)", 4), ("/?", 1),
            ("/(\\b)", 2), ("/(é)", 2), ("/a+b", 2), ("/(?:a|b)", 2),
        ])
    func refuses(pattern: String, position: Int) {
        let error = #expect(throws: PluginError.self) { try PathPattern(pattern) }
        #expect(error?.code == .invalidPattern)
        #expect(error?.message.contains("position \(position)") == true, "\(error?.message ?? "")")
    }

    @Test(
        "patterns made for exponential backtracking are matched in linear time",
        arguments: [
            "/((?:a+)+b)", "/((?:a|a)*b)", "/((?:a*)*b)", "/((?:a|aa)+b)", "/(a*a*a*a*a*a*b)", "/(.*.*.*=.*)",
            "/:a(a*):b(a*):c(a*)b",
            "/:a(a+)+b", "/*a*a*a*a*b", "/((?:(?:(?:a?){4}){4}){4}b)",
        ])
    func bounded(pattern: String) throws {
        let evil = try PathPattern(pattern)
        for count in [200, 400] {
            for end in ["", "b"] {
                let input = PathScalars.scalars("/" + String(repeating: "a", count: count) + end)
                var steps = 0
                _ = input.withUnsafeBufferPointer { evil.automaton.match($0, counting: &steps) }
                let work = evil.automaton.work
                #expect(steps <= (work.perScalar + work.walk) * (input.count + 1) + SearchWork.most)
                if end.isEmpty { #expect(evil.match(input) == nil) }
            }
        }
    }

    @Test(
        "patterns that would be too large are refused",
        arguments: [
            "/((?:(?:a{1000}){1000}){1000})", "/((?:(?:(?:a?){9}){9}){9}b)",
            "/:x((?:(?:(?:(?:){1000}){1000}){1000}){1000})", "/:x((?:(?:(?:(?:){0,1000}){0,1000}){0,1000}){0,1000})",
            "/:x((?:(?:(?:|){1000}){1000}){1000})",
            "/(a{1000})(b{1000})(c{1000})(d{1000})(e{1000})(f{1000})(g{1000})(h{1000})(i{1000})(j{1000})",
            "/(" + String(repeating: "(?:", count: 100) + "a" + String(repeating: ")", count: 100) + ")",
            "/([" + String(repeating: "[", count: 100) + "a" + String(repeating: "]", count: 100) + "])",
        ])
    func tooLarge(pattern: String) {
        #expect(#expect(throws: PluginError.self) { try PathPattern(pattern) }?.code == .invalidPattern)
    }

    @Test("a pattern has at most 2048 states, and no URL can exceed the allowed work with it")
    func limits() throws {
        _ = try PathPattern("/:x(a{1000}b{1000})")
        for (pattern, words) in [
            ("/:x(a{1000}b{1000}c{100})", "more than \(PositionSets.mostPositions) states"),
            ("/:x((?:a?){1000})", "too many transitions"),
            ("/:x((?:(?:a?b?){10}c){60})", "\(SearchWork.most) are allowed"),
        ] {
            let error = #expect(throws: PluginError.self) { try PathPattern(pattern) }
            #expect(error?.code == .invalidPattern && error?.message.contains(words) == true, "\(error?.message ?? "")")
        }
    }

    @Test("reading a pattern in one pass gives the same result as the parser")
    func plain() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SplitMix(seed: seed)
        let pieces = [
            "/", "/", "/a", "/:n", "/:x", "/:N", "a", "B", "é", ".", "..", "-", "_", "~", "0", "%2F", "%41", ":n", ":8",
            "\\*", "*",
            "?", "{", "(", "+",
        ]
        var count = 0
        for _ in 0..<4_000 {
            let text = (0..<Int.random(in: 0...6, using: &generator))
                .map { _ in pieces.randomElement(using: &generator)! }.joined()
            for delimiter: UnicodeScalar in ["/", "."] {
                guard let plain = PlainPattern(text, delimiter: delimiter) else { continue }
                count += 1
                // With earlier names, a pattern is always parsed.
                let parsed = try PathPattern(text, delimiter: delimiter, earlierNames: ["earlier"])
                #expect(
                    PlainPattern.parts(plain.segments, plain.names) == parsed.parts,
                    "seed \(seed): \(text), \(delimiter)")
                #expect(plain.segments == parsed.segments && parsed.rest == nil, "seed \(seed): \(text), \(delimiter)")
                #expect(plain.names == parsed.names, "seed \(seed): \(text), \(delimiter)")
            }
        }
        #expect(count > 100)
    }

    @Test("a pattern that shares scheme and host with the previous one equals the same pattern read alone")
    func sharing() throws {
        let origins = [
            "app://shop", "app://shop:80", "http://shop:80", "app://shop.", "app://:h", "APP://Shop", "app://", "shop",
            "app://é", "//", "//shop", "",
        ]
        let paths = ["/a/:id", "/a/:h", "", "/", "{/a}?", ":8080/a", "/(", "/:id/:id"]
        let patterns = origins.flatMap { origin in paths.map { origin + $0 } }
        func outcome(_ text: String, after previous: RoutePattern?) -> String {
            do throws(PluginError) {
                let pattern = try RoutePattern(text, scheme: "app", after: previous)
                let path = pattern.path.map { ($0.text, $0.segments) }
                return "\(pattern.shape) \(pattern.names) \(pattern.capturesWholeSegments) \(String(describing: path))"
            } catch { return "\(error)" }
        }
        for previous in patterns {
            guard let previous = try? RoutePattern(previous, scheme: "app") else { continue }
            for text in patterns {
                #expect(outcome(text, after: previous) == outcome(text, after: nil), "\(text) after \(previous.text)")
            }
        }
    }

    @Test("a pattern with thousands of groups works like any other")
    func manyGroups() throws {
        let pattern = try PathPattern(String(repeating: "/x", count: 500) + (0..<1500).map { "/:n\($0)" }.joined())
        let path = String(repeating: "/x", count: 500) + (0..<1500).map { "/\($0)" }.joined()
        #expect(pattern.match(PathScalars.scalars(path))?["n1499"] == "1499")
    }
}

extension PathScalars {
    fileprivate static func scalars(_ text: String) -> [UInt32] { text.unicodeScalars.map(\.value) }
}
