internal import PluginABI

/// `pluginhost remove NAME`
enum Remove: Question {
    static let force = OptionSpecification(name: "--force", help: "Do it even if other modules depend on it.")
    static let dryRun = OptionSpecification(name: "--dry-run", help: "Say what would be done, and do nothing.")

    static let specification = CommandSpecification(
        name: "remove",
        overview: "Move a module out of its folder to the store of kept versions.",
        discussion:
            "Refuses while others depend on it, and says who and why. All of it is done, or nothing. 'rollback' "
            + "puts it back.",
        arguments: [ArgumentSpecification(name: "name", help: "The name of the module.")],
        options: OptionSpecification.hosting + [force, dryRun, .attach, .json])

    static func parameters(_ arguments: ParsedArguments) -> [String: Value] {
        [
            "name": .string(arguments.positionals[0]), "force": .bool(arguments.has(force)),
            "dryRun": .bool(arguments.has(dryRun)),
        ]
    }

    /// What a removal or a rollback has done, or would do.
    static func show(_ answer: Value, _ invocation: Invocation) {
        if invocation.has(dryRun) { invocation.console.print("Nothing is done now. Otherwise it") }
        let indent = invocation.has(dryRun) ? "  " : ""
        for step in answer.texts("steps") { invocation.console.print(indent + step.printable) }
    }
}
