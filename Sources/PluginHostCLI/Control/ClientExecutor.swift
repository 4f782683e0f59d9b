internal import PluginHost
internal import Synchronization

/// Runs the tasks of one client of the control socket, one step at a time.
///
/// The lines of a client are therefore parsed, and its answers encoded, on one thread at a time. Long work, such as a
/// line of many megabytes, delays only that client.
final class ClientExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var isRunning = false
    }

    private let threads: ThreadPool
    private let state = Mutex(State())

    /// - Parameter threads: A pool with as many threads as there are clients, so that no client waits for another.
    init(_ threads: ThreadPool) { self.threads = threads }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let begins = state.withLock { state in
            state.jobs.append(job)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if begins { threads.run { self.runJobs() } }
    }

    private func runJobs() {
        while true {
            let jobs = state.withLock { state in
                defer { state.jobs = [] }
                state.isRunning = !state.jobs.isEmpty
                return state.jobs
            }
            if jobs.isEmpty { return }
            for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }
}
