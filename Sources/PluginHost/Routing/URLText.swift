import PluginABI

/// A URL taken apart, each piece decoded once.
///
/// Parsed here and not with Foundation: `URL` escapes the whole string again when it finds one stray `%`, and takes what
/// stands behind a colon for a port.
struct URLText {
    /// In lower case; nil for a URL without one.
    let scheme: String?
    /// In lower case; nil for a URL without one. A port belongs to it.
    let host: String?
    /// The host as it is written.
    let writtenHost: String
    let path: [UInt32]
    let query: [(name: String, value: String)]
    /// The URL as it was given.
    let text: String

    /// How long a URL may be, in bytes.
    static let longest = 2 << 20
    /// How many items a query may have.
    static let mostItems = 100_000

    /// - Throws: `invalidURL`, with the position of what is wrong.
    init(_ text: String) throws(PluginError) {
        self.text = text
        let bytes = Array(text.utf8)
        guard bytes.count <= Self.longest else {
            throw PluginError(.invalidURL, "A URL of \(bytes.count) bytes is too long: at most \(Self.longest).")
        }
        guard !bytes.isEmpty else { throw PluginError(.invalidURL, "An empty text is no URL.") }
        if let bad = bytes.firstIndex(where: { $0 <= 0x20 || $0 == 0x7F }) {
            throw PluginError(
                .invalidURL, "“\(text.shortened)” has a blank or a control character at byte \(bad): write it %XX.")
        }
        var rest = bytes[...]
        if let fragment = rest.firstIndex(of: UInt8(ascii: "#")) { rest = rest[..<fragment] }
        var query = rest[rest.endIndex...]
        if let question = rest.firstIndex(of: UInt8(ascii: "?")) {
            query = rest[(question + 1)...]
            rest = rest[..<question]
        }
        scheme = Self.takeScheme(&rest)
        var authority = rest[rest.startIndex..<rest.startIndex]
        if rest.starts(with: "//".utf8) {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            authority = rest[..<end]
            rest = rest[end...]
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
                throw PluginError(
                    .invalidURL, "“\(text.shortened)” names a user (up to byte \(at)), which no route can ask for.")
            }
        } else if scheme != nil {
            throw PluginError(.invalidURL, "“\(text.shortened)” has no // behind its scheme.")
        }
        writtenHost = PathScalars.text(try PathScalars.decode(authority, offset: authority.startIndex, of: text))
        host = scheme == nil && writtenHost.isEmpty ? nil : writtenHost.lowercased()
        path = PathScalars.withoutDots(try PathScalars.decode(rest, offset: rest.startIndex, of: text))
        self.query = try Self.parse(query, of: text)
    }

    private static func takeScheme(_ rest: inout ArraySlice<UInt8>) -> String? {
        guard let colon = rest.firstIndex(of: UInt8(ascii: ":")), let first = rest.first,
            UnicodeScalar(first).properties.isAlphabetic
        else { return nil }
        let letters = rest[..<colon]
        let isScheme = letters.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0) || $0 == 0x2B
                || $0 == 0x2D || $0 == 0x2E
        }
        guard isScheme else { return nil }
        rest = rest[(colon + 1)...]
        return String(decoding: letters, as: UTF8.self).lowercased()
    }

    private static func parse(_ query: ArraySlice<UInt8>, of url: String) throws(PluginError) -> [(String, String)] {
        var items: [(String, String)] = []
        for item in query.split(separator: UInt8(ascii: "&")) {
            guard items.count < mostItems else {
                throw PluginError(.invalidURL, "“\(url.shortened)” has more than \(mostItems) query items.")
            }
            let equals = item.firstIndex(of: UInt8(ascii: "=")) ?? item.endIndex
            let value = equals == item.endIndex ? item[equals...] : item[(equals + 1)...]
            let name = try decodeQuery(item[..<equals], of: url)
            guard !name.isEmpty else {
                throw PluginError(
                    .invalidURL, "A query item at byte \(item.startIndex) of “\(url.shortened)” has no name.")
            }
            items.append((name, try decodeQuery(value, of: url)))
        }
        return items
    }

    /// In queries a plus is a space.
    private static func decodeQuery(_ text: ArraySlice<UInt8>, of url: String) throws(PluginError) -> String {
        let spaced = text.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
        return PathScalars.text(try PathScalars.decode(spaced, offset: text.startIndex, of: url))
    }
}
