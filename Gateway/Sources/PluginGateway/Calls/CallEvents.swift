import PluginABI
import Synchronization

/// The calls of a request's callbacks, as server-sent events that wait to be sent, and then the result.
///
/// The events that wait are bounded. A callback that finds no room fails immediately, instead of making the module wait
/// for a slow client; the client gets the number of events that it missed.
final class CallEvents: Sendable {
    private struct State {
        var waiting: [String] = []
        var bytes = 0
        /// How many calls of callbacks found no room since the last event that did.
        var missed = 0
        var result: Result<Value, Problem>?
        /// Whether a heartbeat is due.
        var isBeating = false
        var isClosed = false

        /// Returns the event that states how many calls found no room; `nil` if none.
        mutating func takeMissed() -> String? {
            guard missed > 0 else { return nil }
            defer { missed = 0 }
            return "event: missed\ndata: {\"count\":\(missed)}\n\n"
        }
    }

    /// How many bytes the waiting events may have in total.
    static let byteLimit = 1 << 20
    /// How many events may wait.
    private let limit: Int
    private let state = Mutex(State())
    /// Has an element whenever there may be something new, and one for each heartbeat.
    private let arrivals: AsyncStream<Void>
    private let arrival: AsyncStream<Void>.Continuation
    private let beating = Mutex<Task<Void, any Error>?>(nil)

    /// - Parameters:
    ///   - limit: How many events may wait; 1 or more.
    ///   - heartbeat: The time between two heartbeats.
    init(limit: Int, heartbeat: Duration) {
        self.limit = max(1, limit)
        let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (self.arrivals, self.arrival) = (arrivals, arrival)
        let task = Task { [weak self] in
            while true {
                try await Task.sleep(for: heartbeat)
                self?.beat()
            }
        }
        beating.withLock { $0 = task }
    }

    deinit { stopBeating() }

    private func beat() {
        state.withLock { $0.isBeating = true }
        arrival.yield()
    }

    private func stopBeating() { beating.withLock { $0 }?.cancel() }

    /// Adds the call of a callback.
    ///
    /// - Throws: `overloaded` if there is no room, `cancelled` if the call that got the callback is over,
    ///   `invalidValue` if an argument contains an object.
    func add(_ name: String, _ arguments: [Value]) throws(PluginError) {
        let value = Value.list(arguments)
        guard !value.hasObject else {
            throw PluginError(.invalidValue, "An argument contains objects, which cannot leave the program.")
        }
        let event = "event: \(name)\ndata: \(value.json)\n\n"
        try state.withLock { (state) throws(PluginError) in
            guard state.result == nil, !state.isClosed else { throw .overCallback }
            guard state.waiting.count < limit, state.bytes + event.utf8.count <= Self.byteLimit else {
                state.missed += 1
                throw .fullCallback
            }
            if let missed = state.takeMissed() { state.waiting.append(missed) }
            state.waiting.append(event)
            state.bytes += event.utf8.count
        }
        arrival.yield()
    }

    /// Sets the outcome of the call. Callbacks fail from now on.
    func finish(_ result: Result<Value, Problem>) {
        state.withLock { $0.result = $0.result ?? result }
        stopBeating()
        arrival.yield()
    }

    /// Ends the sequence, because nobody reads it any more.
    func close() {
        state.withLock { state in
            (state.waiting, state.bytes, state.isClosed) = ([], 0, true)
        }
        stopBeating()
        arrival.finish()
    }

    /// Waits until there may be something new, or for the next heartbeat. Returns immediately if the task is cancelled.
    func arrive() async { for await _ in arrivals { break } }

    /// The result of the call, if it has ended before any of its callbacks was called.
    var earlyResult: Result<Value, Problem>? {
        state.withLock { $0.waiting.isEmpty && $0.missed == 0 ? $0.result : nil }
    }

    /// Takes the waiting events, or a heartbeat if there are none and one is due; and the result, if it follows them.
    func take() -> (text: String, result: Result<Value, Problem>?) {
        state.withLock { state in
            var text = state.waiting.joined() + (state.takeMissed() ?? "")
            if text.isEmpty, state.isBeating, state.result == nil { text = ":\n\n" }
            (state.waiting, state.bytes, state.isBeating) = ([], 0, false)
            return (text, state.result)
        }
    }
}

extension PluginError {
    fileprivate static let overCallback = PluginError(
        .cancelled, "The call that got this callback is over: its client gets no more events.")

    fileprivate static let fullCallback = PluginError(
        .overloaded, "The client reads its events too slowly. This one was dropped. Call the callback less often.")
}
