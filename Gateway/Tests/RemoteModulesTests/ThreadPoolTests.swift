import Foundation
import GatewayThreads
import Synchronization
import Testing

@Suite struct ThreadPoolTests {
    /// Waits for signals on a thread that may block.
    private func arrive(_ count: Int, _ semaphore: DispatchSemaphore) async throws -> Bool {
        try await onThread {
            let deadline = DispatchTime.now() + 60
            return (0..<count).allSatisfy { _ in semaphore.wait(timeout: deadline) == .success }
        }
    }

    @Test func `code that waits keeps no other code from running`() async throws {
        let count = 80 + 4 * ProcessInfo.processInfo.activeProcessorCount
        let (threads, started, go) = (ThreadPool(limit: 512), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        for _ in 0..<count {
            threads.run {
                started.signal()
                go.wait()
            }
        }
        #expect(try await arrive(count, started))
        // Also when the others have been waiting for a while.
        threads.run { started.signal() }
        #expect(try await arrive(1, started))
        for _ in 0..<count { go.signal() }
    }

    @Test func `code beyond the limit waits for a thread`() async throws {
        let threads = ThreadPool(limit: 1)
        let results = await withTaskGroup(of: Int.self) { group in
            for number in 0..<20 { group.addTask(executorPreference: threads) { number } }
            return await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(results.count == 20)
    }

    @Test func `a thread with nothing to run ends, and another one takes its place when needed`() async throws {
        let (started, ended) = (Tries(), Tries())
        let threads = ThreadPool(limit: 4, idleTime: .milliseconds(20)) { body in
            started.count.withLock { $0 += 1 }
            return ThreadPool.startThread {
                body()
                ended.count.withLock { $0 += 1 }
            }
        }
        for _ in 0..<3 {
            let arrived = DispatchSemaphore(value: 0)
            for _ in 0..<100 { threads.run { arrived.signal() } }
            #expect(try await arrive(100, arrived))
            let count = started.count.withLock { $0 }
            #expect(await becomesTrue { ended.count.withLock { $0 } == count })
        }
        #expect(started.count.withLock { $0 } >= 3)
    }

    @Test func `threads that a moderate load does not need end`() async throws {
        let running = Tries()
        let threads = ThreadPool(limit: 64, idleTime: .seconds(1)) { body in
            running.count.withLock { $0 += 1 }
            return ThreadPool.startThread {
                body()
                running.count.withLock { $0 -= 1 }
            }
        }
        let (started, go, arrived) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        for _ in 0..<20 {
            threads.run {
                started.signal()
                go.wait()
            }
        }
        #expect(try await arrive(20, started))
        #expect(running.count.withLock { $0 } == 20)
        for _ in 0..<20 { go.signal() }
        // Each thread would be woken several times within the idle time if they took turns.
        #expect(
            await becomesTrue {
                threads.run { arrived.signal() }
                return try await arrive(1, arrived) && running.count.withLock { $0 } <= 3
            })
    }

    @Test func `what arrives when a thread is about to end is run`() async throws {
        let threads = ThreadPool(limit: 4, idleTime: .microseconds(50))
        #expect(
            try await onThread {
                let arrived = DispatchSemaphore(value: 0)
                return (0..<1000).allSatisfy { number in
                    for _ in 0..<1 + number % 3 { threads.run { arrived.signal() } }
                    usleep(UInt32(number % 100))
                    return (0..<1 + number % 3).allSatisfy { _ in arrived.wait(timeout: .now() + 60) == .success }
                }
            })
    }

    @Test func `without further threads, code runs late, but it runs`() async throws {
        let tries = Tries()
        let threads = ThreadPool(limit: 8) { body in
            // The first one only.
            tries.count.withLock { count in
                count += 1
                return count == 1
            } && ThreadPool.startThread(body)
        }
        let arrived = DispatchSemaphore(value: 0)
        for _ in 0..<100 { threads.run { arrived.signal() } }
        #expect(try await arrive(100, arrived))
        // Tasks, too, if there is no thread at all.
        let none = ThreadPool(limit: 8) { _ in false }
        #expect(await Task(executorPreference: none) { 42 }.value == 42)
    }
}

private final class Tries: Sendable {
    let count = Mutex(0)
}
