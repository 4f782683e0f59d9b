internal import PluginHost

extension BlockingExecutor {
    /// The executor of the program's own tasks. Tasks of modules do not run on its threads.
    static let shared = BlockingExecutor(ThreadPool("host.tasks", limit: 512))
}
