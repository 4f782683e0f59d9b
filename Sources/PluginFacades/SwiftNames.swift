import PluginFile

/// Names of a manifest as identifiers of Swift, each once in its scope.
///
/// What is an identifier already keeps its name; of the others the first one gets the plain form, and those that clash
/// with it get a number. So a name does not change because something else is added behind it.
struct SwiftNames {
    private var taken: Set<String>

    /// - Parameter reserved: What stands in the scope already.
    init(reserved: Set<String> = []) { taken = reserved }

    /// Identifiers for all names of a scope, in their order.
    ///
    /// - Parameter form: Makes a word of another kind of each, before clashes are looked for.
    mutating func take(_ names: [String], form: (String) -> String = { $0 }) -> [String] {
        var identifiers = [String?](repeating: nil, count: names.count)
        for (index, name) in names.enumerated() where form(name) == name && Self.isPlain(name) {
            if taken.insert(name).inserted { identifiers[index] = name }
        }
        for (index, name) in names.enumerated() where identifiers[index] == nil {
            identifiers[index] = takeFree(Self.word(form(name)))
        }
        return identifiers.map { $0 ?? "_" }
    }

    private mutating func takeFree(_ word: String) -> String {
        var candidate = word
        var number = 1
        while !taken.insert(candidate).inserted {
            candidate = number == 1 ? word + "_" : "\(word)_\(number)"
            number += 1
        }
        return candidate
    }

    // MARK: Words

    /// Whether the name is an identifier as it stands, perhaps in backticks.
    static func isPlain(_ name: String) -> Bool {
        let isWord = name.utf8.allSatisfy { $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "_") }
        return isWord && name.utf8.first?.isDigit == false && !impossible.contains(name)
    }

    /// `fetch-detail` and `fetch.detail` become `fetchDetail`; what can be no member of a type gets a `_`.
    static func word(_ name: String) -> String {
        let parts = name.split { !$0.isASCII || !($0.isLetter || $0.isNumber || $0 == "_") }
        var word = parts.first.map(String.init) ?? ""
        for part in parts.dropFirst() { word += part.prefix(1).uppercased() + part.dropFirst() }
        if word.utf8.first?.isDigit ?? true { word = "_" + word }
        return impossible.contains(word) ? word + "_" : word
    }

    /// The same with a capital letter in front, for types.
    static func typeName(_ name: String) -> String {
        let word = word(name)
        return word.prefix(1).uppercased() + word.dropFirst()
    }

    /// As it is written in source code.
    static func escaped(_ identifier: String) -> String {
        keywords.contains(identifier) ? "`\(identifier)`" : identifier
    }

    /// What no member can be called, not even in backticks, or what is then called with more than its name.
    private static let impossible: Set<String> = [
        "_", "init", "deinit", "subscript", "self", "Self", "Type", "Protocol",
    ]

    /// Words that need backticks somewhere.
    private static let keywords: Set<String> = [
        "Any", "actor", "as", "associatedtype", "async", "await", "break", "case", "catch", "class", "consume",
        "continue", "copy", "default", "defer", "discard", "do", "each", "else", "enum", "extension", "fallthrough",
        "false", "fileprivate", "for", "func", "guard", "if", "import", "in", "inout", "internal", "is", "let", "macro",
        "nil", "nonisolated", "open", "operator", "package", "precedencegroup", "private", "protocol", "public",
        "repeat", "rethrows", "return", "sending", "some", "static", "struct", "super", "switch", "then", "throw",
        "throws", "true", "try", "typealias", "unsafe", "var", "where", "while", "yield",
    ]

    /// What generated code says without a module's name in front: members of its scope must not hide it.
    static let used: Set<String> = [
        "Any", "Array", "Bool", "Bytes", "CallOrigin", "Caller", "Dictionary", "Double", "Duration", "Hashable", "Int",
        "Object", "Optional", "Parameters", "PluginABI", "PluginError", "Sendable", "ServiceClient", "ServiceHandle",
        "String", "Value", "Void",
    ]

    /// What a type that calls actions has besides a function for each, and what it says.
    static let members = used.union(["caller", "timeout", "object", "service", "given"])
}
