import PluginABI

/// The result of resolving a URL. Borrows from the URL and from the table.
struct URLResolution {
    /// The URL as it was given.
    let url: RawText
    let segments: UnsafeBufferPointer<RawText>
    let query: URLText.Query
    let target: plugin_string
    let action: plugin_string
    /// The route that matched; `nil` if the URL itself names target and action.
    let match: RouteMatch?

    var route: Unmanaged<RouteEntry>? { match?.entry }

    @inline(__always)
    init(
        _ url: URLText, _ query: URLText.Query, target: plugin_string, action: plugin_string, match: RouteMatch? = nil
    ) {
        (self.url, segments, self.query) = (url.bytes, url.segments, query)
        (self.target, self.action, self.match) = (target, action, match)
    }

    @inline(__always)
    init(_ url: URLText, _ query: URLText.Query, _ match: RouteMatch) {
        let address = match.destination._withUnsafeGuaranteedRef { $0.address }
        self.init(url, query, target: address.target, action: address.action, match: match)
    }
}

extension Table {
    /// Finds what a URL leads to: a declared route, then `scheme://target/action`, then the fallback of the scheme.
    ///
    /// - Parameter match: The declared route that matches, and answers the method.
    /// - Throws: `invalidURL` for a URL that leads nowhere; `methodNotAllowed`.
    @inline(__always)
    func resolve(
        _ url: URLText, _ query: URLText.Query, _ match: RouteMatch?,
        _ method: @autoclosure () throws(PluginError) -> RouteMethod, schemes: Set<String>
    ) throws(PluginError) -> URLResolution {
        if let match { return URLResolution(url, query, match) }
        return try resolveWithoutRoute(url, query, try method(), schemes)
    }

    @inline(never)
    private func resolveWithoutRoute(
        _ url: URLText, _ query: URLText.Query, _ method: RouteMethod, _ schemes: Set<String>
    ) throws(PluginError) -> URLResolution {
        let named = url.targetAndAction(schemes)
        if let (target, action) = named,
            find(target, action) != nil || find(target, plugin_string("notFound")) != nil
                || contents.known.module(answering: target, action) != nil
        {
            return URLResolution(url, query, target: target, action: action)
        }
        if let match = routes.table.fallback(url, method) { return URLResolution(url, query, match) }
        let methods = routes.table.methods(of: url, besides: method) { _ in true }
        if !methods.isEmpty { throw .methodNotAllowed(url.text, method, methods) }
        guard let (target, action) = named else { throw leadsNowhere(url, schemes) }
        return URLResolution(url, query, target: target, action: action)
    }

    /// Returns the error for a URL that no route matches and that names no target and action.
    func leadsNowhere(_ url: URLText, _ schemes: Set<String>) -> PluginError {
        url.leadsNowhere(schemes, hasRoutes: url.scheme.map(routes.table.hasRoutes) == true)
    }
}

extension URLText {
    /// Target and action of a URL of the form `scheme://target/action`; `nil` for other URLs, and for schemes other
    /// than those of the program. Decodes the slashes in the action's text, so no pattern can be matched afterwards.
    func targetAndAction(_ schemes: Set<String>) -> (target: plugin_string, action: plugin_string)? {
        guard let (target, action) = namedSegments(schemes) else { return nil }
        return (plugin_string(target), plugin_string(action.withSlashes()))
    }

    /// The texts of target and action, under the conditions of ``targetAndAction(_:)``.
    func namedSegments(_ schemes: Set<String>) -> (target: RawText, action: RawText)? {
        guard segments.count == 2, segments[0].isEmpty, !segments[1].isEmpty, !writtenHost.isEmpty,
            let scheme, schemes.contains(scheme.string)
        else { return nil }
        return (writtenHost, segments[1])
    }

    /// - Parameter hasRoutes: Whether a route has the scheme of this URL.
    fileprivate func leadsNowhere(_ schemes: Set<String>, hasRoutes: Bool) -> PluginError {
        let url = text
        let scheme = scheme?.string ?? ""
        guard schemes.contains(scheme) else {
            if hasRoutes {
                return PluginError(
                    .invalidURL,
                    "“\(url.shortened)” matches none of the routes with the scheme “\(scheme.shortened)://”. "
                        + "'pluginhost routes' lists them.")
            }
            let known = schemes.sorted().map { "\($0)://" }.joined(separator: ", ")
            return PluginError(
                .invalidURL,
                "“\(url.shortened)” matches no route, and “\(scheme.shortened)://” is not a scheme of this program, "
                    + "which accepts \(known.isEmpty ? "none" : known).")
        }
        return PluginError(
            .invalidURL,
            "“\(url.shortened)” matches no route, and does not have exactly a target and an action "
                + "(scheme://target/action).")
    }
}

extension RawText {
    /// Returns a segment of a URL with `/` for escaped slashes, in the same memory. If there are any, the segment was
    /// decoded, so the memory is that of `URLText`. No pattern can be matched afterwards.
    fileprivate func withSlashes() -> RawText {
        let memory = UnsafeMutableBufferPointer(mutating: self)
        for index in memory.indices where memory[index] == Self.escapedSlash { memory[index] = UInt8(ascii: "/") }
        return self
    }
}
