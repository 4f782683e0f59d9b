// The functions of a context that concern URLs and instances.

extension HostContext {
    /// Returns whether opening a URL would reach an action: the URL parses and resolves to an action or a fallback, its
    /// parameters are valid, and the guard lets it pass. Interceptors and the action can still refuse the call.
    public func canOpen(_ url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local) -> Bool {
        guard let routes else { return false }
        let answer = try? Address.url(url).withRequest(parameters, origin, nil) { routes.pointee.can_open(host, call, $0) }
        return answer == 1
    }

    /// Builds the URL of a route. The URL opens the same route with the same parameters.
    ///
    /// - Parameters:
    ///   - route: The name of a route, or a pattern.
    ///   - parameters: Values for the groups of the pattern. Other parameters that the action declares go into the
    ///     query.
    /// - Throws: ``PluginError/Code/missingParameter``; ``PluginError/Code/unknownParameter`` if the URL has no
    ///   position for a parameter; ``PluginError/Code/mistypedParameter`` if a URL cannot carry a value;
    ///   ``PluginError/Code/conflict`` if the URL would open another route, which has precedence.
    public func url(for route: String, _ parameters: NamedValues = [:]) throws(PluginError) -> String {
        try url(for: route, parameters.get())
    }

    /// Builds the URL of a route from a map.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func url(for route: String, _ parameters: [String: Value]) throws(PluginError) -> String {
        guard let routes else {
            throw .missingExtension(PLUGIN_ROUTES_EXTENSION, .invalidURL)
        }
        var outcome: Result<Value, PluginError> = .success(.null)
        try Address.url(route).withRequest(Parameters(parameters), .local, nil) { request in
            outcome = Result { () throws(PluginError) in
                try receive { completion, data in routes.pointee.build(host, request, completion, data) }
            }
        }
        return try String(outcome.get())
    }

    /// Drops the instance that the calls of a target share. The next call makes another one; the old one is destroyed
    /// when the running calls have ended.
    ///
    /// - Parameter target: The name of the target, of any module.
    /// - Returns: Whether there was an instance. A target that has not been called yet has none.
    /// - Throws: ``PluginError/Code/unknownTarget``.
    @discardableResult
    public func release(_ target: String) throws(PluginError) -> Bool {
        guard let instances = plugin_instances_of(host) else {
            throw .missingExtension(PLUGIN_INSTANCES_EXTENSION, .unknownTarget)
        }
        let answer = try receive { completion, data in
            target.withPluginString { instances.pointee.release(host, $0, completion, data) }
        }
        return answer == true
    }

    private var routes: UnsafePointer<plugin_routes>? {
        plugin_routes_of(host)
    }
}
