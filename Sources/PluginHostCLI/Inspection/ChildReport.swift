internal import CPluginHost
internal import Glibc
internal import PluginABI

extension CodeAddress {
    /// The address of a function of a module in this process; `nil` if it is not known.
    init?(of function: UnsafeRawPointer) {
        var offset: UInt64 = 0
        guard let file = plugin_host_code_address(function, &offset) else { return nil }
        self.init(file: String(cString: file), offset: offset)
    }
}

/// The report that a ``ChildProcess`` which runs code of modules sends to its parent: a value on each line.
enum ChildReport {
    /// Prepares this process for reporting.
    ///
    /// - Parameter seconds: The number of seconds after which the kernel ends the process. This ends a module that
    ///   hangs if the parent has ended or hangs, too.
    static func begin(endingAfter seconds: UInt32) {
        alarm(seconds)
        _ = fcntl(ChildProcess.reportDescriptor, F_SETFD, FD_CLOEXEC)
    }

    /// Lets the report of a fatal signal add lines with the addresses of the code of modules that was running.
    static func reportAddresses() { plugin_host_report_addresses(ChildProcess.reportDescriptor) }

    /// Adds a line. Does nothing, and raises no signal, if the parent has ended.
    static func add(_ value: Value) { _ = UnixSocket.send(value.json + "\n", to: ChildProcess.reportDescriptor) }

    /// Ends the process with a last line.
    static func end(with value: Value) -> Never {
        add(value)
        plugin_host_end(0)
    }
}
