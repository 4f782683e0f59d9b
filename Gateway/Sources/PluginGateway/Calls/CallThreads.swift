import Foundation
import Synchronization

/// The threads that run actions. A synchronous action keeps its thread as long as it likes, so these are not the threads
/// that all other tasks of the program share.
final class CallThreads: TaskExecutor {
    private struct State {
        var waiting: [UnownedJob] = []
        var next = 0
        var idle = 0
        var threads = 0
    }

    private let limit: Int
    private let state = Mutex(State())
    private let arrived = DispatchSemaphore(value: 0)

    /// - Parameter limit: The largest number of threads.
    init(limit: Int) { self.limit = limit }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let needsThread = state.withLock { state in
            state.waiting.append(job)
            let isShort = state.waiting.count - state.next > state.idle && state.threads < limit
            if isShort { state.threads += 1 }
            return isShort
        }
        if needsThread { Thread.detachNewThread { [self] in run() } }
        arrived.signal()
    }

    private func run() {
        while true {
            state.withLock { $0.idle += 1 }
            arrived.wait()
            let job = state.withLock { state in
                state.idle -= 1
                let job = state.waiting[state.next]
                state.next += 1
                if state.next == state.waiting.count { (state.waiting, state.next) = ([], 0) }
                return job
            }
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
