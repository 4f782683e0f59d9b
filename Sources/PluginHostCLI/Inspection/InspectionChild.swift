internal import Glibc
internal import PluginABI
internal import PluginHost

/// The child process of an inspection: runs the module's code, reports, and ends.
enum InspectionChild {
    /// The hidden command of the child process.
    static let word = "inspect-in-this-process"

    /// Inspects a file and reports `{"untyped": …}`, then `{"report": …}` with the types that it derives, or `{"error": …}`.
    ///
    /// - Parameter arguments: `trust` or `check`, the number of seconds after which the kernel ends the process, and
    ///   the file.
    static func run(_ arguments: [String]) -> Never {
        guard arguments.count == 3, let seconds = UInt32(arguments[1]) else { _exit(ExitCode.usage.rawValue) }
        ChildReport.begin(endingAfter: seconds)
        // This process may have inherited connections that the parent accepted while it started this process.
        for descriptor in ChildProcess.reportDescriptor + 1..<256 { close(descriptor) }
        do throws(PluginError) {
            let report = try PluginHost.inspect(file: arguments[2], trustsEveryone: arguments[0] == "trust")
            ChildReport.add(["untyped": report.json])
            ChildReport.end(with: ["report": report.derivingTypes().json])
        } catch {
            ChildReport.end(with: ["error": error.record])
        }
    }
}
