internal import PluginABI
internal import PluginFile
internal import PluginHost

/// The arguments and the surroundings of a command.
struct Invocation: Sendable {
    let arguments: ParsedArguments
    let console: Console
    /// The program's environment variables.
    let variables: [String: String]
    /// The parameters of the host's method, for a question.
    var parameters: [String: Value] = [:]

    /// The host of the prompt at which the command was entered; `nil` if it was entered in a shell.
    var promptHost: (any HostService)? = nil

    var isJSON: Bool { arguments.has(.json) }

    func has(_ option: OptionSpecification) -> Bool { arguments.has(option) }

    /// Returns the host that the command uses: that of the prompt, a running one, or one of its own.
    ///
    /// A command with `--plugins` or another option of a host has a host of its own, and so has one in an environment
    /// with `PLUGINHOST_PATH`. Any other command uses the host on the default socket, if there is one. That
    /// host must answer soon; otherwise the command fails.
    func host() throws(PluginError) -> any HostService {
        let advice = ", or use a host of the command's own with '\(OptionSpecification.plugins.name)'"
        if let host = try runningHost(advice: advice) { return host }
        var configuration = try arguments.configuration(
            environment: variables, log: try arguments.log(to: console, from: .warning))
        configuration.watches = false
        // The command needs the modules now.
        configuration.hookPatience = configuration.hookTimeout
        // A setting for 'run --lazy' may come from a configuration file.
        if configuration.start != .lazy { configuration.isolation.restAfter = nil }
        return try LocalHost(starting: configuration)
    }

    /// Returns the invocation without an option that does not concern the host.
    func without(_ option: OptionSpecification) -> Invocation {
        var arguments = arguments
        arguments.values[option.name] = nil
        return Invocation(
            arguments: arguments, console: console, variables: variables, parameters: parameters, promptHost: promptHost
        )
    }

    /// Returns the running host that the command uses; `nil` if there is none, or if the command has one of its own.
    ///
    /// - Parameter advice: What the command can do if the host on the default socket does not answer, besides waiting.
    func runningHost(advice: String = "") throws(PluginError) -> (any HostService)? {
        if let promptHost { return BorrowedHost(host: promptHost) }
        let choices = OptionSpecification.hosting.filter(has)
        if let path = arguments.value(of: .attach) {
            if let option = choices.first {
                throw .usage("'\(option.name)' has no effect on a host that is already running ('--attach').")
            }
            return try AttachedHost(path: path)
        }
        guard choices.isEmpty, variables["PLUGINHOST_PATH", default: ""].isEmpty,
            let host = try DefaultSocket.host(variables, advice: advice)
        else { return nil }
        console.diagnose("Using the host on \(host.path.printable).")
        return host
    }
}

/// A host whose use by a command ends without ending the host.
private struct BorrowedHost: HostService {
    let host: any HostService

    func request(_ method: String, _ parameters: [String: Value]) async throws(PluginError) -> Value {
        try await host.request(method, parameters)
    }

    func end() {}
}
