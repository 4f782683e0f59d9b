internal import PluginABI
internal import PluginHost

/// Parameters of the form `name=value`, as they were entered.
struct NamedValues: Sendable {
    private let texts: [(name: String, text: String)]

    /// - Throws: `usage` for a word of another form, or a name that is given twice.
    init(_ words: some Sequence<String>) throws(PluginError) {
        var texts: [(name: String, text: String)] = []
        for word in words {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw .usage("'\(word.shortened)' is not a parameter; write it as 'name=value'.")
            }
            guard !texts.contains(where: { $0.name == parts[0] }) else {
                throw .usage("The parameter '\(parts[0].shortened)' is given twice.")
            }
            texts.append((parts[0], parts[1]))
        }
        self.texts = texts
    }

    /// How values are read, for help pages.
    static let help =
        "A value is converted to the declared type: a parameter that is declared string gets the text unchanged. "
        + "Bytes are written 'icon=@FILE', for the content of a file, or 'icon=base64:TEXT'. If no type is declared, "
        + "or the type any, a value is read as JSON if it is valid JSON, otherwise as text; to pass the text 2, write "
        + "'key=\"2\"' with the quotes."

    var isEmpty: Bool { texts.isEmpty }

    /// The values of parameters whose types are not known: JSON if the text is valid JSON, otherwise the text.
    var untyped: [String: Value] {
        Dictionary(texts.map { ($0.name, Self.untyped($0.text)) }) { first, _ in first }
    }

    private static func untyped(_ text: String) -> Value { (try? Value(json: text)) ?? .string(text) }

    /// Returns the values of parameters, converted to their declared types, if these are known. Text that is not of its
    /// type is returned untyped, so that the host refuses it.
    ///
    /// - Throws: The errors of ``BytesOfParameters``.
    func typed(_ types: [String: Value.Kind]) throws(PluginError) -> [String: Value] {
        var values = untyped
        var bytes = BytesOfParameters()
        for (name, text) in texts {
            switch types[name] {
            case .bytes: values[name] = .bytes(try bytes.read(text, of: name))
            case .list where values[name]?.list == nil: values[name] = .list([.string(text)])
            case let type?: values[name] = Value(text: text, as: type) ?? values[name]
            case nil: break
            }
        }
        return values
    }

    /// Adds advice to an error if text that was read as JSON may have been meant literally.
    func hint(_ message: String) -> String {
        guard message.contains("is declared string"),
            let (name, text) = texts.first(where: { message.contains("“\($0.name.shortened)”") }),
            Self.untyped(text).string == nil
        else { return "" }
        let word = "\(name)=\(Value.string(text).json)"
        return " To pass text that is also JSON, write it as a JSON string: \(word.quotedForShell)."
    }
}

extension String {
    /// The text as one word for a shell.
    fileprivate var quotedForShell: String {
        "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
