internal import PluginABI
internal import PluginHost

/// The arguments and the surroundings of a command.
struct Invocation: Sendable {
    let arguments: ParsedArguments
    let console: Console
    /// The program's environment variables.
    let variables: [String: String]
    /// The parameters of the host's method, for a question.
    var parameters: [String: Value] = [:]

    var isJSON: Bool { arguments.has(.json) }

    func has(_ option: OptionSpecification) -> Bool { arguments.has(option) }

    /// Returns the host that the command uses: a running one, or one of its own.
    func host() throws(PluginError) -> any HostService {
        if let path = arguments.value(of: .attach) {
            for option in OptionSpecification.hosting where has(option) {
                throw .usage("'\(option.name)' has no effect on a host that is already running ('--attach').")
            }
            return try AttachedHost(path: path)
        }
        var configuration = try arguments.configuration(
            environment: variables, log: try arguments.log(to: console, from: .warning))
        configuration.watches = false
        return try LocalHost(starting: configuration)
    }
}
