public import PluginABI

extension PluginHost {
    /// The rest of a call: further interceptors, then the action. May be called any number of times, or not at all.
    public typealias Next = (InterceptedCall) throws -> Value
    /// The rest of a call, asynchronously.
    public typealias AsyncNext = (InterceptedCall) async throws -> Value

    /// Puts code around calls: it can read and change the parameters, answer itself, refuse by throwing, measure, try
    /// again.
    ///
    ///     host.intercept(.target("A")) { call, next in
    ///         var call = call
    ///         call.parameters["user"] = "Ada"
    ///         return try next(call)
    ///     }
    ///
    /// It runs on the thread of the call, also concurrently; around a call that does not run on the thread of its
    /// caller, on a thread that it may block. Calls that it makes itself are intercepted, too: one that calls without
    /// end what it is put around ends with ``/PluginABI/PluginError/Code/recursionLimit``. An intercepted call counts
    /// twice towards that limit. The deadline of the call includes it; when it runs past it, the log says so.
    ///
    /// - Parameters:
    ///   - scope: Which calls it sees.
    ///   - priority: The higher one is outside; of equal ones the one that was there first.
    ///   - body: Gets the call and the rest of it; what it returns or throws is the outcome.
    /// - Returns: What takes it away; it stays where that is dropped.
    @discardableResult
    public func intercept(
        _ scope: InterceptionScope, priority: Int = 0,
        _ body: @escaping @Sendable (_ call: InterceptedCall, _ next: Next) throws -> Value
    ) -> Interceptor {
        calls.intercept(scope, priority, .synchronous(body))
    }

    /// Puts asynchronous code around calls. See ``intercept(_:priority:_:)``.
    ///
    /// A call that cannot wait for it (`perform`) ends with ``/PluginABI/PluginError/Code/asynchronousAction``.
    @discardableResult
    public func intercept(
        _ scope: InterceptionScope, priority: Int = 0,
        _ body: @escaping @Sendable (_ call: InterceptedCall, _ next: AsyncNext) async throws -> Value
    ) -> Interceptor {
        calls.intercept(scope, priority, .asynchronous(body))
    }
}

extension PluginHost {
    /// Replaces the rules of ``HostConfiguration/interceptors``, whole or not at all. Calls that have begun pass as they have
    /// begun.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/invalidConfiguration`` for a rule whose route is no pattern.
    public func updateInterceptors(_ rules: [InterceptorRule]) throws(PluginError) {
        for rule in rules { try rule.check() }
        calls.setInterceptors(rules)
    }
}

extension PluginHost {
    /// What stands around calls, outermost first: code of the program, and of modules that the configuration names.
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
