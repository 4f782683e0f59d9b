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
            "parameters": .map(namedValues(arguments.positionals.dropFirst())),
        ].withTimeout(of: arguments)
    }

    static func show(_ answer: Value, _ invocation: Invocation) {
        invocation.console.print(counted(answer.number("delivered"), "subscriber"))
        for failure in answer.list("failures") {
            let source = failure["source"]?.string ?? "the program"
            let message = "\(failure.text("message")) (\(failure.text("code")))"
            invocation.console.print("failed in \(source): \(message)".printable)
        }
    }
}
