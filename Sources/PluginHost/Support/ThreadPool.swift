import Dispatch
import Synchronization

/// Threads for work that may block. Each piece of work gets an idle thread or a new one; beyond the limit it waits for
/// one. A thread without work ends after a second.
package final class ThreadPool: Sendable {
    /// For code of modules that is nobody's own: steps of asynchronous interceptors, calls that were let in or held back.
    package static let shared = ThreadPool("pluginhost.pool", limit: 512)
    /// For telling callers that their time is over.
    static let deliveries = ThreadPool("pluginhost.tell", limit: 64)

    private final class Worker: Sendable {
        let work = Mutex<(@Sendable () -> Void)?>(nil)
        let isWanted = DispatchSemaphore(value: 0)
    }

    private struct State {
        var waiting: [@Sendable () -> Void] = []
        /// The last one has worked most recently.
        var idle: [Worker] = []
        var count = 0
        var users = 0
    }

    private let name: String
    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: How many threads there are at most.
    package init(_ name: String, limit: Int) { (self.name, self.limit) = (name, limit) }

    /// Makes a thread, and keeps one until ``releaseThread()``. Counted.
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

    /// Runs work on a thread of the pool; on this one where the pool has none, and the system has none left.
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

    /// Whether the next piece of work finds a thread, unless other work comes first.
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

    /// The next piece of work for a worker; nil where it is to end.
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
                guard let place = state.idle.firstIndex(where: { $0 === worker }) else { return false }
                guard state.users == 0 || place > 0 else { return false }
                guard isWanted == .timedOut || state.users == 0 else { return false }
                state.idle.remove(at: place)
                state.count -= 1
                return true
            }
            if ends { return nil }
        }
    }
}

extension SerialThread {
    /// What the process does when a time has passed: nothing on it may block.
    static let timers = SerialThread("host.deadlines")
}

extension ThreadPool {
    /// Runs code that may block when a time has passed.
    static func run(after time: Duration, _ work: @escaping @Sendable () -> Void) {
        SerialThread.timers.async(after: time) { shared.run(work) }
    }
}
