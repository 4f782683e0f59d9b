import Foundation
import Synchronization

/// The threads that serve connections and run actions. A synchronous action keeps its thread as long as it likes, so
/// these are not the threads that all other tasks of the program share.
///
/// As many threads run as there are processors. While jobs wait, a watcher looks every ``period`` which threads are
/// still at the same job as before, and starts others in their place.
final class CallThreads: TaskExecutor {
    /// A thread. What is not atomic is used by the thread alone, or under the lock.
    private final class Worker: @unchecked Sendable {
        let arrived = DispatchSemaphore(value: 0)
        /// How many jobs it has begun.
        let begun = Atomic(0)

        // Used by the thread alone.
        /// The job that it runs next.
        var next: UnownedJob?
        /// Whether a job that comes from the running one becomes the next one.
        var handsOver = false

        // Used under the lock.
        /// How many jobs it had begun when the watcher looked.
        var seen = -1
        /// Whether it has been at one job since then.
        var isBusy = false
    }

    private struct State {
        var waiting: [UnownedJob] = []
        var next = 0
        var workers: [ObjectIdentifier: Worker] = [:]
        var idle: [Worker] = []
        var busy = 0
        var isWatched = false
        /// How many more threads are started at a time than are missing: more and more, while all are busy.
        var surplus = 0

        var waitingCount: Int { waiting.count - next }
        /// How many threads go on to further jobs.
        var running: Int { workers.count - idle.count - busy }

        mutating func take() -> UnownedJob? {
            guard next < waiting.count else { return nil }
            let job = waiting[next]
            next += 1
            if next == waiting.count {
                (waiting, next) = (Array(), 0)
            } else if next >= 1024, 2 * next > waiting.count {
                waiting.removeFirst(next)
                next = 0
            }
            return job
        }
    }

    /// The time between two looks of the watcher.
    private static let period = Duration.milliseconds(2)
    /// How long a thread waits for a job before it ends, in seconds.
    private static let patience = 10.0
    /// The worker of the current thread.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    private let width = max(2, ProcessInfo.processInfo.activeProcessorCount)
    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: How many jobs may keep their threads at once.
    init(limit: Int) { self.limit = limit + width }

    private var current: Worker? {
        pthread_getspecific(Self.key).map { Unmanaged<Worker>.fromOpaque($0).takeUnretainedValue() }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if let worker = current, worker.handsOver, worker.next == nil {
            worker.next = job
            return
        }
        let (idle, new, watches): (Worker?, Worker?, Bool) = state.withLock { state in
            state.waiting.append(job)
            guard state.running >= width else {
                let (idle, new) = addThread(&state)
                return (idle, new, false)
            }
            let watches = !state.isWatched
            state.isWatched = true
            return (nil, nil, watches)
        }
        idle?.arrived.signal()
        if let new { start(new) }
        if watches { Thread.detachNewThread { [self] in watch() } }
    }

    /// Runs a body that lets another job go on: that job is the next one on this thread, without a detour by other
    /// threads. The running job must end, or wait, immediately after it.
    func handOver<Result>(_ body: () -> Result) -> Result {
        guard let worker = current else { return body() }
        worker.handsOver = true
        defer { worker.handsOver = false }
        return body()
    }

    /// Chooses an idle thread, or adds one.
    private func addThread(_ state: inout State) -> (idle: Worker?, new: Worker?) {
        if let idle = state.idle.popLast() { return (idle, nil) }
        guard state.workers.count < limit else { return (nil, nil) }
        let new = Worker()
        state.workers[ObjectIdentifier(new)] = new
        return (nil, new)
    }

    // MARK: Threads

    private func start(_ worker: Worker) {
        Thread.detachNewThread { [self] in
            pthread_setspecific(Self.key, Unmanaged.passUnretained(worker).toOpaque())
            run(worker)
            pthread_setspecific(Self.key, nil)
        }
    }

    private func run(_ worker: Worker) {
        while true {
            let job: UnownedJob
            if let next = worker.next {
                (job, worker.next) = (next, nil)
            } else if let next = take(worker) {
                job = next
            } else if wait(worker) {
                continue
            } else {
                return
            }
            worker.begun.add(1, ordering: .relaxed)
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }

    /// Takes a job that waits. If there is none, or enough threads run without this one, it is idle.
    private func take(_ worker: Worker) -> UnownedJob? {
        let (job, watches): (UnownedJob?, Bool) = state.withLock { state in
            if worker.isBusy {
                worker.isBusy = false
                state.busy -= 1
            }
            if state.running <= width, let job = state.take() { return (job, false) }
            state.idle.append(worker)
            // Those that run may be at long jobs.
            let watches = state.waitingCount > 0 && !state.isWatched
            if watches { state.isWatched = true }
            return (nil, watches)
        }
        if watches { Thread.detachNewThread { [self] in watch() } }
        return job
    }

    /// Waits until there may be a job. Returns false if the thread has to end.
    private func wait(_ worker: Worker) -> Bool {
        while worker.arrived.wait(timeout: .now() + Self.patience) == .timedOut {
            let hasEnded = state.withLock { state in
                guard let place = state.idle.firstIndex(where: { $0 === worker }) else { return false }
                state.idle.remove(at: place)
                state.workers[ObjectIdentifier(worker)] = nil
                return true
            }
            if hasEnded { return false }
        }
        return true
    }

    // MARK: The watcher

    /// Looks for busy threads, as long as jobs wait.
    private func watch() {
        while true {
            usleep(UInt32(Self.period / .microseconds(1)))
            let (idle, new, isOver) = state.withLock { state in
                guard state.waitingCount > 0 else {
                    (state.isWatched, state.surplus) = (false, 0)
                    return ([Worker](), [Worker](), true)
                }
                return look(&state)
            }
            for worker in idle { worker.arrived.signal() }
            for worker in new { start(worker) }
            if isOver { return }
        }
    }

    private func look(_ state: inout State) -> (idle: [Worker], new: [Worker], isOver: Bool) {
        let idle = Set(state.idle.map(ObjectIdentifier.init))
        for (id, worker) in state.workers where !idle.contains(id) && !worker.isBusy {
            let begun = worker.begun.load(ordering: .relaxed)
            worker.isBusy = begun == worker.seen
            worker.seen = begun
            if worker.isBusy { state.busy += 1 }
        }
        let missing = width - state.running
        guard missing > 0 else {
            state.surplus = 0
            return ([], [], false)
        }
        var (woken, new): ([Worker], [Worker]) = ([], [])
        for _ in 0..<min(missing + state.surplus, state.waitingCount) {
            let added = addThread(&state)
            if let idle = added.idle { woken.append(idle) }
            if let worker = added.new { new.append(worker) }
        }
        state.surplus = min(64, 2 * state.surplus + missing)
        return (woken, new, false)
    }
}
