public import PluginABI

extension PluginHost {
    /// Continues a call: runs the remaining interceptors, then the action. It may be called any number of times, or not
    /// at all.
    public typealias Next = (InterceptedCall) throws -> Value
    /// Continues an asynchronous call.
    public typealias AsyncNext = (InterceptedCall) async throws -> Value

    /// Puts code around calls. It can read and change the parameters, return a result of its own, refuse the call by
    /// throwing, measure, and retry.
    ///
    ///     host.intercept(.target("A")) { call, next in
    ///         var call = call
    ///         call.parameters["user"] = "Ada"
    ///         return try next(call)
    ///     }
    ///
    /// The interceptor runs on the thread of the call, possibly concurrently; around a call that does not run on its
    /// caller's thread, it runs on a thread that it may block. Calls that it makes are intercepted, too: if it keeps
    /// calling the action that it intercepts, the call ends with ``/PluginABI/PluginError/Code/recursionLimit``. An
    /// intercepted call counts twice towards that limit. The interceptor's time counts towards the call's deadline; if
    /// it runs past the deadline, that is logged.
    ///
    /// - Parameters:
    ///   - scope: The calls to intercept.
    ///   - priority: Interceptors of higher priority are further out; at equal priority, those that were added earlier
    ///     are.
    ///   - body: The interceptor. It gets the call and the function that continues it; its result or error is the
    ///     outcome of the call.
    /// - Returns: An object that can remove the interceptor. The interceptor stays if that object is released.
    @discardableResult
    public func intercept(
        _ scope: InterceptionScope, priority: Int = 0,
        _ body: @escaping @Sendable (_ call: InterceptedCall, _ next: Next) throws -> Value
    ) -> Interceptor {
        calls.intercept(scope, priority, .synchronous(body))
    }

    /// Puts asynchronous code around calls. See ``intercept(_:priority:_:)``.
    ///
    /// A call that cannot wait for the interceptor (`perform`) ends with
    /// ``/PluginABI/PluginError/Code/asynchronousAction``.
    @discardableResult
    public func intercept(
        _ scope: InterceptionScope, priority: Int = 0,
        _ body: @escaping @Sendable (_ call: InterceptedCall, _ next: AsyncNext) async throws -> Value
    ) -> Interceptor {
        calls.intercept(scope, priority, .asynchronous(body))
    }

    /// Replaces all rules of ``HostConfiguration/interceptors``, or none if one is invalid. Calls that have begun keep
    /// the interceptors that they began with.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/invalidConfiguration`` if the route of a rule is not a valid pattern.
    public func updateInterceptors(_ rules: [InterceptorRule]) throws(PluginError) {
        for rule in rules { try rule.check(scheme: configuration.firstScheme) }
        let known = calls.registry.table.contents.known.modules
        for module in known where rules.contains(where: { $0.module == module.name }) { try? calls.start(module) }
        calls.setInterceptors(rules)
    }

    /// The interceptors of calls, outermost first: those of the program, and those of modules that the configuration
    /// names.
    public var interceptors: [InterceptorStatus] {
        let table = calls.registry.table
        let now = monotonicNow()
        return (table.interception?.entries ?? []).map { entry in
            let rule = entry.rule
            let times = core.interceptorTimes.times(of: entry.id, now: now)
            return InterceptorStatus(
                scope: entry.scope, priority: entry.priority, module: rule?.module, name: rule?.name,
                isMissing: rule.map { table.interceptors[$0.key] == nil } ?? false, overruns: times.overruns,
                lastOverrun: times.last, overdueCalls: times.overdue)
        }
    }
}
