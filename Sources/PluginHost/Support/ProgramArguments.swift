import CPluginHost

/// The arguments with which the process was started.
package enum ProgramArguments {
    /// Like `CommandLine.arguments`, but works even if `/proc` is not mounted, as in some containers.
    package static let all: [String] = {
        if !CommandLine.arguments.isEmpty { return CommandLine.arguments }
        var count: CInt = 0
        guard let words = plugin_host_arguments(&count) else { return [] }
        return (0..<Int(count)).compactMap { words[$0].map { String(cString: $0) } }
    }()
}
