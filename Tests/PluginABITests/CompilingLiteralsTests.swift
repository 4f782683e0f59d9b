import Foundation
import Testing

@testable import TestSupport

/// What the compiler accepts and reports for literals of parameters of several types, and for closures of routes.
@Suite struct CompilingLiteralsTests {
    // MARK: Nested lists and maps

    private static let sentence =
        "A nested list or map whose elements are of several types is written as a Value: [\"tags\": [\"red\", .int(n)] as Value]."

    @Test(arguments: [
        "context.perform(\"A\", \"b\", ", "host.perform(\"A\", \"b\", ", "object.perform(\"b\", ", "bound.perform(",
        "service.perform(\"b\", ", "context.open(\"app://a\", ", "host.post(\"a\", ", "context.emit(\"a\", ",
        "await host.call(\"A\", \"b\", ", "await host.open(\"app://a\", ", "await context.post(\"a\", ",
        "await object.call(\"b\", ", "host.performAndWait(\"A\", \"b\", timeout: .seconds(1), ",
    ])
    func `A nested list of several types is a compile error that says how to write it`(call: String) async throws {
        let output = try await Compiler.refusal(
            """
            import PluginABI
            import PluginHost

            func mixed(
                _ host: PluginHost, _ context: HostContext, _ object: Object, _ bound: BoundAction,
                _ service: ServiceHandle, text: String
            ) async throws {
                _ = try \(call.replacingOccurrences(of: ", timeout: .seconds(1)", with: ""))["text": text, "tags": [1, text]]\(call.contains("timeout") ? ", timeout: .seconds(1)" : ""))
            }
            """)
        #expect(output.contains("File0.swift:8:") && output.contains(Self.sentence), "\(output)")
    }

    @Test(arguments: [
        "[\"a\": [1, \"x\"]]", "[\"a\": [\"k\": 1, \"l\": text]]", "[\"a\": []]", "[[1, text], 2]",
        "[\"a\": [text, nil, 5], \"b\": .int(5)]",
    ])
    func `Nested literals of several types get the sentence, whatever is beside them`(literal: String) async throws {
        let output = try await Compiler.refusal(
            """
            import PluginABI

            func mixed(_ context: HostContext, text: String) throws {
                try context.perform("A", "b", \(literal))
            }
            """)
        #expect(output.contains("File0.swift:4:") && output.contains(Self.sentence), "\(output)")
    }

    @Test(arguments: [
        "host.url(for: \"r\", ", "context.url(for: \"r\", ", "await navigator.open(\"app://a\", ",
        "await navigator.open(\"A\", \"b\", ", "await navigator.open(page: page, ",
    ])
    func `A nested list of several types among named values gets the sentence, too`(call: String) async throws {
        func source(_ literal: String) -> String {
            """
            import PluginABI
            import PluginHost

            func mixed(
                _ host: PluginHost, _ context: HostContext, _ navigator: Navigator, _ page: Object, text: String, n: Int,
                map: [String: Value]
            ) async throws {
                _ = try \(call)\(literal))
            }
            """
        }
        let output = try await Compiler.refusal(source("[\"text\": text, \"tags\": [1, text], \"n\": .int(n)]"))
        #expect(output.contains("File0.swift:8:") && output.contains(Self.sentence), "\(output)")
        let other = try await Compiler.refusal(source("[1, text]"))
        #expect(!other.contains(Self.sentence), "\(other)")
        let entries = (0..<5).flatMap { ["\"k\($0)\": n * \($0) + 1", "\"t\($0)\": text + \"x\""] }
        try await Compiler.check(
            source("[\(entries.joined(separator: ", "))]"), ["-Xfrontend", "-solver-scope-threshold=20000"])
        try await Compiler.check(source("[\"a\": text, \"n\": n, \"tags\": [\"red\", .int(n)] as Value, \"m\": nil]"))
        try await Compiler.check(source("map"))
    }

    @Test func `Literals that can be passed compile, and other mistakes keep their messages`() async throws {
        try await Compiler.check(
            """
            import PluginABI

            func valid(_ context: HostContext, text: String, map: [String: Value], numbers: [Int]) throws {
                try context.perform("A", "b", ["a": [1, 2], "b": [text], "c": [text: 1], "d": [["x"], ["y"]], "e": [1, 2.5]])
                try context.perform("A", "b", ["a": ["x", 1] as Value, "b": map, "c": map["x"], "d": map["y"] ?? .null])
                try context.perform("A", "b", ["a": numbers.map { "\\($0)" }, "b": text.isEmpty ? .null : .int(1)])
                try context.perform("A", "b", [1, "x", nil, text])
                try context.perform("A", "b", [:])
                try context.perform("A", "b", [])
            }
            """)
        for (argument, message) in [
            ("map", "cannot convert value of type '[String : Value]' to expected argument type 'Parameters'"),
            ("5", "cannot convert value of type 'Int' to expected argument type 'Parameters'"),
            ("[\"a\": .strong(text)]", "has no member 'strong'"),
        ] {
            let output = try await Compiler.refusal(
                """
                import PluginABI

                func wrong(_ context: HostContext, text: String, map: [String: Value]) throws {
                    try context.perform("A", "b", \(argument))
                }
                """)
            #expect(output.contains(message) && !output.contains(Self.sentence), "\(output)")
        }
    }

    // MARK: Closures of routes

    @Test func `Closures of routes return any type that an action can return, and compile quickly`() async throws {
        try await Compiler.check(
            """
            import PluginABI
            import PluginHost

            struct Detail: ValueCodable { var title: String }
            func later() async throws -> String { "x" }
            func work() async throws {}
            let ready: @Sendable ([String: Value]) throws -> Void = { _ in }

            func routes(_ host: PluginHost, text: String, n: Int, map: [String: Value]) throws {
                try host.addRoute("a") { p in text }
                try host.addRoute("a") { p in p["id"]?.string }
                try host.addRoute("a") { p in n + (p["x"]?.int ?? 0) * 2 - (p["y"]?.int ?? 3) + text.count }
                try host.addRoute("a") { p in Detail(title: text) }
                try host.addRoute("a") { p in p["id"] ?? .null }
                try host.addRoute("a") { p in .string(text) }
                try host.addRoute("a") { p in .string("\\(p["key"]?.string ?? "") \\(n)" + text) }
                try host.addRoute("a") { p in ["x": .string(text), "y": 5] }
                try host.addRoute("a") { p in if n > 1 { text } else { "x" } }
                try host.addRoute("a") { p in try await later() }
                try host.addRoute("a") { p in .string(try await later()) }
                try host.addRoute("a") { p in try await work() }
                try host.addRoute("a") { p in print(p) }
                try host.addRoute("a") { _ in }
                try host.addRoute("a") { p in throw CancellationError() }
                try host.addRoute("a") { p in fatalError() }
                try host.addRoute("a") { p in
                    guard let id = p["id"]?.int else { return }
                    print(id)
                }
                try host.addRoute("a") { p in
                    print(p)
                    return text
                }
                try host.addRoute("a", ready)
                try host.addRoute("a", defaults: ["a": text, "n": n * 2 + 1, "m": nil]) { p in text + "x" }
                try host.addRoute("a", defaults: ["a": .int(1)]) { p in
                    print(p)
                    print(text)
                }
                try host.addRoute("a", defaults: map) { p in .string(text) }
                try host.addRoute("a", defaults: map) { p in print(text) }
                try host.addRoute("a", defaults: map) { p in throw CancellationError() }
            }
            """, ["-Xfrontend", "-solver-scope-threshold=20000"])
    }

    @Test(arguments: [
        "Date.now", "(1, text)", "Plain(text: text)", "[1, text]",
        "\n        let plain = Plain(text: text)\n        return plain\n    ",
        "\n        await Task.yield()\n        return Plain(text: text)\n    ",
    ])
    func `The compiler refuses a route's closure whose result cannot cross the boundary, and says why`(body: String)
        async throws
    {
        let output = try await Compiler.refusal(
            """
            import Foundation
            import PluginABI
            import PluginHost

            struct Plain { var text: String }
            func routes(_ host: PluginHost, text: String) throws {
                try host.addRoute("a") { p in \(body) }
            }
            """)
        #expect(output.contains("File0.swift:7:"), "\(output)")
        #expect(output.contains("A result of this type cannot be passed on. Make the type ValueCodable"), "\(output)")
    }
}
