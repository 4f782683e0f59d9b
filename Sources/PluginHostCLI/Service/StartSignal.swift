internal import PluginHost
internal import Synchronization

/// The end of the start of a host, for which tasks can wait.
final class StartSignal: Sendable {
    private struct State {
        var isGiven = false
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastWaiter = 0
    }

    private let state = Mutex(State())
    private let timers = SerialThread("host.start")

    /// Reports that the start has ended. All waiting tasks continue.
    func give() {
        let waiters = state.withLock { state in
            state.isGiven = true
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.finish() }
    }

    /// Waits until the start has ended.
    ///
    /// - Parameter timeout: How long to wait; `nil` for no limit.
    /// - Returns: Whether the start has ended. False if the time has passed, or this task is cancelled.
    func wait(atMost timeout: Duration?) async -> Bool {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let waiter: Int? = state.withLock { state in
            guard !state.isGiven else { return nil }
            state.lastWaiter += 1
            state.waiters[state.lastWaiter] = continuation
            return state.lastWaiter
        }
        guard let waiter else { return true }
        defer { state.withLock { $0.waiters[waiter] = nil } }
        if let timeout { timers.async(after: timeout) { continuation.finish() } }
        for await _ in stream {}
        return state.withLock { $0.isGiven }
    }
}
