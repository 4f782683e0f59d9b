import Synchronization

/// A point where asynchronous code of a test waits until the test lets it go on: what stands for time.
///
///     let gate = Gate()
///     let slow = Manifest("Slow", version: "1.0.0") {
///         Target("B") {
///             Action("format") { try await gate.pass(); return "1 euro" }
///         }
///     }
///     …
///     async let price = bench.host.call("A", "price")
///     await gate.arrivals(1)      // the module has asked, and waits
///     gate.open()
///     #expect(try await price == "1 euro")
///
/// No clock is asked, so the order of things is what the test says on the slowest machine too.
public final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var arrived = 0
        var next = 0
        var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]
        /// Who waits for how many arrivals.
        var watching: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }
    private let state = Mutex(State())

    /// A gate that is closed.
    public init() {}

    /// Waits until the gate is open.
    ///
    /// - Throws: `CancellationError` when the task is cancelled, as an action's is at its deadline.
    public func pass() async throws {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { wait(number, $0) }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(throwing: CancellationError())
        }
    }

    private func wait(_ number: Int, _ continuation: CheckedContinuation<Void, any Error>) {
        let (result, watchers): (Result<Void, any Error>?, _) = state.withLock { state in
            state.arrived += 1
            let watchers = state.watching.filter { $0.count <= state.arrived }
            state.watching.removeAll { $0.count <= state.arrived }
            if state.isOpen { return (.success(()), watchers) }
            // The handler has found nobody, or finds this one.
            if Task.isCancelled { return (.failure(CancellationError()), watchers) }
            state.waiting[number] = continuation
            return (nil, watchers)
        }
        for watcher in watchers { watcher.continuation.resume() }
        if let result { continuation.resume(with: result) }
    }

    /// Lets everybody pass who waits, and who comes from now on.
    public func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits until so many have come to the gate since it was made, those included who have passed or given up.
    public func arrivals(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                guard state.arrived < count else { return true }
                state.watching.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}
