internal import CPluginHost
internal import Glibc
internal import PluginABI
internal import PluginHost

/// What the child process of an inspection does: runs the module's code, reports, and ends.
enum InspectionChild {
    /// The hidden word in front of its arguments.
    static let word = "inspect-in-this-process"

    /// The arguments are `trust` or `check`, the seconds after which the kernel ends the process, and the file.
    static func run(_ arguments: [String]) -> Never {
        guard arguments.count == 3, let seconds = UInt32(arguments[1]) else { _exit(ExitCode.usage.rawValue) }
        // Should the parent be gone, nobody else ends a module that hangs.
        alarm(seconds)
        forgetInheritedDescriptors()
        _ = fcntl(ChildProcess.reportDescriptor, F_SETFD, FD_CLOEXEC)
        do {
            let report = try PluginHost.inspect(file: arguments[2], trustsEveryone: arguments[0] == "trust")
            write(InspectionReport(.success(report.json)).text)
        } catch {
            write(InspectionReport(.failure(error)).text)
        }
        plugin_host_end(0)
    }

    /// Connections that the parent accepted while it started this process.
    private static func forgetInheritedDescriptors() {
        for descriptor in ChildProcess.reportDescriptor + 1..<256 { close(descriptor) }
    }

    /// Adds to the report. When the parent is gone that does nothing: what ends this process then is not a signal.
    static func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                send(ChildProcess.reportDescriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count > 0 { rest.removeFirst(count) } else if errno != EINTR { return }
        }
    }
}
