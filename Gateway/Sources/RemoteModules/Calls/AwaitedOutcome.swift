import Dispatch
import NIOCore
import PluginABI
import Synchronization

/// An outcome that a thread waits for.
final class AwaitedOutcome<Success: Sendable>: Sendable {
    private let result = Mutex<Result<Success, PluginError>?>(nil)
    private let arrived = DispatchSemaphore(value: 0)

    /// Sets the outcome. Must be called exactly once.
    func set(_ outcome: Result<Success, PluginError>) {
        result.withLock { $0 = outcome }
        arrived.signal()
    }

    func wait() -> Result<Success, PluginError> {
        arrived.wait()
        return result.withLock(\.self)!
    }

    /// Waits for the outcome until a deadline. Returns `nil` if the deadline passes first.
    func wait(until deadline: NIODeadline) -> Result<Success, PluginError>? {
        let time = DispatchTime(uptimeNanoseconds: deadline.uptimeNanoseconds)
        guard arrived.wait(timeout: time) == .success else { return nil }
        return result.withLock(\.self)
    }
}
