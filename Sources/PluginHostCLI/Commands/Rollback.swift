internal import PluginABI

/// `pluginhost rollback NAME`
enum Rollback: Question {
    static let version = OptionSpecification(
        name: "--to", value: "version", help: "The kept version (see 'versions'), if not the previous one.")

    static let specification = CommandSpecification(
        name: "rollback",
        overview: "Put the previous version of a module back into its folder.",
        discussion:
            "The replaced version is kept, so that another rollback goes forward again. If the previous version does not "
            + "start, everything is restored as it was. A module that was removed is added again.",
        arguments: [ArgumentSpecification(name: "name", kind: .module, help: "The name of the module.")],
        options: OptionSpecification.hosting + [version, Remove.force, Remove.dryRun, .attach, .json])

    static func parameters(_ arguments: ParsedArguments) -> [String: Value] {
        var parameters = Remove.parameters(arguments)
        parameters["version"] = arguments.value(of: version).map(Value.string)
        return parameters
    }

    static func show(_ answer: Value, _ invocation: Invocation) { Remove.show(answer, invocation) }
}
