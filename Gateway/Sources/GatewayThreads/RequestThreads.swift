import Dispatch
import Glibc
import Synchronization

/// The threads that answer requests, a few for all gateways of the process.
///
/// A task that has something done by another task, and only waits for it, can hand its thread over: the other task runs
/// on the same thread next, and no other thread is woken. If that task then hangs, the first one continues on another
/// thread.
///
/// Code that may hang occupies its thread, see ``enter()``. At least one thread is always free of such code.
package final class RequestThreads: TaskExecutor {
    /// The threads of this process.
    package static let process = RequestThreads(count: sysconf(Int32(_SC_NPROCESSORS_ONLN)))

    /// One of the threads. Its variables are used on that thread only.
    private final class Worker: @unchecked Sendable {
        let threads: RequestThreads
        let arrived = DispatchSemaphore(value: 0)
        /// Whether the next job that this thread makes runs on it, too.
        var handsOver = false
        /// What the thread runs next.
        var next: UnownedJob?
        /// How many jobs in a row have been handed over.
        var inRow = 0

        init(_ threads: RequestThreads) { self.threads = threads }
    }

    private struct State {
        var jobs = JobQueue()
        /// The threads that wait; the last one has begun to wait last.
        var idle: [Worker] = []
        /// The number of threads that do not wait.
        var running = 0
        /// The number of threads that have been started.
        var started = 0
        /// The number of threads that are occupied.
        var occupied = 0
    }

    /// How many jobs in a row are handed over at most, so that others are not kept waiting.
    private static let longestRow = 32

    private let count: Int
    private let startThread: @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - count: The number of threads that run at the same time, and of those that may be occupied, 1 or more.
    ///   - startThread: Runs a body on a new thread; returns false if the system has none.
    package init(
        count: Int,
        startThread: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool = ThreadPool.startThread
    ) {
        (self.count, self.startThread) = (max(1, count), startThread)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if let worker = Self.worker, worker.handsOver, worker.threads === self {
            worker.handsOver = false
            worker.next = job
            return
        }
        wake { state in
            state.jobs.append(job)
            return true
        }
    }

    /// Runs a body that makes a job for these threads. If this is one of them, and nothing has been handed over to it,
    /// it runs the job itself, as soon as the current one suspends or ends, which should be at once.
    ///
    /// - Parameter body: What makes the job. It must do nothing else that makes jobs.
    package func handOver<Result>(_ body: () -> Result) -> Result {
        guard let worker = Self.worker, worker.threads === self, worker.next == nil, worker.inRow < Self.longestRow
        else { return body() }
        worker.handsOver = true
        defer { worker.handsOver = false }
        return body()
    }

    /// Occupies the current thread until ``leave()``. Returns false if too many are occupied.
    package func enter() -> Bool {
        var isFree = false
        wake { state in
            isFree = state.occupied < count
            if isFree { state.occupied += 1 }
            return isFree
        }
        return isFree
    }

    /// Ends what ``enter()`` has begun.
    package func leave() { state.withLock { $0.occupied -= 1 } }

    // MARK: Threads

    private enum Found: Sendable {
        case none
        case idle(Worker)
        case new
    }

    /// Changes the state, and wakes a thread if one is needed.
    ///
    /// - Parameter change: Changes the state. Returns false if no thread is needed.
    private func wake(_ change: (inout State) -> Bool) {
        let found = state.withLock { state -> Found in
            guard change(&state), !state.jobs.isEmpty, state.running < count || state.occupied >= state.running else {
                return .none
            }
            if let worker = state.idle.popLast() {
                state.running += 1
                return .idle(worker)
            }
            // One more than can be occupied.
            guard state.started <= count else { return .none }
            state.started += 1
            state.running += 1
            return .new
        }
        switch found {
        case .none: break
        case .idle(let worker): worker.arrived.signal()
        case .new: start()
        }
    }

    private func start() {
        let worker = Worker(self)
        guard !startThread({ self.run(worker) }) else { return }
        let isNeeded = state.withLock { state in
            state.started -= 1
            state.running -= 1
            return state.running <= state.occupied
        }
        // There is no thread, or all are occupied, so that none may run what waits.
        if isNeeded { DispatchQueue.global().async { self.runWaiting() } }
    }

    /// Runs jobs for ever.
    private func run(_ worker: Worker) {
        Self.set(worker)
        let executor = asUnownedTaskExecutor()
        while true {
            if let job = worker.next {
                worker.next = nil
                worker.inRow += 1
                job.runSynchronously(on: executor)
                continue
            }
            worker.inRow = 0
            let job = state.withLock { state in
                let job = state.jobs.popFirst()
                if job == nil {
                    state.idle.append(worker)
                    state.running -= 1
                }
                return job
            }
            if let job { job.runSynchronously(on: executor) } else { worker.arrived.wait() }
        }
    }

    /// Runs what waits, in place of threads that cannot be started.
    private func runWaiting() {
        while let job = state.withLock({ $0.jobs.popFirst() }) { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    // MARK: The current thread

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        guard pthread_key_create(&key, nil) == 0 else { fatalError("The process has no more keys for threads.") }
        return key
    }()

    /// Whether the current thread is one of these.
    package var isCurrent: Bool { Self.worker?.threads === self }

    private static var worker: Worker? {
        pthread_getspecific(key).map { Unmanaged<Worker>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Makes a worker that of the current thread, which never ends.
    private static func set(_ worker: Worker) {
        pthread_setspecific(key, Unmanaged.passRetained(worker).toOpaque())
    }
}

/// Jobs in the order in which they came.
private struct JobQueue {
    private var jobs: [UnownedJob] = []
    private var first = 0

    var isEmpty: Bool { first == jobs.count }

    mutating func append(_ job: UnownedJob) { jobs.append(job) }

    mutating func popFirst() -> UnownedJob? {
        guard first < jobs.count else { return nil }
        defer {
            first += 1
            if first == jobs.count {
                jobs.removeAll(keepingCapacity: true)
                first = 0
            } else if first >= 1024, first * 2 >= jobs.count {
                jobs.removeFirst(first)
                first = 0
            }
        }
        return jobs[first]
    }
}
