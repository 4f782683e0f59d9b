internal import PluginABI

/// A command of the program.
protocol Command: SendableMetatype {
    static var specification: CommandSpecification { get }

    /// Runs the command as a program of its own.
    static func run(_ invocation: Invocation) async throws(PluginError)
}

/// A command that sends a request to a host and prints the answer. It works with a host of its own, with an attached
/// host, and at the prompt.
///
/// The command calls the method of the same name (``HostMethod``), unless it has an `ask` of its own.
protocol Question: Command {
    /// Returns the parameters of the method.
    ///
    /// - Throws: `usage`.
    static func parameters(_ arguments: ParsedArguments) throws(PluginError) -> [String: Value]

    /// Returns the answer if no host is needed for it; otherwise `nil`.
    static func answerWithoutHost(_ arguments: ParsedArguments) async throws(PluginError) -> Value?

    /// Sends the request, and prints the answer.
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

    /// Returns the invocation with the parameters of the host's method.
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
