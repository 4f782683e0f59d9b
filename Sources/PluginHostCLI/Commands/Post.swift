internal import PluginABI

/// `pluginhost post EVENT [name=value …]`
enum Post: Question {
    static let sticky = OptionSpecification(
        name: "--sticky", help: "Keep the event for later subscribers.")

    static let specification = CommandSpecification(
        name: "post",
        overview: "Post an event to all its subscribers, and print the outcome.",
        discussion:
            "Waits until asynchronous subscribers have ended. A subscriber that fails does not stop the others.",
        arguments: [
            ArgumentSpecification(name: "event", help: "The name of the event."),
            ArgumentSpecification(
                name: "name=value", isRequired: false, repeats: true,
                help: "The parameters of the event, read as by 'call'."),
        ],
        options: OptionSpecification.hosting + [sticky, .timeout, .attach, .json])

    static func parameters(_ arguments: ParsedArguments) throws(PluginError) -> [String: Value] {
        try [
            "event": .string(arguments.positionals[0]), "sticky": .bool(arguments.has(sticky)),
            "parameters": .map(words(arguments).untyped),
        ].withTimeout(of: arguments)
    }

    private static func words(_ arguments: ParsedArguments) throws(PluginError) -> NamedValues {
        try NamedValues(arguments.positionals.dropFirst())
    }

    static func ask(_ host: any HostService, _ invocation: Invocation) async throws(PluginError) {
        let request = try await host.typing(invocation.parameters, words(invocation.arguments))
        try tell(await host.request("post", request), invocation)
    }

    static func show(_ answer: Value, _ invocation: Invocation) {
        invocation.console.print(counted(answer.number("delivered"), "subscriber"))
        // The words have been checked before, so this does not fail.
        let words = try? words(invocation.arguments)
        for failure in answer.list("failures") {
            let source = failure["source"]?.string ?? "the program"
            let message = "\(failure.text("message")) (\(failure.text("code")))"
            let hint =
                failure.text("code") == PluginError.Code.mistypedParameter.description ? words?.hint(message) : nil
            invocation.console.print("failed in \(source): \(message)\(hint ?? "")".printable)
        }
    }
}
