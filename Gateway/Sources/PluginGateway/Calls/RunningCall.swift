import GatewayThreads
import PluginABI
import PluginHost
import Tracing

/// A call that has its slot: the action, and the elements of the cursor that it returns.
final class RunningCall: Sendable {
    let gateway: PluginGateway
    let call: GatewayCall
    let slot: Admission.Slot
    let connection: Connection?

    init(_ gateway: PluginGateway, _ call: GatewayCall, _ slot: Admission.Slot, _ connection: Connection?) {
        (self.gateway, self.call, self.slot, self.connection) = (gateway, call, slot, connection)
    }

    /// Calls the action. A synchronous one of this process is called without a task, which would cost more than a
    /// short call.
    ///
    /// - Parameter context: The trace and the caller that modules see.
    func open(_ context: CallContext) async throws(Problem) -> Value {
        do throws(PluginError) {
            if call.destination.declaration?.isInProcess == true { return try await begin(context) }
            return try await perform { [host = gateway.host, call] () async throws(PluginError) in
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

    /// Begins the call on one of the threads for calls, or on a thread that answers requests, as long as the calls of
    /// the action are short.
    private func begin(_ context: CallContext) async throws(PluginError) -> Value {
        let pace = call.destination.counted.pace
        let part = AwaitedPart(call, pace)
        let span = gateway.isTraced ? ServiceContext.current : nil
        let threads = RequestThreads.process
        if pace.areShort {
            threads.handOver {
                threads.run { [self] in
                    guard threads.enter() else {
                        return gateway.threads.run { self.begin(part, context, span, isShared: false) }
                    }
                    begin(part, context, span, isShared: true)
                    threads.leave()
                }
            }
        } else {
            gateway.threads.run { [self] in begin(part, context, span, isShared: false) }
        }
        return try await wait(for: part)
    }

    /// Begins the call on the current thread.
    ///
    /// - Parameter span: The span of the call, for code of the program that runs in it.
    private func begin(_ part: AwaitedPart, _ context: CallContext, _ span: ServiceContext?, isShared: Bool) {
        let start = ContinuousClock.now
        let begun =
            if let span { ServiceContext.withValue(span) { gateway.host.begin(call, context) } } else {
                gateway.host.begin(call, context)
            }
        switch begun {
        case .over(let result):
            call.destination.counted.pace.add(.now - start, isShared: isShared)
            RequestThreads.process.handOver { part.set(result) }
        case .running(let task):
            part.cancel = { task.cancel() }
            Task {
                part.set(await task.value)
                withExtendedLifetime(slot) {}
            }
        }
    }

    /// Does a part of the call on one of the threads for calls, and returns its result. Fails earlier if its time is
    /// up, the client leaves, or the gateway ends; then the part continues, and keeps the slot.
    func perform(
        _ body: @escaping @Sendable () async throws(PluginError) -> Value
    ) async throws(PluginError) -> Value {
        let part = AwaitedPart(call)
        let task = Task(executorPreference: gateway.threads) { [slot] in
            defer { withExtendedLifetime(slot) {} }
            let result: Result<Value, PluginError>
            do throws(PluginError) { result = .success(try await body()) } catch { result = .failure(error) }
            RequestThreads.process.handOver { part.set(result) }
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
    fileprivate func begin(_ call: GatewayCall, _ context: CallContext) -> BegunCall {
        begin(
            opening: call.url, method: call.method, call.parameters, origin: .remote, timeout: call.timeout,
            callContext: context)
    }

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
