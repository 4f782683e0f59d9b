internal import PluginABI
internal import PluginHost

/// The host that a command asks: one that runs already, or one of its own that ends with it.
enum HostSession {
    /// `end` must be called when the command has its answer.
    static func begin(
        _ arguments: ParsedArguments, _ environment: CommandEnvironment
    ) throws(PluginError) -> (service: any HostService, end: () -> Void) {
        if let path = arguments.value(of: .attach) {
            for option in OptionSpecification.hosting where arguments.has(option) {
                throw PluginError(.usage, "'\(option.name)' has no effect on a host that runs already ('--attach').")
            }
            return (try AttachedHost(path: path), {})
        }
        let console = environment.console
        var configuration = try arguments.configuration(
            environment: environment.variables, log: try arguments.log(to: console, from: .warning))
        configuration.watches = false
        let host = try started(configuration)
        return (LocalHost(host: host, trustsEveryone: configuration.trustsEveryone), { host.shutdown() })
    }

    /// Starts a host and says what is wrong with its folders.
    ///
    /// - Parameter prepare: What is to be done before modules are loaded.
    static func started(
        _ configuration: PluginHost.Configuration, prepare: (PluginHost) throws(PluginError) -> Void = { _ in }
    ) throws(PluginError) -> PluginHost {
        PluginHost.installFatalSignalReport()
        let host = PluginHost(configuration)
        try prepare(host)
        try host.start()
        for problem in host.unloggedProblems { configuration.log(LogEntry(level: .warning, message: problem.line)) }
        return host
    }
}
