internal import Dispatch

/// Runs tasks on threads that they may block.
///
/// A synchronous action runs on the thread of its caller for as long as it likes. The few threads of the cooperative
/// pool would soon be all taken, so calls run here: each step of a task gets a queue, and with it a thread, of its own.
final class BlockingExecutor: TaskExecutor {
    static let shared = BlockingExecutor()

    private init() {}

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        DispatchQueue(label: "pluginhost.call").async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
