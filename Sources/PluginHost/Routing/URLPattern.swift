public import PluginABI

/// A URL pattern as in routes, for use on its own.
///
/// A pattern has the form `scheme://host/path`. The path and the host are WHATWG URL Patterns (`:name`, `*`, `{…}`,
/// `(regex)` of the regular subset, `?` `+` `*`), matched in linear time. If neither the pattern nor the URL has a
/// scheme, both are plain paths.
public struct URLPattern: Sendable {
    private let text: String
    private let route: RoutePattern?
    private let path: PathPattern?

    /// Reads a pattern.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/invalidPattern``, with the position of the error.
    public init(_ pattern: String) throws(PluginError) {
        text = pattern
        if pattern.contains("://") {
            route = try RoutePattern(pattern)
            path = nil
        } else {
            route = nil
            path = try PathPattern(pattern)
        }
    }

    /// Returns the captures of the groups in a URL by name, or `nil` if the URL does not match. Groups without a name
    /// are numbered from "0". The value of a group that took no part in the match is null.
    ///
    /// - Parameters:
    ///   - url: The URL, or a path if the pattern is a path.
    ///   - maximumLength: How many bytes the URL may have, 256 to 262,144. The default is that of
    ///     ``PluginHost/HostConfiguration/maximumURLLength``.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidURL`` if `url` is not a valid URL, or too long.
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
        guard route != nil || url.contains("://") else {
            return path?.match(PathScalars.withoutDots(try PathScalars.decode(url)))
        }
        let route = if let route { route } else { try RoutePattern(text) }
        return try URLText.read(url, longest: longest) { route.match($0) }
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
