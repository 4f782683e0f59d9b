internal import PluginABI

/// `pluginhost release OBJECT`
enum Release: Question {
    static let specification = CommandSpecification(
        name: "release",
        overview: "Release an object that a call has returned; other holders keep it.",
        discussion: "A running host keeps the objects that it has shown, so that 'call --object' finds them.",
        arguments: [ArgumentSpecification(name: "object", help: "The number after \"object\" in the result.")],
        options: OptionSpecification.hosting + [.attach, .json])

    static func parameters(_ arguments: ParsedArguments) throws(PluginError) -> [String: Value] {
        ["object": .int(try Call.handle(arguments.positionals[0]))]
    }

    static func tell(_ answer: Value, _ invocation: Invocation) {
        guard invocation.isJSON, let object = invocation.parameters["object"] else { return }
        invocation.console.print(Value.map(["released": object]).json)
    }
}
