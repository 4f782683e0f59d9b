import PluginABI

/// The pattern of a route: `scheme://host/path`, any of which may be left open.
///
/// - `app://shop/detail/:key` matches one scheme and one host.
/// - `shop/detail/:key` matches any scheme.
/// - `/detail/:key` matches any scheme and any host.
/// - `app://` is the fallback of its scheme.
struct RoutePattern: Sendable {
    let text: String
    /// In lower case; nil for any.
    let scheme: String?
    /// nil for any.
    let host: PathPattern?
    /// nil for the fallback of the scheme.
    let path: PathPattern?

    /// - Throws: `invalidPattern`, with the position.
    init(_ text: String) throws(PluginError) {
        self.text = text
        let scalars = Array(text.unicodeScalars)
        var start = 0
        var scheme: String?
        if let colon = scalars.firstIndex(of: ":"), scalars[colon...].starts(with: "://".unicodeScalars), colon > 0 {
            let name = String(String.UnicodeScalarView(scalars[..<colon]))
            guard let first = scalars.first, first.isASCII, first.properties.isAlphabetic,
                name.unicodeScalars.allSatisfy({
                    $0.isASCII && ($0.properties.isAlphabetic || "0123456789+-.".unicodeScalars.contains($0))
                })
            else {
                throw .invalidPattern(text, at: 0, "a scheme that is none (a letter, then letters, digits, + - .)")
            }
            scheme = name.lowercased()
            start = colon + 3
        }
        self.scheme = scheme
        if scheme != nil, start == scalars.count {
            host = nil
            path = nil
            return
        }
        guard start < scalars.count else { throw .invalidPattern(text, at: 0, "nothing in it") }
        let end = Self.endOfHost(scalars, from: start)
        let name = String(String.UnicodeScalarView(scalars[start..<end]))
        if name.isEmpty {
            host = nil
        } else {
            host = try PathPattern(Self.escapePort(name).lowercased(), at: start, of: text, delimiter: ".")
        }
        path = try PathPattern(
            String(String.UnicodeScalarView(scalars[end...])), at: end, of: text, delimiter: "/")
    }

    /// The first slash that is not inside a group, nor the one that belongs to an optional group behind the host.
    private static func endOfHost(_ scalars: [UnicodeScalar], from start: Int) -> Int {
        var depth = 0
        var index = start
        while index < scalars.count {
            switch scalars[index] {
            case "\\": index += 1
            case "(": depth += 1
            case ")": depth -= 1
            case "{" where index + 1 < scalars.count && scalars[index + 1] == "/" && depth == 0: return index
            case "/" where depth == 0: return index
            default: break
            }
            index += 1
        }
        return scalars.count
    }

    /// `localhost:8080` names a port, not a group.
    private static func escapePort(_ host: String) -> String {
        guard let colon = host.lastIndex(of: ":") else { return host }
        let port = host[host.index(after: colon)...]
        return port.allSatisfy(\.isNumber) && !port.isEmpty ? host[..<colon] + "\\:" + port : host
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
    fileprivate var shape: [PatternPart] {
        parts.map { part in
            var part = part
            part.name = part.name.isEmpty ? "" : "_"
            return part
        }
    }
}
