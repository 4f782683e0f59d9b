import CPluginABI
import CPluginHost
import PluginABI
import Synchronization

/// An event on its way to its subscribers.
final class Posting: Sendable {
    private let event: String
    private let token: plugin_token
    /// Who posts.
    private let caller: Unmanaged<Generation>?  // Never freed.
    private let calls: Calls
    private let start: Int64?
    private let state = Mutex(State())

    private struct State {
        /// The subscribers that have not ended, and the delivery itself.
        var pending = 1
        var delivered = 0
        var failures: [(place: Int, error: PluginError)] = []
        /// Calls are nested too deeply: nobody else gets the event.
        var limit: PluginError?
        var isAnswered = false
    }

    init(_ event: String, _ token: plugin_token, _ caller: Unmanaged<Generation>?, _ calls: Calls) {
        (self.event, self.token, self.caller, self.calls) = (event, token, caller, calls)
        start = calls.core.profiler.started(Lane.current)
    }

    var isBroken: Bool { state.withLock { $0.limit != nil } }

    /// Calls one subscriber.
    ///
    /// - Parameters:
    ///   - isAsync: Whether it, or an interceptor before it, may end later.
    ///   - body: Makes the call, and returns whether it could be made.
    /// - Returns: The same.
    func deliver(
        to endpoint: Endpoint, isAsync: Bool, _ mode: Calls.Mode, _ body: (Calls.Call) -> Bool
    ) -> Bool {
        let place = state.withLock { state in
            state.pending += 1
            state.delivered += 1
            return state.delivered
        }
        func call(_ mode: Calls.Mode, _ completion: @escaping plugin_completion, _ data: UnsafeMutableRawPointer)
            -> Bool
        {
            body(
                Calls.Call(
                    parent: token, timeout: 0, isRemote: false, mode: mode,
                    receiver: Calls.Receiver(completion: completion, data: data), caller: caller))
        }
        var delivery = Delivery(posting: self, endpoint: endpoint, place: place)
        if mode == .synchronous, !isAsync {
            // Told before this returns: it lives here.
            guard !withUnsafeMutablePointer(to: &delivery, { call(mode, Delivery.completionHere, $0) }) else {
                return true
            }
        } else {
            let kept = UnsafeMutablePointer<Delivery>.allocate(capacity: 1)
            kept.initialize(to: delivery)
            guard !call(isAsync ? .any : mode, Delivery.completion, kept) else { return true }
            kept.deinitialize(count: 1)
            kept.deallocate()
        }
        state.withLock { state in
            state.pending -= 1
            state.delivered -= 1
        }
        return false
    }

    /// To whom the event goes.
    private struct Delivery {
        let posting: Posting
        let endpoint: Endpoint
        /// Among all subscribers, from 1.
        let place: Int

        /// Of a delivery that lives on the stack of who calls.
        static let completionHere: plugin_completion = { data, _, error in
            let delivery = data!.assumingMemoryBound(to: Delivery.self).pointee
            delivery.posting.end(delivery, error.map { PluginError($0.pointee) })
        }

        /// Of a delivery that was allocated.
        static let completion: plugin_completion = { data, _, error in
            let kept = data!.assumingMemoryBound(to: Delivery.self)
            let delivery = kept.move()
            kept.deallocate()
            delivery.posting.end(delivery, error.map { PluginError($0.pointee) })
        }
    }

    private func end(_ delivery: Delivery, _ error: PluginError?) {
        let error = error.map { calls.report($0, of: event, in: delivery.endpoint) }
        let isLast = state.withLock { state in
            if let error { state.failures.append((delivery.place, error)) }
            if let error, error.code == .recursionLimit { state.limit = error }
            state.pending -= 1
            return state.pending == 0
        }
        if isLast { answer() }
    }

    /// Notes that all subscribers have been called, and answers when they have ended, or at once.
    func endDelivery(waits: Bool) {
        let isLast = state.withLock { state in
            state.pending -= 1
            return state.pending == 0
        }
        if isLast || !waits { answer() }
    }

    private func answer() {
        let answer: (outcome: EventOutcome, limit: PluginError?)? = state.withLock { state in
            if state.isAnswered { return nil }
            state.isAnswered = true
            let failures = state.failures.sorted { $0.place < $1.place }.map(\.error)
            return (EventOutcome(delivered: state.delivered, failures: failures), state.limit)
        }
        guard let (outcome, limit) = answer else { return }
        if let start { calls.core.profiler.note(.event, event, from: start) }
        if let limit { return limit.lend { _ = calls.reject(token, $0.pointee, from: calls.program) } }
        outcome.lend { _ = Calls.resolve(token, $0, from: calls.program) }
    }
}
