import Dispatch
import Foundation
import Synchronization

/// Threads for code that may block, such as actions and callbacks, which are not the threads that all other tasks of the
/// program share.
///
/// At a time, as many threads run as there are processors, and one more for each that has run the same job for some
/// milliseconds, since such a job probably waits. If the system has no more threads, jobs run later, on those of Dispatch.
package final class ThreadPool: TaskExecutor {
    private enum Work {
        case job(UnownedJob)
        case body(@Sendable () -> Void)
    }

    /// One thread. Everything but ``count`` is used by the thread itself, or while the state is locked.
    private final class Worker: @unchecked Sendable {
        /// A pool that has a thread lives as long as the process.
        unowned let pool: ThreadPool
        /// Odd while a job runs.
        let count = Atomic<UInt64>(0)
        /// ``count`` when the watching thread looked last.
        var seen: UInt64 = 0
        /// Whether the thread is in ``State/blocked``.
        var isBlocked = false
        /// The job that the thread runs after the present one.
        var next: Work?
        var acceptsNext = false
        /// How many jobs have followed each other as ``next``.
        var followers = 0

        init(_ pool: ThreadPool) { self.pool = pool }
    }

    private struct State {
        var waiting: [Work] = []
        var next = 0
        var workers: [Worker] = []
        /// The threads that exist or are being started.
        var threads = 0
        /// The threads that sleep, without those that have been woken.
        var idle = 0
        /// The threads that have run the same job for a while.
        var blocked = 0
        var isWatched = false
        var hasWatcher = false

        var count: Int { waiting.count - next }

        mutating func take() -> Work? {
            guard count > 0 else { return nil }
            let work = waiting[next]
            next += 1
            if next == waiting.count {
                waiting.removeAll(keepingCapacity: waiting.capacity <= 1024)
                next = 0
            } else if next >= 1024, next * 2 >= waiting.count {
                waiting.removeFirst(next)
                next = 0
            }
            return work
        }
    }

    /// What needs to be done for jobs that wait, by whoever has noticed it.
    private struct Needed {
        var wakes = 0
        var starts = 0
        var watch = false
    }

    private let limit: Int
    private let width: Int
    private let startThread: @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool
    private let state = Mutex(State())
    private let arrived = DispatchSemaphore(value: 0)
    private let watched = DispatchSemaphore(value: 0)

    /// The data of a thread: its ``Worker``.
    private static let key = {
        var key = pthread_key_t()
        precondition(pthread_key_create(&key, nil) == 0, "There are no more keys for data of threads.")
        return key
    }()

    /// The most jobs that follow each other on a thread while others wait.
    private static let followerLimit = 16

    /// - Parameters:
    ///   - limit: The largest number of threads, 1 or more.
    ///   - startThread: Runs a body on a new thread; returns false if the system has none.
    package init(
        limit: Int,
        startThread: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool = ThreadPool.startThread
    ) {
        (self.limit, self.startThread) = (max(1, limit), startThread)
        width = max(2, ProcessInfo.processInfo.activeProcessorCount)
    }

    // MARK: Adding

    package func enqueue(_ job: consuming ExecutorJob) { add(.job(UnownedJob(job))) }

    /// Runs a body on one of the threads.
    package func run(_ body: @escaping @Sendable () -> Void) { add(.body(body)) }

    /// Lets this thread, if it is one of the pool, run the first job that `body` adds as soon as its present job ends or
    /// suspends, instead of waking another thread. To be used right before that.
    package func handingOver<Result>(_ body: () -> Result) -> Result {
        guard let worker = current, worker.next == nil, worker.followers < Self.followerLimit else { return body() }
        worker.acceptsNext = true
        defer { worker.acceptsNext = false }
        return body()
    }

    private var current: Worker? {
        guard let data = pthread_getspecific(Self.key) else { return nil }
        let worker = Unmanaged<Worker>.fromOpaque(data).takeUnretainedValue()
        return worker.pool === self ? worker : nil
    }

    private func add(_ work: Work) {
        if let worker = current, worker.acceptsNext {
            worker.acceptsNext = false
            worker.followers += 1
            worker.next = work
            return
        }
        let needed = state.withLock { state in
            state.waiting.append(work)
            var needed = threads(for: 1, &state)
            if needed.wakes + needed.starts == 0, !state.isWatched {
                (state.isWatched, needed.watch) = (true, true)
            }
            return needed
        }
        provide(needed)
    }

    /// Reserves threads for jobs that wait.
    private func threads(for count: Int, _ state: inout State) -> Needed {
        var needed = Needed()
        while needed.wakes + needed.starts < count, state.threads - state.idle < width + state.blocked {
            if state.idle > 0 {
                state.idle -= 1
                needed.wakes += 1
            } else if state.threads < limit {
                state.threads += 1
                needed.starts += 1
            } else {
                break
            }
        }
        return needed
    }

    private func provide(_ needed: Needed) {
        for _ in 0..<needed.wakes { arrived.signal() }
        for _ in 0..<needed.starts where !startThread({ self.work() }) {
            state.withLock { $0.threads -= 1 }
            // The job may run late, but it does run.
            DispatchQueue.global().async {
                if let work = self.state.withLock({ $0.take() }) { self.run(work) }
            }
        }
        if needed.watch { startWatching() }
    }

    // MARK: The threads

    private func work() {
        let worker = Worker(self)
        pthread_setspecific(Self.key, Unmanaged.passRetained(worker).toOpaque())
        state.withLock { $0.workers.append(worker) }
        while true {
            worker.followers = 0
            let work = state.withLock { state in
                if worker.isBlocked {
                    worker.isBlocked = false
                    state.blocked -= 1
                }
                let work = state.take()
                if work == nil { state.idle += 1 }
                return work
            }
            guard var work else {
                arrived.wait()
                continue
            }
            while true {
                worker.count.add(1, ordering: .relaxed)
                run(work)
                worker.count.add(1, ordering: .relaxed)
                guard let next = worker.next else { break }
                (work, worker.next) = (next, nil)
            }
        }
    }

    private func run(_ work: Work) {
        switch work {
        case .job(let job): job.runSynchronously(on: asUnownedTaskExecutor())
        case .body(let body): body()
        }
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

    // MARK: Watching

    /// Looks for threads that are blocked, until no job waits.
    private func startWatching() {
        let isNew = state.withLock { state in
            defer { state.hasWatcher = true }
            return !state.hasWatcher
        }
        if isNew, !startThread({ self.watch() }) {
            // The next job that finds no thread tries again.
            state.withLock { ($0.hasWatcher, $0.isWatched) = (false, false) }
            DispatchQueue.global().async { _ = self.look() }
            return
        }
        watched.signal()
    }

    private func watch() {
        while true {
            watched.wait()
            var pause: UInt32 = 1000
            repeat {
                usleep(pause)
                pause = min(4000, pause * 2)
            } while look()
        }
    }

    /// Adds threads for those that are blocked. Returns false, and ends the watching, if no job waits.
    private func look() -> Bool {
        let needed: Needed? = state.withLock { state in
            guard state.count > 0 else {
                state.isWatched = false
                return nil
            }
            for worker in state.workers where !worker.isBlocked {
                let count = worker.count.load(ordering: .relaxed)
                if count == worker.seen, !count.isMultiple(of: 2) {
                    worker.isBlocked = true
                    state.blocked += 1
                }
                worker.seen = count
            }
            return threads(for: state.count, &state)
        }
        guard let needed else { return false }
        provide(needed)
        return true
    }
}
