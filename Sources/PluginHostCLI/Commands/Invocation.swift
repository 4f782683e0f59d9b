internal import PluginABI
internal import PluginHost

/// What a command was asked, and what it finds around itself.
struct Invocation: Sendable {
    let arguments: ParsedArguments
    let console: Console
    /// The program's environment.
    let variables: [String: String]
    /// What a question gives to the host's method.
    var parameters: [String: Value] = [:]

    var isJSON: Bool { arguments.has(.json) }

    func has(_ option: OptionSpecification) -> Bool { arguments.has(option) }

    /// The host that a command asks: one that runs already, or one of its own.
    func host() throws(PluginError) -> any HostService {
        if let path = arguments.value(of: .attach) {
            for option in OptionSpecification.hosting where has(option) {
                throw .usage("'\(option.name)' has no effect on a host that runs already ('--attach').")
            }
            return try AttachedHost(path: path)
        }
        var configuration = try arguments.configuration(
            environment: variables, log: try arguments.log(to: console, from: .warning))
        configuration.watches = false
        return try LocalHost(starting: configuration)
    }
}
