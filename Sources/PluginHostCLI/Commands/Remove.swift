internal import PluginABI

/// `pluginhost remove NAME`
enum Remove: Question {
    static let force = OptionSpecification(name: "--force", help: "Proceed even if other modules depend on the module.")
    static let dryRun = OptionSpecification(name: "--dry-run", help: "Print what would be done, without doing it.")

    static let specification = CommandSpecification(
        name: "remove",
        overview: "Move a module out of its folder into the version store.",
        discussion:
            "The command is refused, with the reason, while other modules depend on the module. A removal is carried "
            + "out completely or not at all. 'rollback' puts the module back.",
        arguments: [ArgumentSpecification(name: "name", kind: .module, help: "The name of the module.")],
        options: OptionSpecification.hosting + [force, dryRun, .attach, .json])

    static func parameters(_ arguments: ParsedArguments) -> [String: Value] {
        [
            "name": .string(arguments.positionals[0]), "force": .bool(arguments.has(force)),
            "dryRun": .bool(arguments.has(dryRun)),
        ]
    }

    /// Prints what a removal or a rollback has done, or would do.
    static func show(_ answer: Value, _ invocation: Invocation) {
        if invocation.has(dryRun) { invocation.console.print("Nothing was done. Without '--dry-run', this command") }
        let indent = invocation.has(dryRun) ? "  " : ""
        for step in answer.texts("steps") { invocation.console.print(indent + step.printable) }
    }
}
