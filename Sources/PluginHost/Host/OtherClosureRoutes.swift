public import PluginABI

// The forms of `addRoute` for results that are written as `.string(…)`, and for defaults that are a ready map.

extension PluginHost {
    /// Adds a route that leads to a closure with a ready-made result, such as `.string(text)`.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func addRoute(
        _ pattern: some StringProtocol, name: String? = nil, summary: String = "", defaults: NamedValues = [:],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) throws -> Value
    ) throws(PluginError) {
        let callback = program.callback(of: { arguments throws in try body(arguments.parameters) })
        try add(
            String(pattern), RouteClosure(callback: callback, isRemote: isRemote, demands: demands), name, summary,
            defaults.get(), method)
    }

    /// Adds a route that leads to an asynchronous closure with a ready-made result.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func addRoute(
        _ pattern: some StringProtocol, name: String? = nil, summary: String = "", defaults: NamedValues = [:],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) async throws -> Value
    ) throws(PluginError) {
        let callback = program.callback(of: { arguments async throws in try await body(arguments.parameters) })
        try add(
            String(pattern), RouteClosure(callback: callback, isRemote: isRemote, demands: demands), name, summary,
            defaults.get(), method)
    }

    /// Adds a route that leads to a closure, with defaults that are a map.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func addRoute(
        _ pattern: some StringProtocol, name: String? = nil, summary: String = "", defaults: [String: Value],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) throws -> Value
    ) throws(PluginError) {
        let callback = program.callback(of: { arguments throws in try body(arguments.parameters) })
        try add(
            String(pattern), RouteClosure(callback: callback, isRemote: isRemote, demands: demands), name, summary,
            defaults, method)
    }

    /// Adds a route that leads to an asynchronous closure, with defaults that are a map.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func addRoute(
        _ pattern: some StringProtocol, name: String? = nil, summary: String = "", defaults: [String: Value],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) async throws -> Value
    ) throws(PluginError) {
        let callback = program.callback(of: { arguments async throws in try await body(arguments.parameters) })
        try add(
            String(pattern), RouteClosure(callback: callback, isRemote: isRemote, demands: demands), name, summary,
            defaults, method)
    }

    /// Adds a route that leads to a closure without a result, with defaults that are a map.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func addRoute(
        _ pattern: String, name: String? = nil, summary: String = "", defaults: [String: Value],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) throws -> Void
    ) throws(PluginError) {
        let callback = program.callback { arguments throws -> Value in
            try body(arguments.parameters)
            return .null
        }
        try add(
            pattern, RouteClosure(callback: callback, isRemote: isRemote, demands: demands), name, summary, defaults,
            method)
    }

    /// Adds a route that leads to an asynchronous closure without a result, with defaults that are a map.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func addRoute(
        _ pattern: String, name: String? = nil, summary: String = "", defaults: [String: Value],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) async throws -> Void
    ) throws(PluginError) {
        let callback = program.callback { arguments async throws -> Value in
            try await body(arguments.parameters)
            return .null
        }
        try add(
            pattern, RouteClosure(callback: callback, isRemote: isRemote, demands: demands), name, summary, defaults,
            method)
    }
}
