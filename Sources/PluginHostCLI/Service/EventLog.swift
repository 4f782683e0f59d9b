internal import FoundationEssentials
internal import PluginABI
internal import PluginHost
internal import Synchronization

/// The last changes of a host, numbered from 1, for those who ask again and again what has come since.
final class EventLog: Sendable {
    /// How many are remembered.
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

    /// Nobody waits from now on.
    func finish() { update { $0.isOver = true } }

    /// Changes the state, and wakes whoever waits for that.
    private func update(_ change: (inout State) -> Void) {
        let waiters = state.withLock { state in
            change(&state)
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.finish() }
    }

    /// - Parameters:
    ///   - number: Of the last one that is known; nil for none.
    ///   - timeout: How long to wait for one more; nil for not at all.
    /// - Returns: `events`; the number of the `last` one; how many more were `missed`; whether it is `over`.
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
        // Not Task.sleep: it ends by way of the cooperative pool, all of whose threads code of modules can block.
        let timer = timers.async(after: timeout) { continuation.finish() }
        for await _ in stream {}  // Ends with the change, the time, or the client.
        timers.cancel(timer)
        state.withLock { $0.waiters[waiter] = nil }
    }
}
