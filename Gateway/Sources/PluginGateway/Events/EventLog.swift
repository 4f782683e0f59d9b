import PluginABI
import PluginHost
import Synchronization

/// The last events of a gateway, and the streams that wait for the next ones. A stream reads from the log at its own
/// pace, so it needs no buffer; one that is too slow misses events, and is notified of that.
final class EventLog: Sendable {
    struct Event: Sendable {
        let number: Int
        let name: String
        let data: String
    }

    private struct State {
        var events: [Event] = []
        var last = 0
        var next = 0
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
        var isOver = false
    }

    private let kept: Int
    private let streams: Int
    private let state = Mutex(State())
    /// Distinguishes the numbers of this run from those of others.
    let run = String(UInt64.random(in: 0...UInt64.max), radix: 36)

    /// - Parameters:
    ///   - kept: How many events are kept.
    ///   - streams: How many streams may wait.
    init(kept: Int, streams: Int) { (self.kept, self.streams) = (max(1, kept), streams) }

    func add(_ name: String, _ data: Value) {
        let text = data.json
        let waiters = state.withLock { state in
            state.last += 1
            state.events.append(Event(number: state.last, name: name, data: text))
            // Twice the number, so that removing the oldest ones is rare.
            if state.events.count > 2 * kept { state.events.removeFirst(state.events.count - kept) }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.yield() }
    }

    /// Wakes all streams, so that they send a heartbeat.
    func beat() { for waiter in state.withLock({ Array($0.waiters.values) }) { waiter.yield() } }

    /// Ends all streams, and refuses further ones.
    func end() {
        let waiters = state.withLock { state in
            state.isOver = true
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.finish() }
    }

    /// The number of the last event.
    var last: Int { state.withLock(\.last) }

    /// How many streams are open.
    var streamCount: Int { state.withLock(\.waiters.count) }

    /// Returns the events after a number, at most 100, and how many events after the number are no longer kept.
    func events(after number: Int) -> (missed: Int, events: [Event]) {
        state.withLock { state in
            let kept = state.events.suffix(kept)
            guard let first = kept.first else { return (0, []) }
            let missed = max(0, first.number - number - 1)
            let start = kept.startIndex + max(0, number - first.number + 1)
            guard start < kept.endIndex else { return (missed, []) }
            return (missed, Array(kept[start...].prefix(100)))
        }
    }

    /// Returns a sequence that has an element whenever there may be something new, and a closure that ends the
    /// sequence. It also ends when all streams do.
    func arrivals() throws(Problem) -> (arrivals: AsyncStream<Void>, end: @Sendable () -> Void) {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        try state.withLock { (state) throws(Problem) in
            guard !state.isOver else { throw Problem(.hostStopping, "The gateway is ending.", retryAfter: 5) }
            guard state.waiters.count < streams else {
                throw Problem(.overloaded, "\(streams) event streams are open, which is the limit.", retryAfter: 10)
            }
            state.next += 1
            let id = state.next
            state.waiters[id] = continuation
            continuation.onTermination = { [weak self] _ in
                self?.state.withLock { _ = $0.waiters.removeValue(forKey: id) }
            }
        }
        continuation.yield()
        return (stream, { continuation.finish() })
    }
}
