package import Dispatch
import Glibc
import Synchronization

/// Threads for code that may block, such as actions and callbacks: neither the threads that all tasks of the program
/// share, nor those of the connections. There is a thread for each piece of code that runs or waits, up to a limit. A
/// thread that has nothing to run for a while ends. If the system has no more threads, code runs later, on those of
/// Dispatch.
package final class ThreadPool: TaskExecutor {
    private typealias Body = @Sendable () -> Void

    /// One of the threads.
    private final class Worker: Sendable {
        /// What the thread is to run next. It is set before ``arrived`` is signalled.
        private let body: Mutex<Body?>
        let arrived = DispatchSemaphore(value: 0)

        init(_ body: @escaping Body) { self.body = Mutex(body) }

        func give(_ new: @escaping Body) { body.withLock { $0 = new } }
        func take() -> Body? { body.withLock { $0.take() } }
    }

    private struct State {
        /// What waits until one of the threads, or one of Dispatch, has finished.
        var waiting: [Body?] = []
        var next = 0
        /// The threads that wait; the last one has begun to wait last.
        var idle: [Worker] = []
        var threads = 0

        mutating func take() -> Body? {
            guard next < waiting.count else { return nil }
            defer {
                waiting[next] = nil
                next += 1
                if next == waiting.count || next >= 1024 && next * 2 >= waiting.count {
                    waiting.removeFirst(next)
                    next = 0
                }
            }
            return waiting[next]
        }
    }

    private let limit: Int
    private let idleTime: DispatchTimeInterval
    private let startThread: @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - limit: The largest number of threads, 1 or more.
    ///   - idleTime: How long a thread waits for something to run until it ends.
    ///   - startThread: Runs a body on a new thread; returns false if the system has none.
    package init(
        limit: Int, idleTime: DispatchTimeInterval = .seconds(10),
        startThread: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool = ThreadPool.startThread
    ) {
        (self.limit, self.idleTime, self.startThread) = (max(1, limit), idleTime, startThread)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        run { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Runs a body on one of the threads: the one that has been idle for the shortest time, so that threads that are
    /// not needed end; a new one if none is idle.
    package func run(_ body: @escaping @Sendable () -> Void) {
        let found: (worker: Worker, isNew: Bool)? = state.withLock { state in
            if let worker = state.idle.popLast() {
                worker.give(body)
                return (worker, false)
            }
            guard state.threads < limit else {
                state.waiting.append(body)
                return nil
            }
            state.threads += 1
            return (Worker(body), true)
        }
        guard let (worker, isNew) = found else { return }
        guard isNew else {
            worker.arrived.signal()
            return
        }
        guard !startThread({ while let body = self.next(worker) { body() } }) else { return }
        let idle = state.withLock { state in
            state.threads -= 1
            let idle = state.idle.popLast()
            if let idle { idle.give(body) } else { state.waiting.append(body) }
            return idle
        }
        if let idle { idle.arrived.signal() } else { DispatchQueue.global().async { self.runWaiting() } }
    }

    /// Returns what a thread is to run next, and waits for it if necessary; `nil` if nothing arrives, so that the thread
    /// should end.
    private func next(_ worker: Worker) -> Body? {
        let body = state.withLock { state in
            let body = worker.take() ?? state.take()
            if body == nil { state.idle.append(worker) }
            return body
        }
        if let body { return body }
        if worker.arrived.wait(timeout: .now() + idleTime) == .timedOut {
            let ends = state.withLock { state in
                guard let place = state.idle.firstIndex(where: { $0 === worker }) else { return false }
                state.idle.remove(at: place)
                state.threads -= 1
                return true
            }
            if ends { return nil }
            // The thread has just been given something; the signal follows.
            worker.arrived.wait()
        }
        return worker.take()
    }

    /// Runs what waits, in place of a thread that cannot be started.
    private func runWaiting() {
        while let body = state.withLock({ $0.take() }) { body() }
    }

    /// Starts a thread of the system. Returns false if there are no more.
    ///
    /// - Parameter body: What the thread runs.
    package static let startThread: @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool = { body in
        final class Body {
            let run: @Sendable () -> Void
            init(_ run: @escaping @Sendable () -> Void) { self.run = run }
        }
        var thread = pthread_t()
        let data = Unmanaged.passRetained(Body(body))
        let status = pthread_create(
            &thread, nil,
            { data in
                Unmanaged<Body>.fromOpaque(data!).takeRetainedValue().run()
                return nil
            }, data.toOpaque())
        guard status == 0 else {
            data.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
