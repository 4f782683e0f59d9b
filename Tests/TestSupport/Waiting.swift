import Foundation

/// Waits until a condition holds; false if it does not within five minutes.
func eventually(_ condition: () throws -> Bool) rethrows -> Bool {
    for _ in 0..<30_000 {
        if try condition() { return true }
        usleep(10_000)
    }
    return false
}

/// Like `eventually`, for tests that must not make other tasks wait.
func becomesTrue(_ condition: () throws -> Bool) async rethrows -> Bool {
    for _ in 0..<30_000 {
        if try condition() { return true }
        try? await Task.sleep(for: .milliseconds(10))
    }
    return false
}

/// Runs a body on a thread that belongs to no Swift task, and waits for it without blocking one.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Result, any Error>) in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}

/// Runs a body on several threads at once, with the number of the thread, from 0, as its argument.
func onThreads<Result: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (Int) throws -> Result
) async throws -> [Result] {
    try await withThrowingTaskGroup(of: Result.self) { group in
        for number in 0..<count { group.addTask { try await onThread { try body(number) } } }
        return try await group.reduce(into: []) { $0.append($1) }
    }
}
