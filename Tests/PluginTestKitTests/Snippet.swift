/// A piece of Swift from an article, with the context that the article implies.
struct Snippet {
    /// A file that the compiler accepts.
    let file: String

    init(_ text: String) {
        // In an article, an ellipsis replaces irrelevant code.
        let code = text.replacing("// …", with: "").replacing("…", with: "")
        let first = code.prefix { $0 != "\n" }
        if code.contains("import ") {
            file = code
        } else if Self.parts.contains(where: first.hasPrefix) {
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

    /// How the elements of a manifest begin.
    private static let parts = ["Target(", "ObjectType(", "Action(", "On(", "Requires(", "Subscribe {"]

    /// Declarations that the articles assume.
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
