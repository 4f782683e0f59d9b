import Foundation
import Testing

@testable import TestSupport

/// What the compiler accepts and reports for code as module authors write it.
@Suite struct CompilingTests {
    // MARK: Literals of parameters

    @Test func `Ten entries with expressions compile quickly`() async throws {
        let source = """
            import PluginABI

            func call(_ context: HostContext, text: String, numbers: [Int], name: String?, ratio: Double) async throws {
                try context.perform("B", "slowly", ["text": text])
                try await context.open(
                    "app://B/slowly",
                    [
                        "a": text + "x", "b": numbers.count * 2 + 1, "c": name, "d": nil, "e": ratio / 2 - 1,
                        "f": "\\(text) and \\(numbers.count)", "g": numbers.map { $0 + 1 }, "h": text.isEmpty ? nil : text,
                        "i": .string(text), "j": [1, "x"] as Value,
                    ])
            }
            """
        // The option limits the compiler's own work, which does not depend on the machine.
        try await Compiler.check(source, ["-Xfrontend", "-solver-scope-threshold=2000"])
    }

    @Test func `A value of a type that does not convert is a compile error on its line`() async throws {
        let output = try await Compiler.refusal(
            """
            import Foundation
            import PluginABI

            func call(_ context: HostContext, date: Date) throws {
                try context.perform("A", "b", ["date": date])
            }
            """)
        #expect(output.contains("File0.swift:5:"), "\(output)")
        #expect(output.contains("any ValueConvertible"), "\(output)")
    }

    // MARK: Actions

    @Test(arguments: [
        "a + (b ?? 1) * 2 + (c ?? 3) - (d?.count ?? 0)", "return a + (b ?? 1) * 2 + (c ?? 3) - (d?.count ?? 0)",
        "[\"a\": a + 1, \"b\": b ?? 1, \"c\": c ?? 3 * 2, \"d\": (d ?? \"\").count]",
    ])
    func `An action with six inputs and a body of one line compiles quickly`(body: String) async throws {
        try await Compiler.check(
            """
            import PluginABI

            final class Store: Sendable {}
            let manifest = Manifest("M", version: "1.0.0") {
                Target("T", make: Store.init) {
                    Action(
                        "set", .instance(), .context(), .required("a", Int.self), .optional("b", Int.self),
                        .optional("c", Int.self), .optional("d", String.self)
                    ) { store, context, a, b, c, d in
                        \(body)
                    }
                }
            }
            """, ["-Xfrontend", "-solver-scope-threshold=20000"])
    }

    @Test(arguments: ["counter.add(n)", "\n            let sum = counter.add(n)\n            return sum\n        "])
    func `An instance that the target does not have is a compile error that says what to do`(body: String) async throws
    {
        let output = try await Compiler.refusal(
            """
            import PluginABI

            final class Counter: Sendable { func add(_ n: Int) -> Int { n } }
            let manifest = Manifest("M", version: "1.0.0") {
                Target("T") {
                    Action("add", .instance(), .required("n", Int.self)) { counter, n in \(body) }
                }
            }
            """)
        #expect(output.contains("File0.swift:6:") && output.contains(": error: "), "\(output)")
        #expect(output.contains("This target has no instance. Declare how to make one: Target("), "\(output)")
    }

    @Test(arguments: [
        "Subscribe { Action(\"sold\", .context()) { context in context.log(.info, \"sold\") } }",
        "Route(\"app://a\", to: \"T/a\")", "On(.setUp) { context in context.log(.info, \"\") }",
    ])
    func `A part of the manifest inside a target is a compile error that says where it belongs`(part: String)
        async throws
    {
        let output = try await Compiler.refusal(
            """
            import PluginABI

            let manifest = Manifest("M", version: "1.0.0") {
                Target("T") {
                    Action("a") { 1 }
                    \(part)
                }
            }
            """)
        #expect(output.contains("File0.swift:6:") && output.contains(": error: "), "\(output)")
        #expect(output.contains("A target contains only actions."), "\(output)")
    }

    // MARK: Results

    private static let sentence = "A result of this type cannot be passed on. Make the type ValueCodable"

    @Test(arguments: [
        "{ Detail(title: \"\") }", "{ Date.now }", "{ (1, 2) }",
        "{\n            let detail = Detail(title: \"\")\n            return detail\n        }",
        ", .required(\"key\", String.self) { key in Detail(title: key) }",
        ", .context(), .required(\"key\", String.self) { context, key in [Detail(title: key)] }",
        ", .required(\"key\", String.self) { key in\n            await Task.yield()\n            return Detail(title: key)\n        }",
    ])
    func `A result that cannot cross the boundary is a compile error that says what to do`(body: String) async throws {
        let parts = body.split(separator: " {", maxSplits: 1, omittingEmptySubsequences: false)
        let action = body.hasPrefix("{") ? "Action(\"a\") \(body)" : "Action(\"a\"\(parts[0])) {\(parts[1])"
        let output = try await Compiler.refusal(
            """
            import Foundation
            import PluginABI

            struct Detail: Codable { var title: String }
            let manifest = Manifest("M", version: "1.0.0") {
                Target("T") {
                    Action("before") { 1 }
                    \(action)
                    Action("after") { "x" }
                }
            }
            """)
        // The compiler shows the error, and the sentence beside it.
        let lines = output.split(separator: "\n").filter { $0.contains(".swift:") && !$0.contains("note: ") }
        #expect(lines.allSatisfy { $0.contains("File0.swift:8:") }, "\(output)")
        #expect(lines.contains { $0.contains(": error: ") }, "\(output)")
        #expect(lines.contains { $0.contains(Self.sentence) }, "\(output)")
    }

    @Test func `Bodies without a result compile, of one line or many`() async throws {
        try await Compiler.check(
            """
            import PluginABI

            final class Counter: Sendable { func add(_ n: Int) {} }
            func may() throws {}
            func later() async throws {}
            let counter: Counter? = Counter()
            let body: @Sendable (HostContext) throws -> Void = { _ in }
            let asynchronous: @Sendable (HostContext) async throws -> Void = { _ in }

            let manifest = Manifest("M", version: "1.0.0") {
                Target("T") {
                    Action("one") { counter!.add(1) }
                    Action("optional") { counter?.add(1) }
                    Action("empty") {}
                    Action("ignored", .required("a", Int.self)) { _ in }
                    Action("discarded", .required("a", Int.self)) { a in _ = [a] }
                    Action("trying") { try may() }
                    Action("failing") { throw CancellationError() }
                    Action("stopping") { fatalError("never") }
                    Action("many", .context(), .required("a", Int.self)) { context, a in
                        context.log(.info, "\\(a)")
                        try may()
                    }
                    Action("early", .context(), .required("a", Int.self)) { context, a in
                        guard a > 1 else { return }
                        for _ in 0..<a { if a > 3 { return } }
                        context.log(.info, "\\(a)")
                    }
                    Action("branches", .context(), .required("a", Int.self)) { context, a in
                        if a > 1 { context.log(.info, "more") } else { context.log(.info, "less") }
                    }
                    Action("branch", .context(), .required("a", Int.self)) { context, a in
                        if a > 1 { context.log(.info, "more") }
                    }
                    Action("switch", .context(), .required("a", Int.self)) { context, a in
                        switch a {
                        case 1: context.log(.info, "one")
                        default: break
                        }
                    }
                    Action("catching", .context()) { context in
                        do { try may() } catch { context.log(.error, "\\(error)") }
                    }
                    Action("deferring", .context()) { context in
                        defer { context.log(.info, "done") }
                        try may()
                    }
                    Action("later", .context()) { context in try await later() }
                    Action("laterMany", .context(), .required("a", Int.self)) { context, a in
                        try await later()
                        guard a > 1 else { return }
                        context.log(.info, "\\(a)")
                    }
                    Action("annotated", .context()) { (context) async throws in try await later() }
                    Action("annotatedVoid", .context()) { (context) -> Void in context.log(.info, "") }
                    Action("passed", .context(), body)
                    Action("passedLater", .context(), asynchronous)
                    Action("replying", .reply(String.self)) { reply in reply.resolve("x") }
                }
                On(.setUp) { context in context.log(.info, "") }
                Subscribe {
                    Action("shop.sold", .context()) { context in context.log(.info, "sold") }
                }
            }
            """)
    }
}

/// Runs the compiler on code that uses the library.
enum Compiler {
    /// Checks that a file compiles without a warning.
    static func check(_ source: String, _ options: [String] = []) async throws {
        try await onThread { try SwiftSource.check([source], options: options) }
    }

    /// Returns the compiler's output for a file that it refuses.
    static func refusal(_ source: String) async throws -> String {
        try await onThread {
            do {
                try SwiftSource.check([source])
                return ""
            } catch let failed as Tool.Failed {
                return failed.output
            }
        }
    }
}
