internal import PluginABI

/// One of the program's commands.
protocol Command: SendableMetatype {
    static var specification: CommandSpecification { get }

    /// Does the work as a program of its own.
    static func run(_ invocation: Invocation) async throws(PluginError)
}

/// A command that asks a host something and prints the answer; it works on its own, attached, and at the prompt.
///
/// What it asks is the method that is named like the command (``HostMethod``), unless it has an `ask` of its own.
protocol Question: Command {
    /// What the method is given.
    ///
    /// - Throws: `usage`.
    static func parameters(_ arguments: ParsedArguments) throws(PluginError) -> [String: Value]

    /// The answer, where it takes no host.
    static func answerWithoutHost(_ arguments: ParsedArguments) async throws(PluginError) -> Value?

    static func ask(_ host: any HostService, _ invocation: Invocation) async throws(PluginError)

    /// Prints the answer for people or for programs.
    static func tell(_ answer: Value, _ invocation: Invocation) throws(PluginError)

    /// Prints the answer for people.
    static func show(_ answer: Value, _ invocation: Invocation) throws(PluginError)
}

extension Question {
    static func parameters(_ arguments: ParsedArguments) throws(PluginError) -> [String: Value] { [:] }

    static func answerWithoutHost(_ arguments: ParsedArguments) async throws(PluginError) -> Value? { nil }

    static func run(_ invocation: Invocation) async throws(PluginError) {
        let invocation = try prepare(invocation)
        if let answer = try await answerWithoutHost(invocation.arguments) { return try tell(answer, invocation) }
        let host = try invocation.host()
        defer { host.end() }
        try await ask(host, invocation)
    }

    /// With what the host's method is given.
    static func prepare(_ invocation: Invocation) throws(PluginError) -> Invocation {
        var invocation = invocation
        invocation.parameters = try parameters(invocation.arguments)
        return invocation
    }

    static func ask(_ host: any HostService, _ invocation: Invocation) async throws(PluginError) {
        try tell(await host.request(specification.name, invocation.parameters), invocation)
    }

    static func tell(_ answer: Value, _ invocation: Invocation) throws(PluginError) {
        if invocation.isJSON { invocation.console.print(answer.json) } else { try show(answer, invocation) }
    }

    static func show(_ answer: Value, _ invocation: Invocation) {}
}
