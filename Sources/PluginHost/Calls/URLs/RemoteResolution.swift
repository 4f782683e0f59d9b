import PluginABI
import Synchronization

// What URLs of remote callers lead to. For them, only what is declared remote exists.

extension Table {
    /// Returns what handles a remote call of an action; `nil` if nothing does.
    func remoteDestination(_ target: plugin_string, _ action: plugin_string) -> URLHandler? {
        if let found = find(target, action)?.takeUnretainedValue(), found.isRemote { return .action(found) }
        if let notFound = find(target, plugin_string("notFound"))?.takeUnretainedValue(), notFound.isRemote {
            return .fallback(.notFound(notFound))
        }
        return nil
    }

    /// Returns what handles a remote URL that matches a route; `nil` if nothing does.
    func remoteDestination(of route: RouteEntry) -> URLHandler? {
        if let closure = route.closure { return closure.isRemote ? .closure(closure) : nil }
        let address = route.destination.address
        return remoteDestination(address.target, address.action)
    }

    /// Returns what handles a remote call of an action, or would handle it if the registered module were started.
    func remoteDeclaration(_ target: plugin_string, _ action: plugin_string) -> URLHandler? {
        if let destination = remoteDestination(target, action) { return destination }
        guard find(target, action) == nil, let known = contents.known.remoteEndpoint(target, action) else { return nil }
        return known.isNotFound ? .fallback(.notFound(known.endpoint)) : .action(known.endpoint)
    }

    /// Returns what handles a remote URL that matches a route, or would handle it if the registered module were
    /// started.
    func remoteDeclaration(of route: RouteEntry) -> URLHandler? {
        if route.closure != nil { return remoteDestination(of: route) }
        let address = route.destination.address
        return remoteDeclaration(address.target, address.action)
    }

    /// The methods with which a remote caller can open a URL by a route; empty if there is none.
    ///
    /// - Parameter missing: A method with which a remote caller cannot open it; `nil` if no such method is known.
    func remoteMethods(of url: URLText, besides missing: RouteMethod? = nil) -> [RouteMethod] {
        routes.table.methods(of: url, besides: missing) { remoteDeclaration(of: $0) != nil }
    }

    /// - Throws: `methodNotAllowed` if a remote caller can open a URL with other methods than this one.
    func checkMethods(of url: URLText, _ method: RouteMethod) throws(PluginError) {
        let methods = remoteMethods(of: url, besides: method)
        if !methods.isEmpty { throw .methodNotAllowed(url.text, method, methods) }
    }

    /// Returns why a URL leads to nothing for a remote caller, for the host's log.
    ///
    /// - Parameter passedOver: The first route that matches, but leads to nothing remote.
    func reasonForNoRoute(_ url: URLText, schemes: Set<String>, passing passedOver: RouteEntry?) -> String {
        let fallback = routes.table.fallback(url)?.entry.takeUnretainedValue()
        let named = url.targetAndAction(schemes)
        guard let route = passedOver ?? (named == nil ? fallback : nil) else {
            guard let (target, action) = named else { return leadsNowhere(url, schemes).message }
            return reasonForNoRoute(target, action)
        }
        let address = route.destination.address
        let reason =
            route.closure == nil ? reasonForNoRoute(address.target, address.action) : "Its closure is not remote."
        return "It matches the route “\(route.pattern.text.shortened)” of \(route.owner.description). \(reason)"
    }

    private func reasonForNoRoute(_ target: plugin_string, _ action: plugin_string) -> String {
        guard let found = find(target, action)?.takeUnretainedValue() else {
            return missing(target.text, action.text).message
        }
        return "\(found.title) is not declared remote."
    }
}

extension Calls {
    /// The result of resolving a URL for a remote caller.
    enum RemoteResolution {
        case found(URLResolution, URLHandler)
        /// Nothing; carries the first route that matches, but leads to nothing remote.
        case nothing(RouteEntry?)
    }

    /// Finds what a URL leads to for a remote caller: the most specific of the routes that lead to something remote,
    /// then `scheme://target/action`, then the fallback of the scheme. If nothing remote is found, the program's
    /// handler for missing targets and actions is used, whether the names are absent or only not remote.
    func resolveRemotely(
        _ url: URLText, _ query: URLText.Query, _ method: RouteMethod, in table: Table
    ) -> RemoteResolution {
        var steps = 0
        var (passedOver, named): (RouteEntry?, RouteEntry?)
        let match = table.routes.table.match(url, method, counting: &steps) { route in
            if table.remoteDeclaration(of: route) != nil { return true }
            if passedOver == nil { passedOver = route }
            if named == nil, route.closure == nil { named = route }
            return false
        }
        if let match, let destination = table.remoteDeclaration(of: match.entry.takeUnretainedValue()) {
            return .found(URLResolution(url, query, match), destination)
        }
        let handler = core.missingTargetHandler.withLock { $0 }
        let namedMatch = handler == nil ? nil : named?.match(url, counting: &steps)
        let address = url.targetAndAction(settings.schemes)
        if let (target, action) = address, let destination = table.remoteDeclaration(target, action) {
            return .found(URLResolution(url, query, target: target, action: action), destination)
        }
        let fallback = table.routes.table.fallback(url, method)
        if let fallback, let destination = table.remoteDeclaration(of: fallback.entry.takeUnretainedValue()) {
            return .found(URLResolution(url, query, fallback), destination)
        }
        guard let handler else { return .nothing(passedOver) }
        if let namedMatch { return .found(URLResolution(url, query, namedMatch), .fallback(.program(handler))) }
        if let (target, action) = address {
            return .found(URLResolution(url, query, target: target, action: action), .fallback(.program(handler)))
        }
        if let fallback, fallback.entry.takeUnretainedValue().closure == nil {
            return .found(URLResolution(url, query, fallback), .fallback(.program(handler)))
        }
        return .nothing(passedOver)
    }
}

extension PluginError {
    /// The error for a URL that leads to nothing for a remote caller. It does not reveal whether nothing is there, or
    /// something that is not remote.
    static func noRoute(_ url: String) -> PluginError {
        PluginError(
            .noRoute,
            "“\(url.shortened)” leads to nothing that other programs may open. The log of the host says why.")
    }
}
