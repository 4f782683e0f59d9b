import Dispatch

/// The threads that run code of the program, such as callbacks and the completions of asynchronous calls: neither those
/// that all tasks of the program share, nor those of the connections, since such code may wait for other calls.
final class CallbackThreads: TaskExecutor {
    static let shared = CallbackThreads()

    private let queue = DispatchQueue(label: "remote-callbacks", attributes: .concurrent)

    static func run(_ body: @escaping @Sendable () -> Void) { shared.queue.async(execute: body) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
