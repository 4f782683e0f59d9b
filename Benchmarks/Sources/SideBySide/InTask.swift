import Dispatch
import Synchronization

/// Runs a task, and blocks this thread until the task has ended. The thread must not belong to the pool that runs
/// tasks.
func inTask<Success: Sendable>(_ body: @escaping @Sendable () async throws -> Success) throws -> Success {
    let outcome = Outcome<Success>()
    let ended = DispatchSemaphore(value: 0)
    Task.detached {
        let result: Result<Success, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        outcome.result.withLock { $0 = result }
        ended.signal()
    }
    ended.wait()
    return try outcome.result.withLock { $0! }.get()
}

private final class Outcome<Success: Sendable>: Sendable {
    let result = Mutex<Result<Success, any Error>?>(nil)
}
