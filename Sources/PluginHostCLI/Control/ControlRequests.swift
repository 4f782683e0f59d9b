internal import PluginABI
internal import PluginHost

/// Where requests of the control socket run, and how many of them.
///
/// A client's lines are parsed, and its answers written, on one thread at a time; that is the client's own, so that none
/// waits for another. The host's own methods run there, too, and never wait for code of modules. Everything else needs one
/// of the ``CallSlots``, and gets a thread that it may block.
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
        self.limits = limits
        self.handler = handler
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

    /// Notes that a client is closed.
    func clientHasGone(_ client: Int) { slots.clientHasGone(client) }

    /// What answers the lines of a client.
    ///
    /// - Parameter isReserve: Whether the client has one of the places that are kept for the host's own methods.
    func endpoint(
        for client: Int, _ load: ClientLoad, _ executor: ClientExecutor, isReserve: Bool = false
    ) -> RPCEndpoint {
        RPCEndpoint(
            handler: { [handler, calls] method, parameters async throws(RPCError) in
                guard Self.runsModules(method) else { return try await handler(method, parameters) }
                // A task of its own: a preference for other threads, within the same task, moves no function there that
                // runs where its caller does.
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
                        "This host serves \(self.limits.connections) clients, and none of them is idle. Until one ends, it "
                            + "answers only \(HostMethod.all.filter { !$0.waits }.map(\.name).joined(separator: ", "))."
                    )
                }
                return try await self.admit(method, of: client, load)
            },
            executor: executor, load: load, longTexts: longTexts)
    }

    private static func runsModules(_ method: String) -> Bool { HostMethod.named[method]?.runsModules ?? true }

    /// Lets a request begin. Returns what its end calls.
    ///
    /// - Throws: `overloaded`.
    private func admit(
        _ method: String, of client: Int, _ load: ClientLoad
    ) async throws(RPCError) -> @Sendable () -> Void {
        try load.admit()
        guard Self.runsModules(method) else { return {} }
        do throws(PluginError) { try await slots.enter(client) } catch { throw .host(error) }
        if Task.isCancelled {  // The client has gone meanwhile, and its calls that run have been counted.
            slots.leave(client)
            throw .host(PluginError(.cancelled, "The client has gone."))
        }
        guard callThreads.hasThread else {
            slots.leave(client)
            throw .overloaded(
                "The system has no thread left for the call. \(ProcessLimits.ofThreads)")
        }
        return { [slots] in slots.leave(client) }
    }
}
