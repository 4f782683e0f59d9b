import CPluginHost

/// The words that the process was started with.
package enum ProgramArguments {
    /// `CommandLine.arguments`, also where `/proc` is not mounted, as in some containers.
    package static let all: [String] = {
        if !CommandLine.arguments.isEmpty { return CommandLine.arguments }
        var count: CInt = 0
        guard let words = plugin_host_arguments(&count) else { return [] }
        return (0..<Int(count)).compactMap { words[$0].map { String(cString: $0) } }
    }()
}
