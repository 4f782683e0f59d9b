internal import PluginABI

/// The name of a new module, and also of its package, its target, its Swift module and its type.
struct ModuleName: Sendable {
    let text: String

    /// - Throws: `usage` if the name is not valid.
    init(_ text: String) throws(PluginError) {
        let isWord = text.allSatisfy { $0.isPlainLetter || $0.isPlainDigit || $0 == "_" }
        guard isWord, text.first?.isPlainLetter == true else {
            let example = text.filter { $0.isPlainLetter || $0.isPlainDigit }.drop(while: \.isPlainDigit)
            let hint = example.isEmpty ? "" : " Try '\(example.prefix(1).uppercased() + example.dropFirst())'."
            throw .usage(
                "'\(text.shortened)' is not a valid module name: use a letter, then letters, digits and '_'.\(hint)")
        }
        guard text.utf8.count <= 64 else {
            throw .usage(
                "The name of a module can have at most 64 letters; '\(text.shortened)' has \(text.utf8.count).")
        }
        guard !Self.taken.contains(text.lowercased()), !text.lowercased().hasPrefix("plugin_") else {
            throw .usage(
                "'\(text.shortened)' is a reserved name of Swift or PluginHost. Try '\(text)Module'.")
        }
        self.text = text
    }

    /// The name as the host of a URL.
    var host: String { text.lowercased().replacing("_", with: "-") }

    /// Keywords and types of Swift, modules of the toolchain and of this project, and names that the code of a new
    /// module uses.
    private static let taken: Set<String> = [
        "action", "any", "associatedtype", "as", "bool", "break", "bytes", "case", "catch", "class", "continue",
        "cpluginabi", "cpluginhost", "cxx", "default", "defer", "deinit", "differentiation", "dispatch", "distributed",
        "do", "double", "duration", "else", "entry", "enum", "extension", "fallthrough", "false", "fileprivate", "for",
        "foundation", "foundationessentials", "func", "glibc", "guard", "hostcontext", "if", "import", "in", "init",
        "inout", "int", "internal", "is", "let", "main", "manifest", "module", "nil", "object", "observation",
        "operator", "package", "parameters", "pluginabi", "pluginhost", "plugintestkit", "private", "protocol",
        "public",
        "regexbuilder", "repeat", "rethrows", "return", "route", "self", "static", "string", "struct", "subscript",
        "super", "swift", "switch", "synchronization", "target", "test", "testbench", "testing", "throw", "throws",
        "true", "try", "type", "typealias", "unsafepointer", "value", "var", "where", "while", "xctest",
    ]
}
