public import PluginABI

/// A pattern of URLs, as routes have it, to be tried on its own.
///
/// `scheme://host/path`: the path and the host are WHATWG URL Patterns (`:name`, `*`, `{…}`, `(regex)` of the regular
/// subset, `?` `+` `*`), matched in linear time. Where pattern and URL are both without a scheme they are plain paths.
public struct URLPattern: Sendable {
    private let text: String
    private let route: RoutePattern?
    private let path: PathPattern?

    /// Reads a pattern.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/invalidPattern``, with the position of what is wrong.
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

    /// What the groups take of a URL: by name, those without one by number from "0" on. A group that took no part is
    /// null. nil when the URL does not match.
    ///
    /// - Parameters:
    ///   - url: The URL, or a path where the pattern is one.
    ///   - maximumLength: How many bytes it may have, 256 to 262,144. Default: as
    ///     ``PluginHost/HostConfiguration/maximumURLLength``.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidURL`` for a text that is no URL, or too long.
    public func match(
        _ url: String, maximumLength: Int = URLPattern.defaultLength
    ) throws(PluginError) -> [String: Value]? {
        let longest = min(max(maximumLength, URLText.lengths.lowerBound), URLText.lengths.upperBound)
        guard url.utf8.count <= longest else { throw .tooLong(url.utf8.count, longest) }
        guard let taken = try groups(url, longest) else { return nil }
        return taken.mapValues { $0.map(Value.string) ?? .null }
    }

    /// How many bytes a URL may have where nothing else is said: 16 KiB.
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
    /// What the groups take of a URL; nil when it does not match.
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
