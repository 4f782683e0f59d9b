import GatewayThreads
import PluginABI
import PluginHost

/// A call that has its slot: the action, and the elements of the cursor that it returns.
final class RunningCall: Sendable {
    let gateway: PluginGateway
    let call: GatewayCall
    let slot: Admission.Slot
    let connection: Connection?

    init(_ gateway: PluginGateway, _ call: GatewayCall, _ slot: Admission.Slot, _ connection: Connection?) {
        (self.gateway, self.call, self.slot, self.connection) = (gateway, call, slot, connection)
    }

    /// Calls the action.
    ///
    /// - Parameter context: The trace and the caller that modules see.
    func open(_ context: CallContext) async throws(Problem) -> Value {
        do throws(PluginError) {
            let mayShareThreads = call.destination.declaration?.mayShareThreads == true
            let pace = mayShareThreads ? call.destination.counted.pace : nil
            return try await perform(pace) { [host = gateway.host, call] () async throws(PluginError) in
                if context.isEmpty { return try await host.open(call) }
                do {
                    return try await host.withCallContext(context) { host in try await host.open(call) }
                } catch {
                    throw error as? PluginError ?? PluginError(.actionFailed, "\(error)")
                }
            }
        } catch {
            throw Problem(error)
        }
    }

    /// Does a part of the call on one of the threads for calls, and returns its result. Fails earlier if its time is
    /// up, the client leaves, or the gateway ends; then the part continues, and keeps the slot.
    ///
    /// - Parameter pace: The pace of the calls, if they can run on the shared threads as long as they are short.
    func perform(
        _ pace: CallPace? = nil, _ body: @escaping @Sendable () async throws(PluginError) -> Value
    ) async throws(PluginError) -> Value {
        let part = AwaitedPart(call, pace)
        let threads = RequestThreads.process
        @Sendable func run(isShared: Bool) async {
            let start = ContinuousClock.now
            let result: Result<Value, PluginError>
            do throws(PluginError) { result = .success(try await body()) } catch { result = .failure(error) }
            pace?.add(.now - start, isShared: isShared)
            threads.handOver { part.set(result) }
        }
        let task: Task<Void, Never>
        if let pace, pace.areShort {
            task = threads.handOver {
                Task(executorPreference: threads) { [gateway, slot] in
                    defer { withExtendedLifetime(slot) {} }
                    guard threads.enter() else {
                        return await withTaskExecutorPreference(gateway.threads) { await run(isShared: false) }
                    }
                    await run(isShared: true)
                    threads.leave()
                }
            }
        } else {
            task = Task(executorPreference: gateway.threads) { [slot] in
                defer { withExtendedLifetime(slot) {} }
                await run(isShared: false)
            }
        }
        part.cancel = { task.cancel() }
        return try await wait(for: part)
    }

    private func wait(for part: AwaitedPart) async throws(PluginError) -> Value {
        // The host ends calls at their deadline, but cannot interrupt synchronous actions.
        let number = gateway.calls.add(part, until: .now + call.timeout + Self.patience)
        defer { gateway.calls.remove(number) }
        var connected: Departures.Connected?
        if let connection { connected = await gateway.departures.watch(connection, part) }
        defer { connected?.forget() }
        let result = await withTaskCancellationHandler {
            await part.result()
        } onCancel: {
            part.end(.gatewayEnds)
        }
        return try result.get()
    }

    /// How long the gateway waits for the host to end a call after its deadline.
    private static let patience = Duration.milliseconds(100)
}

extension PluginHost {
    fileprivate func open(_ call: GatewayCall) async throws(PluginError) -> Value {
        try await open(
            call.url, method: call.method, call.parameters, origin: .remote, timeout: call.timeout)
    }
}

extension HostContext {
    fileprivate func open(_ call: GatewayCall) async throws(PluginError) -> Value {
        try await open(
            call.url, method: call.method, call.parameters, origin: .remote, timeout: call.timeout)
    }
}
