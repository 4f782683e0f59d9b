/// A piece of Swift from an article, with what stands around it in a reader's mind.
struct Snippet {
    /// A file that the compiler takes.
    let file: String

    init(_ text: String) {
        // In an article, dots stand for what does not matter.
        let code = text.replacing("// …", with: "").replacing("…", with: "")
        let first = code.prefix { $0 != "\n" }
        if code.contains("import ") {
            file = code
        } else if ["Target(", "ObjectType(", "Action(", "On(", "Requires("].contains(where: first.hasPrefix) {
            let part = first.hasPrefix("Action(") ? "Target(\"T\") {\n\(code)\n}" : code
            file = Self.surroundings + "let manifest = Manifest(\"M\", version: \"1.0.0\") {\n\(part)\n}\n"
        } else if first.hasPrefix("struct ") || first.hasPrefix("static ") {
            file = Self.surroundings + "enum Snippet {\n\(code)\n}\n"
        } else {
            file =
                Self.surroundings
                + "func snippet(_ context: HostContext, _ host: PluginHost, _ bench: TestBench) async throws {\n\(code)\n}\n"
        }
    }

    /// What the articles take for granted.
    private static let surroundings = """
        import Foundation
        import PluginTestKit
        import Testing

        let currencies = ["EUR": "euro"]
        actor Nobody {}
        final class Counter: Sendable { func add(_ n: Int) -> Int { n } }
        final class Cursor: Sendable { func next() -> String? { nil } }

        """
}
