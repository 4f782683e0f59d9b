import PluginFile

/// Converts names of a manifest to Swift identifiers that are unique in their scope.
///
/// A name that is already an identifier is kept. The other names are converted in order; one that clashes with an
/// identifier that is taken gets `_` or a number. A name that is added later therefore does not change earlier ones,
/// unless it is an identifier that clashes with one of them.
struct SwiftNames {
    private var taken: Set<String>

    /// - Parameter reserved: The names that already exist in the scope.
    init(reserved: Set<String> = []) { taken = reserved }

    /// Returns identifiers for all names of a scope, in order.
    ///
    /// - Parameter form: A conversion of each name, such as to a type name, before clashes are resolved.
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

    /// Returns whether a name is an identifier without changes, possibly in backticks.
    static func isPlain(_ name: String) -> Bool {
        let isWord = name.utf8.allSatisfy { $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "_") }
        return isWord && name.utf8.first?.isDigit == false && !impossible.contains(name)
    }

    /// Returns a name as an identifier: `fetch-detail` and `fetch.detail` become `fetchDetail`. A name that cannot be a
    /// member of a type gets a `_`.
    static func word(_ name: String) -> String {
        let parts = name.split { !$0.isASCII || !($0.isLetter || $0.isNumber || $0 == "_") }
        var word = parts.first.map(String.init) ?? ""
        for part in parts.dropFirst() { word += part.prefix(1).uppercased() + part.dropFirst() }
        if word.utf8.first?.isDigit ?? true { word = "_" + word }
        return impossible.contains(word) ? word + "_" : word
    }

    /// Returns a name as an identifier that begins with a capital letter, for types.
    static func typeName(_ name: String) -> String {
        let word = word(name)
        return word.prefix(1).uppercased() + word.dropFirst()
    }

    /// Returns an identifier as source code, with backticks if it needs them.
    static func escaped(_ identifier: String) -> String {
        keywords.contains(identifier) ? "`\(identifier)`" : identifier
    }

    /// The names that a member cannot have, even in backticks, or that cannot be used like other names.
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

    /// The types that generated code uses without a module name. Members of its scope must not hide them.
    static let used: Set<String> = [
        "Any", "Array", "Bool", "Bytes", "CallOrigin", "Caller", "CaseIterable", "Dictionary", "Double", "Duration",
        "Hashable", "Int",
        "Object", "Optional", "Parameters", "PluginABI", "PluginError", "Sendable", "ServiceClient", "ServiceHandle",
        "String", "TypedValue", "Value", "ValueReader", "Void",
    ]

    /// The reserved names in a type that calls actions: those that its code uses, and those of its other members.
    static let members = used.union(["caller", "timeout", "object", "service", "given", "written"])
}
