import Synchronization

/// A point where asynchronous code of a test waits until the test lets it continue. A gate replaces waits for a fixed
/// time.
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
/// A gate uses no clock, so the order of events is as the test defines it, even on a slow machine.
public final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var arrived = 0
        var next = 0
        var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]
        /// The callers that wait for a number of arrivals.
        var watching: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }
    private let state = Mutex(State())

    /// A gate that is closed.
    public init() {}

    /// Waits until the gate is open.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, as the task of an action is at its deadline.
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
            // A cancellation handler that has already run has not found the continuation; one that runs later finds it.
            if Task.isCancelled { return (.failure(CancellationError()), watchers) }
            state.waiting[number] = continuation
            return (nil, watchers)
        }
        for watcher in watchers { watcher.continuation.resume() }
        if let result { continuation.resume(with: result) }
    }

    /// Opens the gate for the code that waits, and for all code that arrives later.
    public func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits until the number of arrivals since the gate was made reaches `count`. Arrivals that have passed or were
    /// cancelled are counted, too.
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
