import CPluginABI
import CPluginHost
import Dispatch
import PluginABI
import Synchronization

extension Calls {
    /// Calls an endpoint that was found without an address: a hook, or a subscriber of an event. The receiver is told
    /// exactly once, before this returns or, by an asynchronous endpoint, later.
    ///
    /// - Parameters:
    ///   - interception: What may stand around it.
    ///   - enter: Occupies the record; false if the endpoint must not be called any more.
    /// - Returns: Whether it was called, and the receiver is told.
    func call(
        _ endpoint: Endpoint, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        instance: UnsafeMutableRawPointer? = nil, through interception: Interception? = nil,
        enter: (Lane, CallRecord) -> Bool
    ) -> Bool {
        guard let lane = Lane.current, let record = lane.next else {
            call.receiver.receive(.recursionLimit)
            return true
        }
        guard enter(lane, record) else { return false }
        do throws(PluginError) {
            _ = try invoke(endpoint, entries, call, lane, record, instance: instance, through: interception)
        } catch {
            let object = record.object
            refuse(error, call.receiver, lane, record)
            if object != 0 { _ = ObjectTable.release(object) }
        }
        return true
    }
}

/// The outcome of a call, for a thread that waits for it.
final class AwaitedOutcome: Sendable {
    private let arrived = DispatchSemaphore(value: 0)
    private let result = Mutex<Result<Value, PluginError>>(.success(.null))
    /// CLOCK_MONOTONIC nanoseconds of the end; 0 before it.
    let end = Atomic<Int64>(0)
    /// Who holds objects in the result.
    private let holder: Generation

    init(for holder: Generation) { self.holder = holder }

    /// To be told exactly once.
    func receiver() -> Calls.Receiver {
        Calls.Receiver(completion: Self.completion, data: Unmanaged.passRetained(self).toOpaque())
    }

    private static let completion: plugin_completion = { data, value, error in
        let outcome = Unmanaged<AwaitedOutcome>.fromOpaque(data!).takeRetainedValue()
        let result: Result<Value, PluginError> =
            if let error {
                .failure(PluginError(error.pointee))
            } else {
                .success(value.map { Value(copying: $0.pointee, host: outcome.holder.hostTable) } ?? .null)
            }
        outcome.result.withLock { $0 = result }
        outcome.end.store(monotonicNow(), ordering: .releasing)
        outcome.arrived.signal()
    }

    /// Blocks this thread until the outcome is there.
    ///
    /// - Parameter patience: Without a timeout of its own; says meanwhile what is waited for.
    @discardableResult
    func wait(_ patience: Patience? = nil) throws(PluginError) -> Value {
        if let patience { _ = patience.wait(for: arrived) } else { arrived.wait() }
        arrived.signal()
        return try result.withLock { $0 }.get()
    }
}
