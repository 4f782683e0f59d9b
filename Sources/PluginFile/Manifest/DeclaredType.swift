package import PluginABI

/// The declared type of a value, which says more than its kind.
///
/// It is written as text: a kind (`string`), the name of a record, an enumeration or an object type (`Draft`),
/// `list<Draft>`, `map<int>`, each possibly followed by `?`.
package indirect enum DeclaredType: Sendable, Hashable {
    case kind(Value.Kind)
    /// A record of the manifest's `values`.
    case record(String)
    /// An enumeration of the manifest's `values`, whose cases are strings or ints.
    case enumeration(String, Value.Kind)
    /// A type of the manifest's `types`.
    case object(String)
    case list(DeclaredType)
    case map(DeclaredType)
    /// The type, or null; in a record, also a missing field.
    case optional(DeclaredType)

    /// The kind that the host checks.
    package var kind: Value.Kind {
        switch self {
        case .kind(let kind): kind
        case .record, .map: .map
        case .enumeration(_, let kind): kind
        case .object: .object
        case .list: .list
        case .optional: .any
        }
    }

    /// Whether the type is only a kind.
    package var isPlain: Bool {
        if case .kind = self { return true }
        return false
    }

    /// Whether a field of this type can be missing.
    var canBeMissing: Bool {
        switch self {
        case .optional, .kind(.any): true
        default: false
        }
    }
}

extension DeclaredType: CustomStringConvertible {
    /// The text in a manifest.
    package var description: String {
        switch self {
        case .kind(let kind): kind.rawValue
        case .record(let name), .enumeration(let name, _), .object(let name): name
        case .list(let element): "list<\(element)>"
        case .map(let element): "map<\(element)>"
        case .optional(let type): "\(type)?"
        }
    }
}

extension DeclaredType {
    /// How deep lists, maps and optionals may nest in the text of a type.
    package static let depthLimit = 16

    /// Reads the text of a type.
    ///
    /// - Parameters:
    ///   - names: The types that have names.
    ///   - fail: Makes the error for a word that is not a type, or for text that is not well-formed, in which case the
    ///     word is `nil`.
    init(
        _ text: String, _ names: [String: DeclaredType], _ fail: (_ word: String?) -> PluginError
    ) throws(PluginError) {
        self = try Self.read(text[...], names, Self.depthLimit, fail)
    }

    private static func read(
        _ text: Substring, _ names: [String: DeclaredType], _ depth: Int, _ fail: (String?) -> PluginError
    ) throws(PluginError) -> DeclaredType {
        guard depth > 0 else { throw fail(nil) }
        if text.last == "?" {
            let type = try read(text.dropLast(), names, depth - 1, fail)
            switch type {
            case .optional, .kind(.any), .kind(.null): throw fail(nil)
            default: return .optional(type)
            }
        }
        for (word, make) in [("list<", DeclaredType.list), ("map<", DeclaredType.map)] where text.hasPrefix(word) {
            guard text.last == ">" else { throw fail(nil) }
            let element = try read(text.dropFirst(word.count).dropLast(), names, depth - 1, fail)
            if element == .kind(.null) { throw fail(nil) }
            return make(element)
        }
        if let kind = Value.Kind(rawValue: String(text)) { return .kind(kind) }
        guard !text.contains(where: { "<>? ".contains($0) }) else { throw fail(nil) }
        guard let named = names[String(text)] else { throw fail(String(text)) }
        return named
    }
}

extension ValueTypes {
    /// Returns the type that a text in the manifest stands for; `nil` if it stands for none.
    package func type(_ text: String) -> DeclaredType? {
        try? DeclaredType(text, names) { _ in PluginError(.invalidManifest, "") }
    }
}

extension ManifestNode {
    /// Reads the type of a parameter, a result or a field.
    func type(_ key: String, default fallback: DeclaredType? = nil) throws(PluginError) -> DeclaredType {
        if let fallback, self[key] == nil { return fallback }
        let text = try string(key)
        return try DeclaredType(text, values.names) { word in
            if let word {
                return unknown(key, word, Value.Kind.allCases.map(\.rawValue) + values.names.keys.sorted())
            }
            return error(
                "\"\(key)\" is \"\(text.shortened)\", which is not a type: write a kind such as string, the name of a "
                    + "record, an enumeration or an object type, list<…> or map<…>, each possibly followed by one ?, "
                    + "at most \(DeclaredType.depthLimit) levels deep")
        }
    }
}
