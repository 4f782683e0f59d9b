// Which form the compiler takes for a closure:
//
// - The form for any result is favoured, so the compiler considers the others only if that form does not fit. Otherwise
//   it would try all combinations of the operators in a one-line body again for each form.
// - The forms for `Value` and for defaults that are a ready map are in OtherClosureRoutes.swift, the forms for results
//   that cannot cross the boundary in UncrossableClosureRoutes.swift. They are generic, so that a body that fits
//   several forms is taken for one without a result.

public import PluginABI

extension PluginHost {
    /// Adds a route of the program that leads to a closure.
    ///
    ///     try host.addRoute("app://catalog/:key") { parameters in
    ///         "This is \(parameters["key"]?.string ?? "")"
    ///     }
    ///
    /// The closure gets all parameters in one map: those of the URL as text, and those that the caller passes and the
    /// defaults as they are. The captures of groups without a name have their numbers as names; `_url` is the URL,
    /// `_pattern` the pattern, and `_object` whether the caller requests an object. The closure runs on the thread of
    /// the caller, possibly concurrently. Interceptors do not see its calls.
    ///
    /// - Parameters:
    ///   - pattern: The pattern.
    ///   - name: A name for ``url(for:_:)``.
    ///   - summary: One sentence about the route, for lists.
    ///   - defaults: Values for parameters that neither the caller nor the URL gives.
    ///   - isRemote: Whether other programs may open the route.
    ///   - demands: What the route demands of other programs, such as `login`; the guard checks it. Only for remote
    ///     routes.
    ///   - method: The only method that the route answers, as in ``/PluginABI/Route/method(_:)``. Default: every
    ///     method.
    ///   - body: The closure. Its result, of any type that an action can return, or the error that it throws, is the
    ///     outcome of opening the URL.
    /// - Throws: The errors of ``addRoute(_:to:name:summary:defaults:transition:groups:method:)``.
    public func addRoute(
        _ pattern: String, name: String? = nil, summary: String = "", defaults: NamedValues = [:],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) throws -> some ActionResult
    ) throws(PluginError) {
        let callback = program.callback(of: { arguments throws in try body(arguments.parameters) })
        try add(
            pattern, RouteClosure(callback: callback, isRemote: isRemote, demands: demands), name, summary,
            defaults.get(), method)
    }

    /// Adds a route of the program that leads to an asynchronous closure, for URLs that are opened with `await`. For
    /// the parameters, see the synchronous form.
    public func addRoute(
        _ pattern: String, name: String? = nil, summary: String = "", defaults: NamedValues = [:],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) async throws -> some ActionResult
    ) throws(PluginError) {
        let callback = program.callback(of: { arguments async throws in try await body(arguments.parameters) })
        try add(
            pattern, RouteClosure(callback: callback, isRemote: isRemote, demands: demands), name, summary,
            defaults.get(), method)
    }

    /// Adds a route of the program that leads to a closure without a result. For the parameters, see the form with a
    /// result.
    @_disfavoredOverload
    public func addRoute(
        _ pattern: String, name: String? = nil, summary: String = "", defaults: NamedValues = [:],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) throws -> Void
    ) throws(PluginError) {
        let callback = program.callback { arguments throws -> Value in
            try body(arguments.parameters)
            return .null
        }
        try add(
            pattern, RouteClosure(callback: callback, isRemote: isRemote, demands: demands), name, summary,
            defaults.get(), method)
    }

    /// Adds a route of the program that leads to an asynchronous closure without a result. For the parameters, see the
    /// form with a result.
    @_disfavoredOverload
    public func addRoute(
        _ pattern: String, name: String? = nil, summary: String = "", defaults: NamedValues = [:],
        isRemote: Bool = false, requires demands: [String] = [], method: RouteMethod? = nil,
        _ body: @escaping @Sendable (_ parameters: [String: Value]) async throws -> Void
    ) throws(PluginError) {
        let callback = program.callback { arguments async throws -> Value in
            try await body(arguments.parameters)
            return .null
        }
        try add(
            pattern, RouteClosure(callback: callback, isRemote: isRemote, demands: demands), name, summary,
            defaults.get(), method)
    }

    func add(
        _ pattern: String, _ closure: RouteClosure, _ name: String?, _ summary: String, _ defaults: [String: Value],
        _ method: RouteMethod?
    ) throws(PluginError) {
        let entry = RouteEntry(
            try RoutePattern(pattern, scheme: configuration.firstScheme).answering(method), to: closure, name: name,
            summary: summary, defaults: defaults)
        try changeRoutes { (routes, generations) throws(PluginError) in try routes.add(entry, generations) }
    }
}

extension [Value] {
    /// The parameters of a route's closure, which a call passes as its single argument.
    var parameters: [String: Value] { first?.map ?? [:] }
}
