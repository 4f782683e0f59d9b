import Dispatch
import Foundation
import Synchronization

/// The threads that run code of the program, such as callbacks and the completions of asynchronous calls: neither the
/// threads that all tasks of the program share, nor those of the connections, since such code may wait for other calls.
/// There is a thread for each piece of code that runs or waits, up to a limit.
final class CallbackThreads: TaskExecutor {
    static let shared = CallbackThreads(limit: 512)

    private struct State {
        var waiting: [@Sendable () -> Void] = []
        var next = 0
        var idle = 0
        var threads = 0
    }

    private let limit: Int
    private let state = Mutex(State())
    private let arrived = DispatchSemaphore(value: 0)

    /// - Parameter limit: The largest number of threads.
    init(limit: Int) { self.limit = limit }

    static func run(_ body: @escaping @Sendable () -> Void) { shared.run(body) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        run { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    private func run(_ body: @escaping @Sendable () -> Void) {
        let needsThread = state.withLock { state in
            state.waiting.append(body)
            let isShort = state.waiting.count - state.next > state.idle && state.threads < limit
            if isShort { state.threads += 1 }
            return isShort
        }
        arrived.signal()
        guard needsThread, !startThread() else { return }
        state.withLock { $0.threads -= 1 }
        // The system has no more threads. The job may run late, but it does run.
        DispatchQueue.global().async { self.runNext() }
    }

    /// Starts a thread. Returns false if the system has none.
    private func startThread() -> Bool {
        var thread = pthread_t()
        let data = Unmanaged.passRetained(self)
        let status = pthread_create(
            &thread, nil,
            { data in
                let threads = Unmanaged<CallbackThreads>.fromOpaque(data!).takeRetainedValue()
                while true { threads.runNext() }
            }, data.toOpaque())
        guard status == 0 else {
            data.release()
            return false
        }
        pthread_detach(thread)
        return true
    }

    private func runNext() {
        state.withLock { $0.idle += 1 }
        arrived.wait()
        let body = state.withLock { state in
            state.idle -= 1
            let body = state.waiting[state.next]
            state.next += 1
            if state.next == state.waiting.count { (state.waiting, state.next) = ([], 0) }
            return body
        }
        body()
    }
}
