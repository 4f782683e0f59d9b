import CPluginHost
package import PluginABI
import PluginFile

/// A thread that is never joined.
///
/// Foundation's `Thread` does not report that a thread could not be created, so code that waits for its work would wait
/// forever.
package enum DetachedThread {
    private final class Work {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Starts a thread that runs `body` and then ends.
    ///
    /// - Parameter name: The name for debuggers, at most 15 bytes.
    /// - Throws: `outOfResources`, naming the limits, if the kernel refuses to create a thread.
    package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) throws(PluginError) {
        let error = tryStart(name, body)
        guard error != 0 else { return }
        throw PluginError(
            .outOfResources,
            "The thread \(name) cannot be started: \(describe(errno: error)). \(ProcessLimits.ofThreads)")
    }

    /// Starts a thread that runs `body` and then ends. Returns 0, or the error of `pthread_create`.
    static func tryStart(_ name: String, _ body: @escaping @Sendable () -> Void) -> Int32 {
        let work = Unmanaged.passRetained(Work(body))  // Released by the thread, or here if there is none.
        let error = plugin_host_thread_start(
            name,
            { data in
                let work = Unmanaged<Work>.fromOpaque(data!).takeRetainedValue()
                work.body()
                return nil
            }, work.toOpaque())
        if error != 0 { work.release() }
        return error
    }
}
