import Dispatch

/// The threads that run callbacks: neither those that all tasks of the program share, nor those of the connections.
final class CallbackThreads: TaskExecutor {
    static let shared = CallbackThreads()

    private let queue = DispatchQueue(label: "remote-callbacks", attributes: .concurrent)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
