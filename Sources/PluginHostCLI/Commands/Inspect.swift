internal import PluginABI

/// `pluginhost inspect FILE`
enum Inspect: Question {
    static let all = OptionSpecification(
        name: "--all", help: "Show everything that is known about the file, instead of a list of signatures.")

    static let specification = CommandSpecification(
        name: "inspect",
        overview: "Show the description of a module file, without registering it.",
        discussion:
            "Lists the signatures of the actions of each target and object type, then services, routes, subscriptions "
            + "and requirements. A parameter whose type ends in '?', or that has a default, can be left out; an "
            + "action marked 'remote' can be opened by URL. A file with a seal (see 'seal') is read without running any of "
            + "its code, and may be for another machine. Otherwise the file's code runs in a process of its own. If it "
            + "crashes, or does not end within the timeout (default: 10 seconds), the file is reported as bad.",
        arguments: [ArgumentSpecification(name: "file", kind: .file, help: "The shared library.")],
        options: [all, .trust, .timeout, .json])

    static func parameters(_ arguments: ParsedArguments) throws(PluginError) -> [String: Value] {
        try ["file": .string(arguments.positionals[0])].withTimeout(of: arguments)
    }

    static func answerWithoutHost(_ arguments: ParsedArguments) async throws(PluginError) -> Value? {
        try Inspection(
            file: arguments.positionals[0], trustsEveryone: arguments.has(.trust), deadline: arguments.timeout,
            endsSoon: true
        ).run()
    }

    static func show(_ answer: Value, _ invocation: Invocation) {
        invocation.console.print(invocation.has(all) ? answer.outline : ManifestListing(answer).text)
    }
}
