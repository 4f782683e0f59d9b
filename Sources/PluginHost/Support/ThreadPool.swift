import Dispatch
import Synchronization

/// A pool of threads for work that may block. Each piece of work gets an idle thread or a new one; if the limit is
/// reached, it waits until a thread is idle. An idle thread ends after a second.
package final class ThreadPool: Sendable {
    /// The pool for code of modules that has no thread of its own: steps of asynchronous interceptors, and calls that
    /// have waited for a gate or a barrier.
    package static let shared = ThreadPool("pluginhost.pool", limit: 512)
    /// The pool for reporting to callers that their deadline has passed.
    static let deliveries = ThreadPool("pluginhost.tell", limit: 64)

    private final class Worker: Sendable {
        let work = Mutex<(@Sendable () -> Void)?>(nil)
        let isWanted = DispatchSemaphore(value: 0)
    }

    private struct State {
        var waiting: [@Sendable () -> Void] = []
        /// The idle threads; the last one has worked most recently.
        var idle: [Worker] = []
        var count = 0
        var users = 0
    }

    private let name: String
    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: The maximum number of threads.
    package init(_ name: String, limit: Int) { (self.name, self.limit) = (name, limit) }

    /// Creates a thread, and keeps one until ``releaseThread()`` has been called as often as this function.
    package func retainThread() {
        state.withLock { state in
            state.users += 1
            if state.count == 0 { _ = makeThread(&state, {}) }
        }
    }

    package func releaseThread() {
        state.withLock { state in
            state.users -= 1
            if state.users == 0 { state.idle.first?.isWanted.signal() }
        }
    }

    /// Runs work on a thread of the pool; on this thread if the pool has none and the system cannot create one.
    package func run(_ work: @escaping @Sendable () -> Void) {
        let hasThread = state.withLock { state in
            if let worker = state.idle.popLast() {
                worker.work.withLock { $0 = work }
                worker.isWanted.signal()
                return true
            }
            if state.count < limit, makeThread(&state, work) { return true }
            guard state.count > 0 else { return false }
            state.waiting.append(work)
            return true
        }
        if !hasThread { work() }
    }

    /// Whether a thread is available for the next piece of work, unless other work is added first.
    package var hasThread: Bool {
        state.withLock { state in
            !state.idle.isEmpty || state.waiting.isEmpty && state.count < limit && makeThread(&state, {})
        }
    }

    private func makeThread(_ state: inout State, _ first: @escaping @Sendable () -> Void) -> Bool {
        guard DetachedThread.tryStart(name, { self.serve(first) }) == 0 else { return false }
        state.count += 1
        return true
    }

    private func serve(_ first: @Sendable () -> Void) {
        first()
        let worker = Worker()
        while let next = next(worker) { next() }
    }

    /// Returns the next piece of work for a worker; `nil` if it should end.
    private func next(_ worker: Worker) -> (@Sendable () -> Void)? {
        let waiting: (@Sendable () -> Void)? = state.withLock { state in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.idle.append(worker)
            return nil
        }
        if let waiting { return waiting }
        while true {
            let keeps = state.withLock { $0.users > 0 && $0.idle.first === worker }
            let isWanted =
                keeps ? worker.isWanted.wait(timeout: .distantFuture) : worker.isWanted.wait(timeout: .now() + 1)
            if let work = worker.work.withLock({ $0.take() }) { return work }
            let ends = state.withLock { state in
                guard let index = state.idle.firstIndex(where: { $0 === worker }) else { return false }
                guard state.users == 0 || index > 0 else { return false }
                guard isWanted == .timedOut || state.users == 0 else { return false }
                state.idle.remove(at: index)
                state.count -= 1
                return true
            }
            if ends { return nil }
        }
    }
}

extension SerialThread {
    /// The process's timers. Nothing on this thread may block.
    static let timers = SerialThread("host.deadlines")
}

extension ThreadPool {
    /// After a delay, runs code that may block.
    static func run(after time: Duration, _ work: @escaping @Sendable () -> Void) {
        SerialThread.timers.async(after: time) { shared.run(work) }
    }
}
