public import PluginABI

/// A URL pattern as in routes, for use on its own.
///
/// A pattern has the form `scheme://host/path`, or `//host/path` for any scheme. The path and the host are WHATWG URL
/// Patterns (`:name`, `*`, `{…}`, `(regex)` of the regular subset, `?` `+` `*`), matched in linear time.
///
/// A pattern or URL that is written without a scheme has the scheme that is given here, just as it has the first one of
/// ``PluginHost/HostConfiguration/schemes`` in a program. If none is given, a pattern without a scheme is that of a
/// plain path (`/detail/:key`), and matches plain paths.
public struct URLPattern: Sendable {
    private let scheme: String?
    private let pattern: Pattern

    private enum Pattern {
        case route(RoutePattern)
        case path(PathPattern)
    }

    /// Reads a pattern.
    ///
    /// - Parameters:
    ///   - pattern: The pattern.
    ///   - scheme: The scheme of a pattern and of URLs that are written without one. Default: none.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidPattern``, with the position of the error.
    public init(_ pattern: String, scheme: String? = nil) throws(PluginError) {
        self.scheme = scheme?.lowercased()
        self.pattern =
            scheme == nil && !pattern.contains("://") && !pattern.hasPrefix("//")
            ? .path(try PathPattern(pattern)) : .route(try RoutePattern(pattern, scheme: self.scheme))
    }

    /// Returns the captures of the groups in a URL by name, or `nil` if the URL does not match. Groups without a name
    /// are numbered from "0". The value of a group that took no part in the match is null.
    ///
    /// - Parameters:
    ///   - url: The URL, or a path if the pattern is that of a path.
    ///   - maximumLength: How many bytes the URL may have, 256 to 262,144. The default is that of
    ///     ``PluginHost/HostConfiguration/maximumURLLength``.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidURL`` if `url` is not a valid URL, is too long, or has a scheme
    ///   and the pattern is that of a path.
    public func match(
        _ url: String, maximumLength: Int = URLPattern.defaultLength
    ) throws(PluginError) -> [String: Value]? {
        let longest = min(max(maximumLength, URLText.lengths.lowerBound), URLText.lengths.upperBound)
        guard url.utf8.count <= longest else { throw .tooLong(url.utf8.count, longest) }
        guard let taken = try groups(url, longest) else { return nil }
        return taken.mapValues { $0.map(Value.string) ?? .null }
    }

    /// How many bytes a URL may have by default: 16 KiB.
    public static let defaultLength = 16_384

    private func groups(_ url: String, _ longest: Int) throws(PluginError) -> [String: String?]? {
        switch pattern {
        case .route(let route):
            return try URLText.read(url, longest: longest, scheme: scheme) { route.match($0) }
        case .path(let path):
            guard !url.contains("://") else {
                throw PluginError(
                    .invalidURL,
                    "“\(url.shortened)” has a scheme, but the pattern “\(path.text.shortened)” has none and matches "
                        + "only plain paths. Write scheme://host/path in the pattern, or //host/path for any scheme."
                )
            }
            return path.match(PathScalars.withoutDots(try PathScalars.decode(url)))
        }
    }
}

extension RoutePattern {
    /// Returns the captures of the groups in a URL; `nil` if it does not match.
    func match(_ url: URLText) -> [String: String?]? {
        guard scheme == nil || scheme == url.scheme?.string else { return nil }
        guard let path else { return [:] }
        guard var taken = path.match(PathScalars.scalars(url.path)) else { return nil }
        if let host {
            guard let name = url.host, let groups = host.match(PathScalars.scalars(name)) else { return nil }
            taken.merge(groups) { path, _ in path }
        }
        return taken
    }
}
