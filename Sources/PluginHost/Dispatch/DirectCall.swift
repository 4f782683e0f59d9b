import CPluginABI
import CPluginHost
import Dispatch
import PluginABI
import Synchronization

extension Dispatcher {
    /// Calls an endpoint that was found without an address: a hook, or a subscriber of an event. The receiver is told
    /// exactly once, before this returns or, by an asynchronous endpoint, later.
    ///
    /// - Parameter enter: Occupies the record; false if the endpoint must not be called any more.
    /// - Returns: Whether it was called, and the receiver is told.
    func call(
        _ endpoint: Endpoint, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        instance: UnsafeMutableRawPointer? = nil, enter: (Lane, CallRecord) -> Bool
    ) -> Bool {
        guard let lane = Lane.current, let record = lane.next else {
            call.receiver.receive(.recursionLimit)
            return true
        }
        guard enter(lane, record) else { return false }
        do throws(PluginError) {
            _ = try invoke(endpoint, entries, call, lane, record, instance: instance)
        } catch {
            let object = record.pointer.pointee.object
            record.vacate()
            if object != 0 { _ = ObjectTable.release(object) }
            call.receiver.receive(error)
        }
        return true
    }
}

/// The outcome of a call, for a thread that waits for it.
final class AwaitedOutcome: Sendable {
    private let arrived = DispatchSemaphore(value: 0)
    private let failure = Mutex<PluginError?>(nil)
    /// CLOCK_MONOTONIC nanoseconds of the end; 0 before it.
    let end = Atomic<Int64>(0)

    /// To be told exactly once.
    func receiver() -> Dispatcher.Receiver {
        Dispatcher.Receiver(completion: Self.completion, data: Unmanaged.passRetained(self).toOpaque())
    }

    private static let completion: plugin_completion = { data, _, error in
        let outcome = Unmanaged<AwaitedOutcome>.fromOpaque(data!).takeRetainedValue()
        if let error {
            let failure = PluginError(error.pointee)
            outcome.failure.withLock { $0 = failure }
        }
        outcome.end.store(monotonicNow(), ordering: .releasing)
        outcome.arrived.signal()
    }

    /// Blocks this thread until the outcome is there.
    func wait() throws(PluginError) {
        arrived.wait()
        arrived.signal()
        if let failure = failure.withLock({ $0 }) { throw failure }
    }
}
