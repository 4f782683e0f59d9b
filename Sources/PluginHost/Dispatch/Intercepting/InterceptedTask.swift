import CPluginABI
import Dispatch

/// The call that a task of an interceptor works on, as the parent of calls that it makes.
enum InterceptedTask {
    @TaskLocal static var call: plugin_token = 0
}

/// Runs each step of a task on a thread that it may block.
final class BlockingThreads: TaskExecutor {
    static let shared = BlockingThreads()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        DispatchQueue(label: "pluginhost.interceptor").async {
            job.runSynchronously(on: self.asUnownedTaskExecutor())
        }
    }
}
