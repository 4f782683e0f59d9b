internal import PluginABI

/// `pluginhost rollback NAME`
enum Rollback: Question {
    static let version = OptionSpecification(
        name: "--to", value: "version", help: "One of the 'versions' instead of the one before.")

    static let specification = CommandSpecification(
        name: "rollback",
        overview: "Put the version before of a module back into its folder.",
        discussion:
            "What is replaced is kept, so that another rollback goes forward again. If the version does not start, "
            + "everything is put back as it was. A module that was removed comes back.",
        arguments: [ArgumentSpecification(name: "name", help: "The name of the module.")],
        options: OptionSpecification.hosting + [version, Remove.force, Remove.dryRun, .attach, .json])

    static func parameters(_ arguments: ParsedArguments) -> [String: Value] {
        var parameters = Remove.parameters(arguments)
        parameters["version"] = arguments.value(of: version).map(Value.string)
        return parameters
    }

    static func show(_ answer: Value, _ invocation: Invocation) { Remove.show(answer, invocation) }
}
