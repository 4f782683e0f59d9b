import CPluginABI
import Dispatch
import PluginABI
import Synchronization

/// The outcome of a call, for a thread that waits for it, or stops to wait before it is there.
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
        Calls.Receiver(Self.completion, Unmanaged.passRetained(self).toOpaque())
    }

    private static let completion: plugin_completion = { data, value, error in
        let outcome = Unmanaged<AwaitedOutcome>.fromOpaque(data!).takeRetainedValue()
        let result = Result(value, error, host: outcome.holder.hostTable)
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
