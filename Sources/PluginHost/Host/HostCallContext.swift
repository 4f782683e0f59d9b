public import PluginABI

extension PluginHost {
    /// Makes calls with a call context: the trace that they are part of, and on whose behalf they are made.
    ///
    ///     let context = CallContext(trace: TraceContext(traceparent: header), caller: "ada")
    ///     let detail = try host.withCallContext(context) { context in
    ///         try context.open(url, origin: .remote)
    ///     }
    ///
    /// All calls that are made through the context that `body` receives, and all calls that these lead to, have the
    /// call context: modules, interceptors and the guard read it. The call context ends with `body`: an action that is
    /// still running after that no longer has it. Within a call that has a call context, the new one takes its place.
    /// Calls with a call context take longer than others by a fraction of a microsecond.
    ///
    /// - Parameters:
    ///   - callContext: The trace and the caller.
    ///   - body: Makes the calls. It gets a context to make them through.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`; ``/PluginABI/PluginError/Code/invalidValue`` if the name of the caller is empty
    ///   or too long; ``/PluginABI/PluginError/Code/recursionLimit``.
    public func withCallContext<Result>(
        _ callContext: CallContext, _ body: (_ context: HostContext) throws -> Result
    ) throws -> Result {
        let call = try beginCall(callContext)
        defer { core.end(call) }
        return try body(HostContext(host: core.program.hostTable, call: call.token))
    }

    /// Makes calls with a call context, without blocking a thread. See ``withCallContext(_:_:)``.
    ///
    /// - Parameters:
    ///   - callContext: The trace and the caller.
    ///   - body: Makes the calls. It gets a context to make them through.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`; ``/PluginABI/PluginError/Code/invalidValue`` if the name of the caller is empty
    ///   or too long; ``/PluginABI/PluginError/Code/recursionLimit``.
    public func withCallContext<Result>(
        _ callContext: CallContext, _ body: (_ context: HostContext) async throws -> Result
    ) async throws -> Result {
        let call = try beginCall(callContext)
        defer { core.end(call) }
        return try await body(HostContext(host: core.program.hostTable, call: call.token))
    }

    private func beginCall(_ callContext: CallContext) throws(PluginError) -> HostCore.RootCall {
        let own = InterceptedTask.call
        return try core.begin(callContext, parent: own != 0 ? own : ThreadContext.current?.currentCall ?? 0)
    }
}
