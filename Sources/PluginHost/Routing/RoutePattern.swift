import PluginABI

/// The pattern of a route: `scheme://host/path`, parts of which may be omitted.
///
/// - `app://shop/detail/:key` matches one scheme and one host.
/// - `//shop/detail/:key` matches any scheme.
/// - `app:///detail/:key` matches any host, and `///detail/:key` any scheme and any host.
/// - `shop/detail/:key` and `/detail/:key` have the first scheme of the program.
/// - `app://` is the fallback of its scheme.
final class RoutePattern: Sendable {
    let text: String
    /// The scheme in lower case; `nil` for any scheme.
    let scheme: String?
    /// The pattern of the host; `nil` for any host.
    let host: PathPattern?
    /// The pattern of the path; `nil` for the fallback of the scheme.
    let path: PathPattern?
    /// The names that a route gives to groups without a name, by the numbers of the groups.
    let groups: [Int: String]
    /// The only method that the route answers; `nil` for every method.
    let method: RouteMethod?

    /// The offset of the path in bytes.
    private let pathStart: Int
    /// Whether all groups are whole segments of the path.
    let capturesWholeSegments: Bool

    /// Stands for the program's first scheme where that is unknown and does not matter. No URL or pattern can be
    /// written with it.
    static let unknownScheme = "?"

    /// How many segments a path may have. Each may be a node, and the search of nodes recurses on the caller's stack.
    static let mostSegments = 256

    /// Reads a pattern.
    ///
    /// - Parameters:
    ///   - first: The scheme of a pattern that is written without one, in lower case; `nil` if that is an error.
    ///   - previous: A pattern whose scheme and host are shared if they are written the same way. It was read with the
    ///     same `first`. Most patterns have the scheme and host of the previous one.
    /// - Throws: `invalidPattern`, with the position.
    init(_ text: String, scheme first: String? = nil, after previous: RoutePattern? = nil) throws(PluginError) {
        self.text = text
        groups = [:]
        method = nil
        let (schemeEnd, start, end) = text.withRawText(Self.divide)
        pathStart = end
        func part(_ start: Int, _ end: Int) -> String { text.withRawText { $0.part(start, end).string } }
        func position(_ offset: Int) -> Int { part(0, offset).unicodeScalars.count }

        if let previous, let host = previous.host, previous.groups.isEmpty, previous.pathStart == end,
            Self.share(end, text, previous.text)
        {
            scheme = previous.scheme
            self.host = host
            (path, capturesWholeSegments) = try Self.path(of: text, from: end, at: position(end), host)
            return
        }
        if let schemeEnd {
            let written = part(0, schemeEnd)
            guard Self.isScheme(written) else {
                throw .invalidPattern(
                    text, at: 0, "an invalid scheme (it must be a letter, then letters, digits, + - .)")
            }
            scheme = written.lowercased()
        } else {
            scheme = start == 0 ? first : nil
        }
        if schemeEnd != nil, start == text.utf8.count {
            host = nil
            path = nil
            capturesWholeSegments = false
            return
        }
        guard start < text.utf8.count else { throw .invalidPattern(text, at: 0, "nothing in it") }
        if start == end {
            host = nil
        } else {
            let written = Self.withoutDefaultPort(Self.escapePort(part(start, end)), scheme)
            host = try PathPattern(written, at: position(start), of: text, delimiter: ".")
        }
        (path, capturesWholeSegments) = try Self.path(of: text, from: end, at: position(end), host)
        if start == 0, first == nil {
            throw PluginError(
                .invalidPattern,
                "The pattern “\(text.shortened)” has no scheme, and no scheme is configured for such patterns: write "
                    + "scheme://host/path, or //host/path for any scheme.")
        }
    }

    private init(_ other: RoutePattern, naming groups: [Int: String]) {
        method = other.method
        let renamed = Dictionary(uniqueKeysWithValues: groups.map { (String($0), $1) })
        (text, scheme, pathStart) = (other.text, other.scheme, other.pathStart)
        capturesWholeSegments = other.capturesWholeSegments
        host = other.host.map { PathPattern($0, renaming: renamed) }
        path = other.path.map { PathPattern($0, renaming: renamed) }
        self.groups = groups
    }

    private init(_ other: RoutePattern, answering method: RouteMethod?) {
        (text, scheme, pathStart, groups) = (other.text, other.scheme, other.pathStart, other.groups)
        (host, path, capturesWholeSegments) = (other.host, other.path, other.capturesWholeSegments)
        self.method = method
    }

    /// Returns the same pattern for one method; `nil` for every method.
    func answering(_ method: RouteMethod?) -> RoutePattern {
        method == self.method ? self : RoutePattern(self, answering: method)
    }

    /// Returns the same pattern with names for groups that have none.
    ///
    /// - Parameter groups: The names, by the numbers of the groups.
    /// - Throws: `invalidPattern` if there is no such group, if a name is already that of a group, or if it is empty or
    ///   begins with a digit.
    func naming(_ groups: [Int: String]) throws(PluginError) -> RoutePattern {
        if groups.isEmpty { return self }
        var names = Set(names)
        for (number, name) in groups.sorted(by: { $0.key < $1.key }) {
            guard names.contains(String(number)) else {
                throw PluginError(
                    .invalidPattern,
                    "The pattern “\(text.shortened)” has no group \(number) without a name, which the route maps to "
                        + "“\(name.shortened)”. The groups without a name are numbered from 0.")
            }
            guard let first = name.utf8.first, !(0x30...0x39).contains(first) else {
                throw PluginError(
                    .invalidPattern,
                    "The route “\(text.shortened)” maps the group \(number) to “\(name.shortened)”, which is not a "
                        + "valid name of a parameter.")
            }
            guard names.insert(name).inserted else {
                throw PluginError(
                    .invalidPattern,
                    "The route “\(text.shortened)” maps the group \(number) to “\(name.shortened)”, but another group "
                        + "has that name.")
            }
        }
        return RoutePattern(self, naming: groups)
    }

    /// Returns the pattern of the path, and whether all groups are whole segments of it.
    private static func path(
        of text: String, from start: Int, at position: @autoclosure () -> Int, _ host: PathPattern?
    ) throws(PluginError) -> (PathPattern, Bool) {
        let path = try PathPattern(text, from: start, at: position(), earlierNames: host?.names ?? [])
        guard path.segments.count <= mostSegments else {
            throw .invalidPattern(text, at: position(), "a path of more than \(mostSegments) segments")
        }
        return (path, path.isPlain && host?.names.isEmpty != false)
    }

    /// Returns whether two texts begin with the same `count` bytes.
    private static func share(_ count: Int, _ one: String, _ other: String) -> Bool {
        one.withRawText { one in other.withRawText { other in one.part(0, count) == other.part(0, count) } }
    }

    /// The names of the groups, those of the host first.
    var names: [String] {
        let names = path?.names ?? []
        guard let host, !host.names.isEmpty else { return names }
        return host.names + names
    }

    /// The indices of the segments that the groups capture, if all groups are whole segments; otherwise empty.
    var capturedSegments: [Int] {
        guard capturesWholeSegments, let segments = path?.segments else { return [] }
        return segments.indices.filter { segments[$0].rank == .name }
    }

    /// Returns the end of the scheme, if there is one, and the beginning and end of the host. The host begins at 0 if
    /// the pattern is written without a scheme, and at 2 if it begins with two slashes.
    private static func divide(_ text: RawText) -> (scheme: Int?, host: Int, path: Int) {
        var start = 0
        let colon = text.firstIndex(of: UInt8(ascii: ":")) ?? 0
        let hasScheme = colon > 0 && colon + 2 < text.count && text[colon + 1] == 0x2F && text[colon + 2] == 0x2F
        if hasScheme {
            start = colon + 3
        } else if text.count >= 2, text[0] == 0x2F, text[1] == 0x2F {
            start = 2
        }
        return (hasScheme ? colon : nil, start, endOfHost(text, from: start))
    }

    private static func isScheme(_ text: String) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
        guard let first = text.utf8.first, isLetter(first) else { return false }
        return text.utf8.allSatisfy { byte in
            isLetter(byte) || (0x30...0x39).contains(byte) || byte == 0x2B || byte == 0x2D || byte == 0x2E
        }
    }

    /// Returns the offset at which the host ends: at the first slash outside of groups, or at a group in braces that
    /// begins with a slash.
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

    /// Escapes the colon of a port, since `localhost:8080` contains a port, not a group.
    private static func escapePort(_ host: String) -> String {
        guard let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")) else { return host }
        let port = host[host.utf8.index(after: colon)...]
        let isEscaped = host[..<colon].last == "\\"
        return port.allSatisfy(\.isNumber) && !port.isEmpty && !isEscaped ? host[..<colon] + "\\:" + port : host
    }

    /// Removes a port that is the default of the scheme.
    private static func withoutDefaultPort(_ host: String, _ scheme: String?) -> String {
        guard host.utf8.contains(UInt8(ascii: ":")), let port = scheme.flatMap({ URLText.defaultPorts[$0] }),
            host.hasSuffix("\\:\(port)")
        else { return host }
        return String(host.dropLast(port.count + 2))
    }

    /// The shape, which is the same for patterns that differ only in the names of their groups.
    var shape: Shape {
        Shape(scheme: scheme, host: host?.shape, path: path?.shape, method: method)
    }

    struct Shape: Hashable, Sendable {
        let scheme: String?
        let host: PathPattern.Shape?
        let path: PathPattern.Shape?
        /// The only method that the route answers; `nil` for every method.
        var method: RouteMethod?
    }
}

extension PathPattern {
    /// The shape of a path, which is the same for paths that differ only in the names of their groups.
    enum Shape: Hashable, Sendable {
        /// The shape of a path without optional and repeated groups and the like, which is determined by its segments.
        case segments([PathSegment])
        case parts([PatternPart])
    }

    var shape: Shape {
        if isPlain { return .segments(segments) }
        return rest == nil && variants.isEmpty ? .segments(segments.map(\.shape)) : .parts(parts.shape)
    }
}

extension PathSegment {
    fileprivate var shape: PathSegment {
        switch self {
        case .literal, .name: self
        case .mixed(let parts): .mixed(parts.shape)
        case .expression(let parts): .expression(parts.shape)
        }
    }
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
