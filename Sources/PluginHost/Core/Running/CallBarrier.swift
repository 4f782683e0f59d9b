import CPluginHost
import Dispatch
import Glibc
import PluginABI
import Synchronization

/// A barrier that blocks new calls of a generation while it hands over its state, or is started again after a crash.
/// Running calls, and the calls they make, continue.
final class CallBarrier: Sendable {
    private struct State {
        var isOver = false
        var waiting: [@Sendable () -> Void] = []
    }

    private let generation: Generation
    private let limit: Int
    private let queues: [SerialThread]
    private let state = Mutex(State())

    /// - Parameters:
    ///   - limit: The number of calls that may wait.
    ///   - queues: The queues whose work leads to the end of the barrier.
    init(_ generation: Generation, limit: Int, endedOn queues: [SerialThread]) {
        (self.generation, self.limit, self.queues) = (generation, limit, queues)
        generation.barrier.withLock { $0 = self }
        for endpoint in generation.blockableEndpoints { endpoint.isBlocked.store(true, ordering: .relaxed) }
        // Every thread that did not see the flag has entered its call in a record by now.
        plugin_host_fence_heavy()
    }

    /// Waits until no call of the generation is running.
    ///
    /// - Throws: `deadlineExceeded`, naming the calls that are running.
    func waitForCalls(until deadline: DispatchTime) throws(PluginError) {
        // Checked twice, because running calls may make others while they are counted.
        while generation.actionsInFlight > 0 || generation.actionsInFlight > 0 || generation.hasLateCalls {
            guard DispatchTime.now() < deadline else {
                let reason =
                    generation.hasLateCalls
                    ? "still runs a call that did not end before its deadline"
                    : GenerationStatus(generation, .active).holds
                throw PluginError(.deadlineExceeded, "\(generation.label) \(reason)")
            }
            usleep(200)
        }
    }

    /// Lets the waiting calls proceed to the generation that serves now.
    ///
    /// - Parameter isSucceeded: Whether another generation serves now. If so, calls by name that were found in the
    ///   previous table but arrive only now must not run in this generation and are redirected as well. Calls on its
    ///   objects continue.
    func end(isSucceeded: Bool) {
        let free = isSucceeded ? generation.endpointsOfObjects : generation.blockableEndpoints
        for endpoint in free { endpoint.isBlocked.store(false, ordering: .relaxed) }
        if !isSucceeded { generation.barrier.withLock { $0 = nil } }
        let waiting = state.withLock { state in
            state.isOver = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for proceed in waiting { proceed() }
    }

    /// Blocks this thread until calls may proceed. Returns false if they may not in time.
    ///
    /// - Throws: `circularWait` if this thread has one of the queues that lead to the end; `overloaded` if too many
    ///   calls are waiting.
    func wait(until deadline: DispatchTime) throws(PluginError) -> Bool {
        guard isOver || !queues.contains(where: \.isCurrent) else {
            throw PluginError(
                .circularWait,
                "\(generation.name) \(reason), and a call from the thread that does this, for instance in a log "
                    + "closure, cannot wait for it. Make the call on another thread.")
        }
        let isOver = DispatchSemaphore(value: 0)
        try whenOver { isOver.signal() }
        return isOver.wait(timeout: deadline) == .success
    }

    /// Whether calls may proceed.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Calls `body` when calls may proceed; immediately if they already may.
    ///
    /// - Throws: `overloaded` if too many calls are waiting.
    func whenOver(_ body: @escaping @Sendable () -> Void) throws(PluginError) {
        let isOver: Bool? = state.withLock { state in
            if state.isOver { return true }
            guard state.waiting.count < limit else { return nil }
            state.waiting.append(body)
            return false
        }
        guard let isOver else {
            throw PluginError(
                .overloaded, "\(generation.name) \(reason), and at most \(limit) calls may wait for that. Try again.")
        }
        if isOver { body() }
    }

    private var reason: String {
        generation.hasCrashed ? "is being started again after a crash" : "is handing over its state to its next version"
    }
}

extension Generation {
    /// The number of actions that are running in it. Interceptors that precede an action do not count.
    fileprivate var actionsInFlight: Int {
        runningCalls().count { $0.belongs(to: self) && $0.endpoint?.isStandIn != true }
    }

    fileprivate var blockableEndpoints: [Endpoint] {
        targets.values.flatMap(\.values) + subscriptions.values + endpointsOfObjects
    }

    /// The endpoints that are addressed through an object, and therefore cannot lead to another generation.
    fileprivate var endpointsOfObjects: [Endpoint] {
        let callbacks = [false, true].map(callbackType)  // Includes those that do not exist yet.
        let objects = services.compactMap { $0.maker?.type } + callbacks
        return (types.values + objects).flatMap(\.actions.values)
    }

}
