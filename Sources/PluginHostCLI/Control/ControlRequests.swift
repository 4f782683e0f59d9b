internal import PluginABI
internal import PluginHost

/// Decides on which threads requests of the control socket run, and how many run at a time.
///
/// A client's lines are parsed, and its answers encoded, on one thread at a time. This thread belongs to the client, so
/// that no client waits for another. The host's own methods also run there. They never wait for code of modules, but
/// some of them wait for the start of the host. All other methods need one of the ``CallSlots``, and get a thread that
/// they may block.
final class ControlRequests: Sendable {
    private let limits: ControlServer.Limits
    private let handler: RPCEndpoint.Handler
    private let slots: CallSlots
    private let total = ClientLoad.Total()
    private let clientThreads: ThreadPool
    private let callThreads: ThreadPool
    private let calls: BlockingExecutor
    private let longTexts = LongTexts()

    init(limits: ControlServer.Limits, handler: @escaping RPCEndpoint.Handler) {
        (self.limits, self.handler) = (limits, handler)
        slots = CallSlots(limits.calls)
        clientThreads = ThreadPool("host.clients", limit: limits.connections + limits.reserve)
        callThreads = ThreadPool("host.calls", limit: limits.calls.shared + limits.connections + limits.calls.orphans)
        calls = BlockingExecutor(callThreads)
        clientThreads.retainThread()
        callThreads.retainThread()
    }

    func end() {
        clientThreads.releaseThread()
        callThreads.releaseThread()
    }

    func newLoad() -> ClientLoad {
        ClientLoad(total, limit: limits.unreadBytes, limitInAll: limits.unreadBytesInAll)
    }

    func newExecutor() -> ClientExecutor { ClientExecutor(clientThreads) }

    /// Records that a client is closed.
    func clientHasGone(_ client: Int) { slots.clientHasGone(client) }

    /// Returns the endpoint that answers the lines of a client.
    ///
    /// - Parameter isReserve: Whether the client has one of the connections that are reserved for the host's own
    ///   methods.
    func endpoint(
        for client: Int, _ load: ClientLoad, _ executor: ClientExecutor, isReserve: Bool = false
    ) -> RPCEndpoint {
        RPCEndpoint(
            handler: { [handler, calls] method, parameters async throws(RPCError) in
                guard Self.runsModules(method) else { return try await handler(method, parameters) }
                // A new task: within the same task, an executor preference would not move functions that run on their
                // caller's executor.
                let call = Task(executorPreference: calls) { () async -> Result<Value, RPCError> in
                    do throws(RPCError) { return .success(try await handler(method, parameters)) } catch {
                        return .failure(error)
                    }
                }
                return try await withTaskCancellationHandler {
                    await call.value
                } onCancel: {
                    call.cancel()
                }.get()
            },
            gate: { method async throws(RPCError) in
                if isReserve, HostMethod.named[method]?.waits != false {
                    throw .overloaded(
                        "This host already serves \(self.limits.connections) clients, and none of them is idle. Until one "
                            + "ends, this connection can use only "
                            + "\(HostMethod.all.filter { !$0.waits }.map(\.name).joined(separator: ", "))."
                    )
                }
                return try await self.admit(method, of: client, load)
            },
            executor: executor, load: load, longTexts: longTexts)
    }

    private static func runsModules(_ method: String) -> Bool { HostMethod.named[method]?.runsModules ?? true }

    /// Admits a request. Returns a function that must be called when the request has ended.
    ///
    /// - Throws: `overloaded`.
    private func admit(
        _ method: String, of client: Int, _ load: ClientLoad
    ) async throws(RPCError) -> @Sendable () -> Void {
        try load.admit()
        guard Self.runsModules(method) else { return {} }
        do throws(PluginError) { try await slots.enter(client) } catch { throw .host(error) }
        if Task.isCancelled {  // The client has gone, and its running calls are already counted: no more may begin.
            slots.leave(client)
            throw .host(PluginError(.cancelled, "The client has disconnected."))
        }
        guard callThreads.hasThread else {
            slots.leave(client)
            throw .overloaded(
                "The system has no thread left for the call. \(ProcessLimits.ofThreads)")
        }
        return { [slots] in slots.leave(client) }
    }
}
