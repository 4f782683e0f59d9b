import PluginABI
import Synchronization

// Calls that wait, without a thread, until their module has handed over its state.

extension Calls {
    /// The address of a waiting call.
    enum WaitingAddress {
        /// The endpoint that was found, and the object that the call retains, or 0.
        case endpoint(Endpoint, instance: UnsafeMutableRawPointer?, object: plugin_object)
        case url(String, asksForObject: Bool)
    }

    /// Stores a call until the hand-over is done.
    func keep(
        _ barrier: CallBarrier, _ address: WaitingAddress, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        _ thread: ThreadContext,
        _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let parameters = Parameters(entries.map { ($0.key.text, Value(copying: $0.value, host: program.hostTable)) })
        let waiting = WaitingCall(barrier: barrier, address: address, parameters: parameters, call: call, calls: self)
        occupy(record, .passUnretained(core.ownActions.waitingCalls), call)
        let kept = Unmanaged.passRetained(waiting)
        do throws(PluginError) {
            return try Parameters(positional: [.int(Int(bitPattern: kept.toOpaque()))]).lend {
                (entries) throws(PluginError) in
                try invoke(core.ownActions.waitingCalls, entries, call, thread, record)
            }
        } catch {
            kept.release()
            throw error
        }
    }

    /// Creates the endpoint that represents waiting calls, and by which they are cancelled: an asynchronous action of
    /// the program.
    static func makeWaitingCalls(_ program: Generation) -> Endpoint {
        Endpoint(
            own: "waiting for a module that hands its state over", of: program, ["call": .int], isRemote: true
        ) { _, call, arguments, _ in
            let address = UnsafeRawPointer(bitPattern: Int(arguments![0].as.integer))!
            Unmanaged<WaitingCall>.fromOpaque(address).takeRetainedValue().begin(call!.pointee.token)
        }
    }

    /// One waiting call. `begin` sets `token` before another thread sees the call, and `running` has a lock; the other
    /// members are immutable. Hence `@unchecked Sendable`.
    private final class WaitingCall: @unchecked Sendable {
        private let barrier: CallBarrier
        private let address: WaitingAddress
        private let parameters: Parameters
        private let call: Call
        private let calls: Calls
        /// The token of the waiting call. Set once, by `begin`.
        private var token: plugin_token = 0
        private let running = Mutex<(isCancelled: Bool, token: plugin_token)>((false, 0))

        init(barrier: CallBarrier, address: WaitingAddress, parameters: Parameters, call: Call, calls: Calls) {
            (self.barrier, self.address, self.parameters) = (barrier, address, parameters)
            (self.call, self.calls) = (call, calls)
        }

        func begin(_ token: plugin_token) {
            self.token = token
            CancelHandler.set(of: token, in: calls.program) { self.cancel() }
            do throws(PluginError) {
                try barrier.whenOver { ThreadPool.shared.run { self.proceed() } }
            } catch {
                end(error)
            }
        }

        private func cancel() {
            let token = running.withLock { running in
                running.isCancelled = true
                return running.token
            }
            if token != 0 { Calls.abandon(token, PluginError(.cancelled, "The caller cancelled the call.")) }
        }

        private func end(_ error: PluginError) {
            if case .endpoint(_, _, let object) = address, object != 0 { _ = ObjectTable.release(object) }
            calls.answer(token, error)
        }

        private func proceed() {
            guard !running.withLock({ $0.isCancelled }), let thread = ThreadContext.current, let record = thread.next
            else {
                return end(PluginError(.cancelled, "The caller cancelled the call."))
            }
            let receiver = Receiver(Self.forward, Unmanaged.passRetained(self).toOpaque())
            let next = Call(
                parent: call.parent, timeout: call.timeout, isRemote: call.isRemote, isAdmitted: call.isAdmitted,
                mode: .any, receiver: receiver, isFresh: call.isFresh)
            do throws(PluginError) {
                let inner = try parameters.lend { (entries) throws(PluginError) in
                    try proceed(entries, next, thread, record)
                }
                let isCancelled = running.withLock { running in
                    running.token = inner
                    return running.isCancelled
                }
                if isCancelled { cancel() }
            } catch {
                calls.refuse(error, receiver, thread, record)
            }
        }

        private func proceed(
            _ entries: UnsafeBufferPointer<plugin_entry>, _ next: Call, _ thread: ThreadContext, _ record: CallRecord
        ) throws(PluginError) -> plugin_token {
            switch address {
            case .endpoint(let endpoint, let instance, let object):
                let endpoint = try calls.occupyAgain(record, endpoint, next, thread, object)
                return try calls.invoke(endpoint, entries, next, thread, record, instance: instance)
            case .url(let url, let asksForObject):
                return try url.withRawText { (url) throws(PluginError) in
                    try calls.open(url, entries, asksForObject: asksForObject, next, thread, record)
                }
            }
        }

        private static let forward: plugin_completion = { data, value, error in
            let waiting = Unmanaged<WaitingCall>.fromOpaque(data!).takeRetainedValue()
            waiting.calls.answer(waiting.token, value, error)
        }
    }
}
