/// Runs tasks on threads that they may block.
///
/// A synchronous action runs on the thread of its caller for as long as it likes. The few threads of the cooperative
/// pool would soon be all taken, so what must not wait for them runs here: each step of a task gets a thread.
package final class BlockingExecutor: TaskExecutor {
    /// For code of modules that is nobody's own, as ``ThreadPool/shared``.
    static let modules = BlockingExecutor(.shared)

    private let threads: ThreadPool

    package init(_ threads: ThreadPool) { self.threads = threads }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        threads.run { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
