internal import FoundationEssentials
internal import PluginABI
internal import PluginHost
internal import Synchronization

/// The last changes of a host, numbered from 1, for clients that poll for new ones.
final class EventLog: Sendable {
    /// The number of changes that are kept.
    static let limit = 1_000

    private struct State {
        var events: [Value] = []
        var last = 0
        var isOver = false
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastWaiter = 0
    }

    private let state = Mutex(State())
    private let timers = SerialThread("host.events")

    func add(_ change: HostChange) {
        guard case .map(var event) = change.record else { return }
        event["time"] = .time(.now)
        event["text"] = .string(change.description)
        update { [event] state in
            state.last += 1
            state.events.append(.map(event.merging(["number": .int(state.last)]) { $1 }))
            if state.events.count > Self.limit { state.events.removeFirst() }
        }
    }

    /// Ends the log. From then on, no request waits.
    func finish() { update { $0.isOver = true } }

    /// Changes the state, and wakes all waiting requests.
    private func update(_ change: (inout State) -> Void) {
        let waiters = state.withLock { state in
            change(&state)
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.finish() }
    }

    /// Returns the changes after a number.
    ///
    /// - Parameters:
    ///   - number: The number of the last change that the client knows; `nil` if it knows none.
    ///   - timeout: How long to wait for another change; `nil` to return immediately.
    /// - Returns: `events`; the number of the `last` change; how many changes were `missed`; whether the log is `over`.
    func events(after number: Int?, waitingAtMost timeout: Duration?) async -> Value {
        if let timeout, let number { await waitForChange(after: number, timeout) }
        return state.withLock { state in
            let new = state.last - min(max(number ?? 0, 0), state.last)
            let events = state.events.suffix(new)
            return [
                "events": .list(Array(events)), "last": .int(state.last),
                "missed": .int(number == nil ? 0 : new - events.count), "over": .bool(state.isOver),
            ]
        }
    }

    private func waitForChange(after number: Int, _ timeout: Duration) async {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let waiter: Int? = state.withLock { state in
            guard state.last <= number, !state.isOver else { return nil }
            state.lastWaiter += 1
            state.waiters[state.lastWaiter] = continuation
            return state.lastWaiter
        }
        guard let waiter else { return }
        // Not Task.sleep, which needs the cooperative pool: modules can block all its threads.
        let timer = timers.async(after: timeout) { continuation.finish() }
        for await _ in stream {}  // Ends at a change, at the timeout, or when the client goes.
        timers.cancel(timer)
        state.withLock { $0.waiters[waiter] = nil }
    }
}
