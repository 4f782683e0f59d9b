internal import PluginHost

extension BlockingExecutor {
    /// For the program's own tasks: threads that code of modules cannot take.
    static let shared = BlockingExecutor(ThreadPool("host.tasks", limit: 512))
}
