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

    /// Where the path begins, in bytes.
    private let pathStart: Int
    /// Whether all groups are whole segments of the path.
    let hasPlaces: Bool

    /// How many segments a path may have: each may be a node that is searched within the one before, on the caller's stack.
    static let mostSegments = 256

    /// - Parameter previous: A pattern whose scheme and host are shared, if they are written the same. Of many patterns
    ///   most have those of the one before.
    /// - Throws: `invalidPattern`, with the position.
    init(_ text: String, after previous: RoutePattern? = nil) throws(PluginError) {
        self.text = text
        let (schemeEnd, start, end) = text.withRawText(Self.divide)
        pathStart = end
        func part(_ start: Int, _ end: Int) -> String { text.withRawText { $0.part(start, end).string } }
        func position(_ offset: Int) -> Int { part(0, offset).unicodeScalars.count }

        if let previous, let host = previous.host, previous.pathStart == end,
            Self.share(end, text, previous.text)
        {
            scheme = previous.scheme
            self.host = host
            (path, hasPlaces) = try Self.path(of: text, from: end, at: position(end), host)
            return
        }
        if let schemeEnd {
            let written = part(0, schemeEnd)
            guard Self.isScheme(written) else {
                throw .invalidPattern(text, at: 0, "a scheme that is none (a letter, then letters, digits, + - .)")
            }
            scheme = written.lowercased()
        } else {
            scheme = nil
        }
        if scheme != nil, start == text.utf8.count {
            host = nil
            path = nil
            hasPlaces = false
            return
        }
        guard start < text.utf8.count else { throw .invalidPattern(text, at: 0, "nothing in it") }
        if start == end {
            host = nil
        } else {
            let written = Self.withoutDefaultPort(Self.escapePort(part(start, end)), scheme)
            host = try PathPattern(written, at: position(start), of: text, delimiter: ".")
        }
        (path, hasPlaces) = try Self.path(of: text, from: end, at: position(end), host)
    }

    /// The pattern of the path, and whether all groups are whole segments of it.
    private static func path(
        of text: String, from start: Int, at position: @autoclosure () -> Int, _ host: PathPattern?
    ) throws(PluginError) -> (PathPattern, Bool) {
        let path = try PathPattern(text, from: start, at: position(), earlierNames: host?.names ?? [])
        guard path.segments.count <= mostSegments else {
            throw .invalidPattern(text, at: position(), "a path of more than \(mostSegments) segments")
        }
        return (path, path.isPlain && host?.names.isEmpty != false)
    }

    /// Whether two texts begin with the same bytes.
    private static func share(_ count: Int, _ one: String, _ other: String) -> Bool {
        one.withRawText { one in other.withRawText { other in one.part(0, count) == other.part(0, count) } }
    }

    /// Of the groups, those of the host first.
    var names: [String] {
        let names = path?.names ?? []
        guard let host, !host.names.isEmpty else { return names }
        return host.names + names
    }

    /// Of the groups, the segments of the path that they take, where all groups are whole segments; else nothing.
    var places: [Int] {
        guard hasPlaces, let segments = path?.segments else { return [] }
        return segments.indices.filter { segments[$0].rank == .name }
    }

    /// Where the scheme ends, if there is one, and where the host begins and ends.
    private static func divide(_ text: RawText) -> (scheme: Int?, host: Int, path: Int) {
        var start = 0
        let colon = text.firstIndex(of: UInt8(ascii: ":")) ?? 0
        let hasScheme = colon > 0 && colon + 2 < text.count && text[colon + 1] == 0x2F && text[colon + 2] == 0x2F
        if hasScheme { start = colon + 3 }
        return (hasScheme ? colon : nil, start, endOfHost(text, from: start))
    }

    private static func isScheme(_ text: String) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
        guard let first = text.utf8.first, isLetter(first) else { return false }
        return text.utf8.allSatisfy { byte in
            isLetter(byte) || (0x30...0x39).contains(byte) || byte == 0x2B || byte == 0x2D || byte == 0x2E
        }
    }

    /// The first slash that is not inside a group, nor the one that belongs to an optional group behind the host.
    private static func endOfHost(_ text: RawText, from start: Int) -> Int {
        var (depth, index) = (0, start)
        while index < text.count {
            let next = index + 1
            switch text[index] {
            case UInt8(ascii: "\\"): if next < text.count { index = next }
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"): depth -= 1
            case UInt8(ascii: "{") where depth == 0 && next < text.count && text[next] == UInt8(ascii: "/"):
                return index
            case UInt8(ascii: "/") where depth == 0: return index
            default: break
            }
            index += 1
        }
        return text.count
    }

    /// `localhost:8080` names a port, not a group.
    private static func escapePort(_ host: String) -> String {
        guard let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")) else { return host }
        let port = host[host.utf8.index(after: colon)...]
        let isEscaped = host[..<colon].last == "\\"
        return port.allSatisfy(\.isNumber) && !port.isEmpty && !isEscaped ? host[..<colon] + "\\:" + port : host
    }

    /// A port that its scheme has anyway says nothing.
    private static func withoutDefaultPort(_ host: String, _ scheme: String?) -> String {
        guard host.utf8.contains(UInt8(ascii: ":")), let port = scheme.flatMap({ URLText.defaultPorts[$0] }),
            host.hasSuffix("\\:\(port)")
        else { return host }
        return String(host.dropLast(port.count + 2))
    }

    /// What two patterns share that differ in nothing but the names of their groups.
    var shape: Shape {
        Shape(scheme: scheme, host: host?.shape, path: path?.shape)
    }

    struct Shape: Hashable, Sendable {
        let scheme: String?
        let host: PathPattern.Shape?
        let path: PathPattern.Shape?
    }
}

extension PathPattern {
    /// What paths share that differ in nothing but the names of their groups.
    enum Shape: Hashable, Sendable {
        /// Of literals and whole segments only: they say all of it.
        case plain([PathSegment])
        case parts([PatternPart])
    }

    var shape: Shape { isPlain ? .plain(segments) : .parts(parts.shape) }
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
