import Foundation
import Testing

@testable import RemoteModules

@Suite struct CallbackThreadsTests {
    @Test func `code that waits keeps no other code from running`() async throws {
        let count = 80 + 4 * ProcessInfo.processInfo.activeProcessorCount
        let (started, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        for _ in 0..<count {
            CallbackThreads.run {
                started.signal()
                go.wait()
            }
        }
        let areAllRunning = try await onThread {
            let deadline = DispatchTime.now() + 30
            return (0..<count).allSatisfy { _ in started.wait(timeout: deadline) == .success }
        }
        #expect(areAllRunning)
        for _ in 0..<count { go.signal() }
    }

    @Test func `code beyond the limit waits for a thread`() async throws {
        let threads = CallbackThreads(limit: 1)
        let results = await withTaskGroup(of: Int.self) { group in
            for number in 0..<20 { group.addTask(executorPreference: threads) { number } }
            return await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(results.count == 20)
    }
}
