import CPluginABI
import PluginABI

/// A URL of the form `scheme://target/action?name=value&…`, taken apart and decoded once.
///
/// Parsed here and not with Foundation: `URL` escapes the whole string again when it finds one stray `%`, and takes what
/// stands behind a colon for a port.
struct URLAddress {
    let target: String
    let action: String
    let query: [(name: String, value: String)]

    /// - Parameter schemes: The schemes that address targets, in lower case.
    /// - Throws: `invalidURL`, with the position of what is wrong.
    init(_ url: String, schemes: Set<String>) throws(PluginError) {
        let text = Array(url.utf8)
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), text[colon...].starts(with: "://".utf8) else {
            throw PluginError(.invalidURL, "“\(url.shortened)” is no URL of the form scheme://target/action?name=value.")
        }
        let scheme = String(decoding: text[..<colon], as: UTF8.self).lowercased()
        guard schemes.contains(scheme) else {
            let known = schemes.sorted().map { "\($0)://" }.joined(separator: ", ")
            throw PluginError(
                .invalidURL,
                "“\(scheme.shortened)://” is no scheme of this program. It answers to \(known.isEmpty ? "none" : known).")
        }
        let fragment = text.firstIndex(of: UInt8(ascii: "#")) ?? text.endIndex
        let question = text[..<fragment].firstIndex(of: UInt8(ascii: "?")) ?? fragment
        let path = text[(colon + 3)..<question].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard path.count == 2, path.allSatisfy({ !$0.isEmpty }) else {
            throw PluginError(
                .invalidURL, "“\(url.shortened)” does not have exactly a target and an action: scheme://target/action.")
        }
        target = try Self.decode(path[0], in: url, plusIsSpace: false)
        action = try Self.decode(path[1], in: url, plusIsSpace: false)
        var query: [(String, String)] = []
        for item in text[min(question + 1, fragment)..<fragment].split(separator: UInt8(ascii: "&")) {
            let equals = item.firstIndex(of: UInt8(ascii: "=")) ?? item.endIndex
            let value = equals == item.endIndex ? item[equals...] : item[(equals + 1)...]
            let name = try Self.decode(item[..<equals], in: url, plusIsSpace: true)
            guard !name.isEmpty else {
                throw PluginError(.invalidURL, "A parameter at byte \(item.startIndex) of “\(url.shortened)” has no name.")
            }
            query.append((name, try Self.decode(value, in: url, plusIsSpace: true)))
        }
        self.query = query
    }

    /// Decodes percent escapes, once.
    private static func decode(_ text: ArraySlice<UInt8>, in url: String, plusIsSpace: Bool) throws(PluginError)
        -> String
    {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(text.count)
        var index = text.startIndex
        while index < text.endIndex {
            switch text[index] {
            case UInt8(ascii: "%"):
                guard index + 2 < text.endIndex, let high = Self.digit(text[index + 1]),
                    let low = Self.digit(text[index + 2])
                else {
                    throw PluginError(
                        .invalidURL, "The escape at byte \(index) of “\(url.shortened)” is not % and two hex digits.")
                }
                decoded.append(high << 4 | low)
                index += 3
            case UInt8(ascii: "+") where plusIsSpace:
                decoded.append(UInt8(ascii: " "))
                index += 1
            case let byte:
                decoded.append(byte)
                index += 1
            }
        }
        guard let string = String(validating: decoded, as: UTF8.self) else {
            throw PluginError(
                .invalidURL, "What stands at byte \(text.startIndex) of “\(url.shortened)” is no UTF-8 when decoded.")
        }
        return string
    }

    private static func digit(_ byte: UInt8) -> UInt8? { Character(UnicodeScalar(byte)).hexDigitValue.map(UInt8.init) }

    /// The query as parameters: text converted to the declared types. What the caller has given itself is left out.
    ///
    /// - Throws: `mistypedParameter` for text that is no value of the declared type.
    func parameters(
        for declared: [Endpoint.Parameter], overriddenBy given: UnsafeBufferPointer<plugin_entry>
    ) throws(PluginError) -> Parameters {
        let overridden = Set(given.lazy.map(\.key.text))
        let texts = Dictionary(grouping: query.filter { !overridden.contains($0.name) }, by: \.name)
        var values: [String: Value] = [:]
        for (name, texts) in texts.sorted(by: { $0.key < $1.key }) {
            let kind = declared.first { $0.name == name }?.kind ?? .any
            values[name] =
                kind == .list
                ? .list(texts.map { .string($0.value) }) : try Self.convert(texts.last!.value, to: kind, name)
        }
        return Parameters(values)
    }

    private static func convert(_ text: String, to kind: Value.Kind, _ name: String) throws(PluginError) -> Value {
        let value: Value? =
            switch kind {
            case .string, .any: .string(text)
            case .int: Int(text).map(Value.int)
            case .double: Double(text).map(Value.double)
            case .bool: ["true": true, "1": true, "false": false, "0": false][text].map(Value.bool)
            case .bytes: Bytes(base64: text).map(Value.bytes)
            case .list, .map, .object, .null: nil
            }
        guard let value else {
            throw PluginError(
                .mistypedParameter, "The parameter “\(name)” is declared \(kind); the URL has “\(text.shortened)”.")
        }
        return value
    }

    /// Lends the names in the form of the table.
    func withNames<Result>(
        _ body: (plugin_string, plugin_string) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        try Array(target.utf8CString).withUnsafeBufferPointer { (target) throws(PluginError) in
            try Array(action.utf8CString).withUnsafeBufferPointer { (action) throws(PluginError) in
                try body(
                    plugin_string(bytes: target.baseAddress, count: UInt64(target.count - 1)),
                    plugin_string(bytes: action.baseAddress, count: UInt64(action.count - 1)))
            }
        }
    }
}

extension String {
    /// The text, cut for a message.
    var shortened: String { count > 200 ? prefix(200) + "…" : self }
}
