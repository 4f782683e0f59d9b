internal import PluginABI

/// One of the program's commands.
protocol Command: Sendable {
    static var specification: CommandSpecification { get }

    init(_ arguments: ParsedArguments) throws(PluginError)

    /// Does the work as a program of its own.
    func run(_ environment: CommandEnvironment) async throws(PluginError)
}

/// A command that asks a host something and prints the answer; it works on its own, attached, and at the prompt.
protocol Question: Command {
    var arguments: ParsedArguments { get }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError)
}

/// What a command finds around itself.
struct CommandEnvironment: Sendable {
    let console: Console
    let variables: [String: String]
}

extension Question {
    func run(_ environment: CommandEnvironment) async throws(PluginError) {
        let (service, end) = try HostSession.begin(arguments, environment)
        defer { end() }
        try await ask(service, environment.console)
    }
}
