import Dispatch
import PluginABI
import Synchronization

/// The outcome of a call, for a thread that waits for it. The thread may stop waiting before the call ends.
final class AwaitedOutcome: Sendable {
    private let arrived = DispatchSemaphore(value: 0)
    private let result = Mutex<Result<Value, PluginError>>(.success(.null))
    /// The time when the call ended, in `CLOCK_MONOTONIC` nanoseconds; 0 before that.
    let end = Atomic<Int64>(0)
    /// The holder of objects in the result.
    private let holder: Generation
    private let waits: ChangeWaits
    private let called: Generation

    /// - Parameters:
    ///   - waits: The waits of the thread that changes modules, which may be the one that waits for the outcome.
    ///   - called: The module whose hook is called.
    init(for holder: Generation, _ waits: ChangeWaits, calling called: Generation) {
        (self.holder, self.waits, self.called) = (holder, waits, called)
        waits.begin(called)
    }

    /// Returns a receiver, which must receive exactly one outcome.
    func receiver() -> Calls.Receiver {
        Calls.Receiver(Self.completion, Unmanaged.passRetained(self).toOpaque())
    }

    private static let completion: plugin_completion = { data, value, error in
        let outcome = Unmanaged<AwaitedOutcome>.fromOpaque(data!).takeRetainedValue()
        let result = Result(value, error, host: outcome.holder.hostTable)
        outcome.result.withLock { $0 = result }
        outcome.waits.end(outcome.called)
        outcome.end.store(monotonicNow(), ordering: .releasing)
        outcome.arrived.signal()
    }

    /// Blocks this thread until the call has ended, or the time has passed. Returns whether it has ended.
    func hasArrived(within time: Duration) -> Bool {
        guard wait(until: .now() + time.dispatchInterval) else { return false }
        arrived.signal()
        return true
    }

    private func wait(until deadline: DispatchTime) -> Bool {
        waits.wait(for: arrived, until: deadline) { end.load(ordering: .acquiring) != 0 }
    }

    /// Blocks this thread until the call has ended, and returns its result.
    ///
    /// - Parameter patience: Logs what the thread waits for. It must not have a timeout.
    /// - Throws: The error of the call.
    @discardableResult
    func wait(_ patience: Patience? = nil) throws(PluginError) -> Value {
        if let patience { _ = patience.wait(wait) } else { _ = wait(until: .distantFuture) }
        arrived.signal()
        return try result.withLock { $0 }.get()
    }
}
