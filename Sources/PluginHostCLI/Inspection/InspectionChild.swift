internal import Glibc
internal import PluginABI
internal import PluginHost

/// What the child process of an inspection does: runs the module's code, reports, and ends.
enum InspectionChild {
    /// The hidden word in front of its arguments.
    static let word = "inspect-in-this-process"

    /// The arguments are `trust` or `check`, the seconds after which the kernel ends the process, and the file. The report
    /// is `{"report": …}` or `{"error": …}`.
    static func run(_ arguments: [String]) -> Never {
        guard arguments.count == 3, let seconds = UInt32(arguments[1]) else { _exit(ExitCode.usage.rawValue) }
        ChildReport.begin(endingAfter: seconds)
        // Connections that the parent accepted while it started this process.
        for descriptor in ChildProcess.reportDescriptor + 1..<256 { close(descriptor) }
        do throws(PluginError) {
            let report = try PluginHost.inspect(file: arguments[2], trustsEveryone: arguments[0] == "trust")
            ChildReport.end(with: ["report": report.json])
        } catch {
            ChildReport.end(with: ["error": error.record])
        }
    }
}
