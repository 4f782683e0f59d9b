import CPluginABI
import Dispatch
import PluginABI
import Synchronization

extension Dispatcher {
    /// Calls an endpoint that was found without an address: a hook, or a subscriber of an event. The receiver is told
    /// exactly once, before this returns or, by an asynchronous endpoint, later.
    ///
    /// - Parameter enter: Occupies the record; false if the endpoint must not be called any more.
    func call(
        _ endpoint: Endpoint, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        enter: (Lane, CallRecord) -> Bool
    ) -> Bool {
        guard let lane = Lane.current, let record = lane.next else {
            call.receiver.receive(.recursionLimit)
            return true
        }
        guard enter(lane, record) else { return false }
        do throws(PluginError) {
            _ = try invoke(endpoint, entries, call, lane, record)
        } catch {
            record.vacate()
            call.receiver.receive(error)
        }
        return true
    }
}

/// A hook that was started, and may have ended.
final class HookRun: Sendable {
    private let ended = DispatchSemaphore(value: 0)
    private let failure = Mutex<PluginError?>(nil)

    /// Starts a hook; a synchronous one has ended when this returns.
    init(_ endpoint: Endpoint, timeout: Duration) {
        let dispatcher = endpoint.generation.dispatcher
        let call = Dispatcher.Call(
            parent: 0, timeout: endpoint.isAsync ? timeout.nanoseconds : 0, isRemote: false, mode: .any,
            receiver: Dispatcher.Receiver(completion: Self.completion, data: Unmanaged.passRetained(self).toOpaque()))
        _ = dispatcher.call(endpoint, UnsafeBufferPointer(start: nil, count: 0), call) { _, record in
            dispatcher.occupy(record, .passUnretained(endpoint), call)
            return true
        }
    }

    private static let completion: plugin_completion = { data, _, error in
        let run = Unmanaged<HookRun>.fromOpaque(data!).takeRetainedValue()
        if let error {
            let failure = PluginError(error.pointee)
            run.failure.withLock { $0 = failure }
        }
        run.ended.signal()
    }

    /// Waits for the end, which comes at the deadline at the latest.
    ///
    /// - Throws: `activationFailed` with what the hook has thrown, or `deadlineExceeded`.
    func wait() throws(PluginError) {
        ended.wait()
        ended.signal()
        if let failure = failure.withLock({ $0 }) { throw failure }
    }
}
