import PluginABI

/// The result of resolving a URL. Borrows from the URL and from the table.
struct URLResolution {
    /// The URL as it was given.
    let url: RawText
    let segments: UnsafeBufferPointer<RawText>
    let query: UnsafeBufferPointer<URLText.Item>
    let target: plugin_string
    let action: plugin_string
    /// The route that matched; `nil` if the URL itself names target and action.
    let match: RouteMatch?

    var route: Unmanaged<RouteEntry>? { match?.entry }

    @inline(__always)
    fileprivate init(_ url: URLText, target: plugin_string, action: plugin_string, match: RouteMatch? = nil) {
        (self.url, segments, query) = (url.bytes, url.segments, url.query)
        (self.target, self.action, self.match) = (target, action, match)
    }

    @inline(__always)
    fileprivate init(_ url: URLText, _ match: RouteMatch) {
        let address = match.destination._withUnsafeGuaranteedRef { $0.address }
        self.init(url, target: address.target, action: address.action, match: match)
    }
}

extension Table {
    /// Finds what a URL leads to: a declared route, then `scheme://target/action`, then the fallback of the scheme.
    ///
    /// - Parameter match: The declared route that matches.
    /// - Throws: `invalidURL` for a URL that leads nowhere.
    @inline(__always)
    func resolve(_ url: URLText, _ match: RouteMatch?, schemes: Set<String>) throws(PluginError) -> URLResolution {
        if let match { return URLResolution(url, match) }
        return try resolveWithoutRoute(url, schemes)
    }

    private func resolveWithoutRoute(_ url: URLText, _ schemes: Set<String>) throws(PluginError) -> URLResolution {
        let named = url.targetAndAction
        let isKnown = named != nil && url.scheme.map { schemes.contains($0.string) } == true
        if isKnown, let (target, action) = named,
            find(target, action) != nil || find(target, plugin_string("notFound")) != nil
        {
            return URLResolution(url, target: target, action: action)
        }
        if let match = routes.table.fallback(url) { return URLResolution(url, match) }
        guard isKnown, let (target, action) = named else { throw url.leadsNowhere(schemes) }
        return URLResolution(url, target: target, action: action)
    }
}

extension URLText {
    /// Target and action of a URL of the form `scheme://target/action`.
    fileprivate var targetAndAction: (target: plugin_string, action: plugin_string)? {
        guard segments.count == 2, segments[0].isEmpty, !segments[1].isEmpty, !writtenHost.isEmpty else { return nil }
        return (plugin_string(writtenHost), plugin_string(segments[1]))
    }

    fileprivate func leadsNowhere(_ schemes: Set<String>) -> PluginError {
        let url = text
        guard let scheme = scheme?.string else {
            return PluginError(.invalidURL, "“\(url.shortened)” has no scheme, and no route matches it.")
        }
        guard schemes.contains(scheme) else {
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
