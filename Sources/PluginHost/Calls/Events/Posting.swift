import PluginABI
import Synchronization

/// The delivery of an event whose subscribers may reply later.
final class Posting: Sendable {
    private let event: String
    private let token: plugin_token
    /// The generation that posted the event.
    private let caller: Unmanaged<Generation>?  // Never freed.
    private let calls: Calls
    private let start: Int64?
    private let state = Mutex(State())

    private struct State {
        var delivery = EventDelivery()
        /// The number of subscribers whose calls have not ended, plus one until all have been called.
        var pending = 1
        var isAnswered = false
    }

    init(_ event: String, _ token: plugin_token, _ caller: Unmanaged<Generation>?, _ calls: Calls) {
        (self.event, self.token, self.caller, self.calls) = (event, token, caller, calls)
        start = calls.core.profiler.started(ThreadContext.current)
    }

    /// Whether the delivery has failed, so that no further subscriber receives the event.
    var isBroken: Bool { state.withLock { $0.delivery.isAtLimit } }

    /// Delivers the event to one more subscriber.
    ///
    /// - Parameter body: Makes the call, and returns whether it could be made. The receiver receives its outcome.
    /// - Returns: The result of `body`.
    func deliver(to endpoint: Endpoint, _ body: (Calls.Receiver) -> Bool) -> Bool {
        let position = state.withLock { state in
            state.pending += 1
            state.delivery.delivered += 1
            return state.delivery.delivered
        }
        let expected = Unmanaged.passRetained(Expected(posting: self, endpoint: endpoint, position: position))
        if body(Calls.Receiver(Expected.completion, expected.toOpaque())) { return true }
        expected.release()
        state.withLock { state in
            state.pending -= 1
            state.delivery.delivered -= 1
        }
        return false
    }

    private func end(_ endpoint: Endpoint, _ position: Int, _ error: PluginError?) {
        let error = error.map { calls.report($0, of: event, in: endpoint, token, caller) }
        let isLast = state.withLock { state in
            if let error { state.delivery.note(error, at: position) }
            state.pending -= 1
            return state.pending == 0
        }
        if isLast { answer() }
    }

    /// A subscriber that has received the event and whose call has not ended.
    private final class Expected: Sendable {
        let posting: Posting
        let endpoint: Endpoint
        let position: Int

        init(posting: Posting, endpoint: Endpoint, position: Int) {
            (self.posting, self.endpoint, self.position) = (posting, endpoint, position)
        }

        static let completion: plugin_completion = { data, _, error in
            let expected = Unmanaged<Expected>.fromOpaque(data!).takeRetainedValue()
            expected.posting.end(expected.endpoint, expected.position, error.map { PluginError($0.pointee) })
        }
    }

    /// Records that all subscribers have been called. Replies when they have ended, or immediately if `waits` is false.
    func endDelivery(waits: Bool) {
        let isLast = state.withLock { state in
            state.pending -= 1
            return state.pending == 0
        }
        if isLast || !waits { answer() }
    }

    private func answer() {
        let delivery: EventDelivery? = state.withLock { state in
            defer { state.isAnswered = true }
            return state.isAnswered ? nil : state.delivery
        }
        guard let delivery else { return }
        if let start { calls.core.profiler.note(.event, event, from: start) }
        delivery.lend { calls.answer(token, $0, $1) }
    }
}
