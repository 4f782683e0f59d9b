import CPluginABI
import CPluginHost
import Dispatch
import Glibc
import PluginABI
import Synchronization

/// Holds new calls of a generation back while it hands its state over. Calls that run, and what they call, go on.
final class CallBarrier: Sendable {
    private struct State {
        var isOver = false
        var waiting: [@Sendable () -> Void] = []
    }

    private let generation: Generation
    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: How many calls may wait.
    init(_ generation: Generation, limit: Int) {
        self.generation = generation
        self.limit = limit
        generation.barrier.withLock { $0 = self }
        for endpoint in generation.blockableEndpoints { endpoint.isBlocked.store(true, ordering: .relaxed) }
        // Who does not see it has entered the call in its record by now.
        plugin_host_fence_heavy()
    }

    /// Waits until no call of the generation runs.
    ///
    /// - Throws: `deadlineExceeded`, naming what runs.
    func waitForCalls(until deadline: DispatchTime) throws(PluginError) {
        // Twice, since calls that run may make others while they are counted.
        while generation.actionsInFlight > 0 || generation.actionsInFlight > 0 {
            guard DispatchTime.now() < deadline else {
                throw PluginError(
                    .deadlineExceeded, "\(generation.label) \(GenerationStatus(generation, .active).holds)")
            }
            usleep(200)
        }
    }

    /// Lets the calls go, to whatever serves now.
    ///
    /// - Parameter isSucceeded: Whether another generation serves now. Then calls by name that were found in the table
    ///   before, and come only now, must not run in this one: they go the same way. Its objects go on.
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

    /// Whether the calls go on.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Calls `body` when the calls go on, at once if they do already.
    ///
    /// - Throws: `overloaded`.
    func whenOver(_ body: @escaping @Sendable () -> Void) throws(PluginError) {
        let isOver: Bool? = state.withLock { state in
            if state.isOver { return true }
            guard state.waiting.count < limit else { return nil }
            state.waiting.append(body)
            return false
        }
        guard let isOver else {
            throw PluginError(
                .overloaded,
                "\(generation.name) hands its state over to its next version, and \(limit) calls wait for that already. "
                    + "Try again.")
        }
        if isOver { body() }
    }
}

extension Generation {
    /// The actions that run in it; interceptors that stand before one are not its own.
    fileprivate var actionsInFlight: Int {
        runningCalls().count { $0.belongs(to: self) && $0.endpoint?.isStandIn != true }
    }

    fileprivate var blockableEndpoints: [Endpoint] {
        targets.values.flatMap(\.values) + subscriptions.values + endpointsOfObjects
    }

    /// What is addressed by an object, and so by nothing that could lead to another generation.
    fileprivate var endpointsOfObjects: [Endpoint] {
        let callbacks = [false, true].map(callbackType)  // Also those that are yet to come.
        let objects = services.compactMap { $0.maker?.type } + callbacks
        return (types.values + objects).flatMap(\.actions.values)
    }

}
