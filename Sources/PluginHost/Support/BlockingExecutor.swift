/// An executor that runs tasks on threads that they may block.
///
/// A synchronous action runs on the thread of its caller for any length of time. It could soon occupy all of the few
/// threads of the cooperative pool, so tasks that must not wait for those threads run here: each step of a task gets a
/// thread.
package final class BlockingExecutor: TaskExecutor {
    /// The executor for code of modules that has no thread of its own; see ``ThreadPool/shared``.
    static let modules = BlockingExecutor(.shared)

    private let threads: ThreadPool

    package init(_ threads: ThreadPool) { self.threads = threads }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        threads.run { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
