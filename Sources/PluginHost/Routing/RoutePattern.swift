import PluginABI

/// The pattern of a route: `scheme://host/path`, any of which may be left open.
///
/// - `app://shop/detail/:key` matches one scheme and one host.
/// - `shop/detail/:key` matches any scheme.
/// - `/detail/:key` matches any scheme and any host.
/// - `app://` is the fallback of its scheme.
final class RoutePattern: Sendable {
    let text: String
    /// In lower case; nil for any.
    let scheme: String?
    /// nil for any.
    let host: PathPattern?
    /// nil for the fallback of the scheme.
    let path: PathPattern?

    /// Where all groups are whole segments of the path: the segment of each.
    let places: [Int]?

    /// How many segments a path may have: each is a node that is searched within the one before, on the caller's stack.
    static let mostSegments = 256

    /// - Throws: `invalidPattern`, with the position.
    init(_ text: String) throws(PluginError) {
        self.text = text
        let bytes = text.utf8
        var start = bytes.startIndex
        var scheme: String?
        if let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8), colon > start
        {
            guard Self.isScheme(bytes[..<colon]) else {
                throw .invalidPattern(text, at: 0, "a scheme that is none (a letter, then letters, digits, + - .)")
            }
            scheme = text[..<colon].lowercased()
            start = bytes.index(colon, offsetBy: 3)
        }
        self.scheme = scheme
        if scheme != nil, start == bytes.endIndex {
            host = nil
            path = nil
            places = nil
            return
        }
        guard start < bytes.endIndex else { throw .invalidPattern(text, at: 0, "nothing in it") }
        let end = Self.endOfHost(bytes[start...])
        if start == end {
            host = nil
        } else {
            let written = Self.withoutDefaultPort(Self.escapePort(String(text[start..<end])), scheme)
            host = try PathPattern(
                written, at: text.unicodeScalars.distance(from: text.startIndex, to: start), of: text, delimiter: ".")
        }
        let pathStart = text.unicodeScalars.distance(from: text.startIndex, to: end)
        let path = try PathPattern(String(text[end...]), at: pathStart, of: text, earlierNames: host?.names ?? [])
        guard path.segments.count <= Self.mostSegments else {
            throw .invalidPattern(text, at: pathStart, "a path of more than \(Self.mostSegments) segments")
        }
        self.path = path
        let isPlain = path.isPlain && (host?.names ?? []).isEmpty
        places = isPlain ? path.segments.indices.filter { path.segments[$0] == .name } : nil
    }

    private static func isScheme(_ bytes: Substring.UTF8View) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
        guard let first = bytes.first, isLetter(first) else { return false }
        return bytes.allSatisfy { byte in
            isLetter(byte) || (0x30...0x39).contains(byte) || byte == 0x2B || byte == 0x2D || byte == 0x2E
        }
    }

    /// The first slash that is not inside a group, nor the one that belongs to an optional group behind the host.
    private static func endOfHost(_ text: Substring.UTF8View) -> String.Index {
        var depth = 0
        var index = text.startIndex
        while index < text.endIndex {
            let next = text.index(after: index)
            switch text[index] {
            case UInt8(ascii: "\\"): if next < text.endIndex { index = next }
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"): depth -= 1
            case UInt8(ascii: "{") where depth == 0 && next < text.endIndex && text[next] == UInt8(ascii: "/"):
                return index
            case UInt8(ascii: "/") where depth == 0: return index
            default: break
            }
            index = text.index(after: index)
        }
        return text.endIndex
    }

    /// `localhost:8080` names a port, not a group.
    private static func escapePort(_ host: String) -> String {
        guard let colon = host.lastIndex(of: ":") else { return host }
        let port = host[host.index(after: colon)...]
        let isEscaped = host[..<colon].last == "\\"
        return port.allSatisfy(\.isNumber) && !port.isEmpty && !isEscaped ? host[..<colon] + "\\:" + port : host
    }

    /// A port that its scheme has anyway says nothing.
    private static func withoutDefaultPort(_ host: String, _ scheme: String?) -> String {
        guard let port = scheme.flatMap({ URLText.defaultPorts[$0] }), host.hasSuffix("\\:\(port)") else { return host }
        return String(host.dropLast(port.count + 2))
    }

    /// What two patterns share that differ in nothing but the names of their groups.
    var shape: Shape {
        Shape(scheme: scheme, host: host?.shape, path: path?.shape)
    }

    struct Shape: Hashable, Sendable {
        let scheme: String?
        let host: [PatternPart]?
        let path: [PatternPart]?
    }
}

extension PathPattern {
    /// What paths share that differ in nothing but the names of their groups.
    var shape: [PatternPart] { parts.shape }
}

extension [PatternPart] {
    var shape: [PatternPart] {
        map { part in
            var part = part
            part.name = part.name.isEmpty ? "" : "_"
            return part
        }
    }
}
