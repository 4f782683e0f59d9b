import PluginABI

/// A JSON object in a manifest, with its location: "target A, action fetch".
struct ManifestNode {
    private let entries: [String: Value]
    /// Makes the text of the location, which only errors need.
    private let location: () -> String
    /// Whether unknown keys and hooks are skipped, because the module is newer than the host.
    let skipsUnknown: Bool
    /// The name of the whole document in messages.
    private let document: String
    /// The records, enumerations and object types that a type can name.
    var values = ValueTypes()

    /// - Throws: `invalidManifest` if the value is not an object.
    init(
        value: Value, location: @autoclosure @escaping () -> String, skipsUnknown: Bool,
        document: String = "the manifest"
    ) throws(PluginError) {
        (self.location, self.skipsUnknown, self.document) = (location, skipsUnknown, document)
        guard case .map(let entries) = value else {
            self.entries = [:]
            throw error("a JSON object is expected, not \(Self.describe(value))")
        }
        self.entries = entries
    }

    subscript(key: String) -> Value? { entries[key] }

    /// Makes an error.
    ///
    /// - Parameter more: Text after the sentence.
    func error(_ message: String, _ more: String = "") -> PluginError {
        let place = location()
        return PluginError(.invalidManifest, "In \(document)\(place.isEmpty ? "" : ", \(place)"): \(message).\(more)")
    }

    func check(_ holds: Bool, else message: @autoclosure () -> String) throws(PluginError) {
        if !holds { throw error(message()) }
    }

    /// Makes the error for a word that is not one of `known`.
    func unknown(_ what: String, _ word: String, _ known: [String]) -> PluginError {
        let hint = didYouMean(word, known)
        return error(
            "unknown \(what) \"\(word.shortened)\"",
            hint.isEmpty ? " Expected one of: \(known.joined(separator: ", "))." : hint)
    }

    func checkKeys(_ known: [String]) throws(PluginError) {
        if skipsUnknown || entries.keys.allSatisfy(known.contains) { return }
        for key in entries.keys.sorted() where !known.contains(key) { throw unknown("key", key, known) }
    }

    func optional<T>(
        _ key: String, _ read: (Value) -> T?, _ type: @autoclosure () -> String
    ) throws(PluginError) -> T? {
        guard let value = entries[key] else { return nil }
        guard let result = read(value) else { throw error("\"\(key)\" must be \(type()), not \(Self.describe(value))") }
        return result
    }

    func required<T>(
        _ key: String, _ read: (Value) -> T?, _ type: @autoclosure () -> String
    ) throws(PluginError) -> T {
        guard let result = try optional(key, read, type()) else { throw error("the key \"\(key)\" is missing") }
        return result
    }

    func string(_ key: String) throws(PluginError) -> String { try required(key, \.string, "a string") }

    func summary() throws(PluginError) -> String { try optional("summary", \.string, "a string") ?? "" }

    func flag(_ key: String) throws(PluginError) -> Bool { try optional(key, \.bool, "true or false") ?? false }

    /// Reads one of the words of an enumeration. Without a default, the key is required.
    func choice<Word: RawRepresentable<String> & CaseIterable>(
        _ key: String, default fallback: Word?
    ) throws(PluginError) -> Word {
        if let fallback, entries[key] == nil { return fallback }
        let text = try string(key)
        guard let word = Word(rawValue: text) else { throw unknown(key, text, Word.allCases.map(\.rawValue)) }
        return word
    }

    func version() throws(PluginError) -> SemanticVersion {
        let text = try string("version")
        if let version = SemanticVersion(text) { return version }
        throw error("the version \"\(text.shortened)\" is not a semantic version, such as \"1.0.0\"")
    }

    func name(_ key: String = "name") throws(PluginError) -> String { try name(checking: string(key)) }

    /// Checks and returns a name: a letter or `_`, then letters, digits, `_`, `.` and `-`; at most 256 bytes.
    func name(checking name: String) throws(PluginError) -> String {
        let isWord = name.utf8.allSatisfy { $0.isLetter || $0.isDigit || "_.-".utf8.contains($0) }
        let startsWell = name.utf8.first.map { $0.isLetter || $0 == UInt8(ascii: "_") } ?? false
        try check(
            isWord && startsWell && name.utf8.count <= 256,
            else: "the name \"\(name.shortened)\" is not allowed: use a letter or _, then letters, digits, _, . and -, "
                + "at most 256 characters")
        return name
    }

    /// Reads a list of objects with unique names.
    func list<Element>(
        _ key: String, _ what: String, _ read: (ManifestNode) throws(PluginError) -> Element
    ) throws(PluginError) -> [Element] {
        var names: Set<String> = []
        return try elements(key, what) { node, _ throws(PluginError) in
            let name = try node.name()
            try check(names.insert(name).inserted, else: "the \(what) \(name.shortened) is declared twice")
            return try read(node)
        }
    }

    /// Reads a list of objects.
    ///
    /// - Parameters:
    ///   - name: Returns the name of an object for messages; an object without a name is identified by its number.
    ///   - read: Reads an object, given the elements that were read before it.
    func elements<Element>(
        _ key: String, _ what: String, name: @escaping (Value) -> String? = { $0["name"]?.string },
        _ read: (ManifestNode, [Element]) throws(PluginError) -> Element
    ) throws(PluginError) -> [Element] {
        var elements: [Element] = []
        let values = try optional(key, \.list, "a list") ?? []
        elements.reserveCapacity(values.count)
        for (index, value) in values.enumerated() {
            var node = try ManifestNode(
                value: value, location: location(of: what, named: name(value), at: index),
                skipsUnknown: skipsUnknown, document: document)
            node.values = self.values
            elements.append(try read(node, elements))
        }
        return elements
    }

    /// Returns the location of an element of a list.
    private func location(of what: String, named name: String?, at index: Int) -> String {
        let above = location()
        return "\(above.isEmpty ? "" : "\(above), ")\(what) \(name?.shortened ?? "number \(index + 1)")"
    }

    private static func describe(_ value: Value) -> String {
        switch value {
        case .null: "null"
        case .bool: "a bool"
        case .int, .double: "a number"
        case .string: "a string"
        case .list: "a list"
        default: "an object"
        }
    }
}
