import CPluginABI

// What a module can ask about URLs and instances.

extension HostContext {
    /// Whether opening a URL would reach an action: exactly when the URL parses and resolves to an action or to a
    /// fallback, its parameters check, and the guard passes. What interceptors or the action will say is not foretold.
    public func canOpen(_ url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local) -> Bool {
        guard let routes else { return false }
        let answer = try? Address.url(url).withRequest(parameters, origin, nil) { routes.pointee.can_open(host, $0) }
        return answer == 1
    }

    /// Builds the URL of a route. What it builds opens the same route with the same parameters.
    ///
    /// - Parameters:
    ///   - route: The name of a route, or a pattern.
    ///   - parameters: Values for the groups of the pattern. What the action declares beyond them stands in the query.
    /// - Throws: ``PluginError/Code/missingParameter``, ``PluginError/Code/unknownParameter`` for one that has no place,
    ///   ``PluginError/Code/mistypedParameter`` for a value that a URL cannot carry, ``PluginError/Code/conflict`` for values
    ///   with which a route that comes before it would be opened.
    public func url(for route: String, _ parameters: [String: Value] = [:]) throws(PluginError) -> String {
        guard let routes else {
            throw PluginError(.invalidURL, "This host lacks the extension \(PLUGIN_ROUTES_EXTENSION).")
        }
        var outcome: Result<Value, PluginError> = .success(.null)
        try Address.url(route).withRequest(Parameters(parameters), .local, nil) { request in
            outcome = Result { () throws(PluginError) in
                try receive { completion, data in routes.pointee.build(host, request, completion, data) }
            }
        }
        return try String(outcome.get())
    }

    /// Drops the instance that the calls of a target share. The next call makes another; the old one is destroyed when the
    /// calls that run now have ended.
    ///
    /// - Parameter target: The name of the target, of any module.
    /// - Returns: Whether there was one: a target that has not been called yet has none.
    /// - Throws: ``PluginError/Code/unknownTarget``.
    @discardableResult
    public func release(_ target: String) throws(PluginError) -> Bool {
        guard let instances = host.table(HostExtension.instances, as: plugin_instances.self) else {
            throw PluginError(.unknownTarget, "This host lacks the extension \(PLUGIN_INSTANCES_EXTENSION).")
        }
        let answer = try receive { completion, data in
            target.withPluginString { instances.pointee.release(host, $0, completion, data) }
        }
        return answer == true
    }

    private var routes: UnsafePointer<plugin_routes>? {
        host.table(HostExtension.routes, as: plugin_routes.self)
    }
}
