internal import PluginABI

/// `pluginhost open URL`
enum Open: Question {
    static let local = OptionSpecification(
        name: "--local", help: "Open the URL as a local caller, not as a remote caller.")

    static let specification = CommandSpecification(
        name: "open",
        overview: "Open a URL, as a remote caller, and print the result.",
        discussion: "A remote caller reaches only actions that are declared remote.",
        arguments: [
            ArgumentSpecification(
                name: "url", kind: .url, help: "The URL, for instance 'app://target/action?name=value'.")
        ],
        options: [.method, local] + OptionSpecification.hosting + [.timeout, .attach, .json])

    static func parameters(_ arguments: ParsedArguments) throws(PluginError) -> [String: Value] {
        try [
            "url": .string(arguments.positionals[0]), "local": .bool(arguments.has(local)),
        ].withMethod(of: arguments).withTimeout(of: arguments)
    }

    static func tell(_ answer: Value, _ invocation: Invocation) {
        invocation.console.printResult(answer, asJSON: invocation.isJSON)
    }
}
