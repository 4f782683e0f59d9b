internal import CPluginHost
internal import Glibc
internal import PluginABI

/// What a ``ChildProcess`` that runs code of modules tells its parent: a value on each line.
enum ChildReport {
    /// Prepares this process for that.
    ///
    /// - Parameter seconds: When the kernel ends the process: should the parent be gone, or hang, too, nobody else ends a
    ///   module that does.
    static func begin(endingAfter seconds: UInt32) {
        alarm(seconds)
        _ = fcntl(ChildProcess.reportDescriptor, F_SETFD, FD_CLOEXEC)
    }

    /// Adds a line. When the parent is gone that does nothing: what ends this process then is not a signal.
    static func add(_ value: Value) { _ = UnixSocket.send(value.json + "\n", to: ChildProcess.reportDescriptor) }

    /// Ends the process with a last line.
    static func end(with value: Value) -> Never {
        add(value)
        plugin_host_end(0)
    }
}
