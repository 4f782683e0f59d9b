internal import PluginABI

/// `pluginhost remove NAME`
struct Remove: Question {
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

    let arguments: ParsedArguments

    init(_ arguments: ParsedArguments) { self.arguments = arguments }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        let change = try await service.remove(
            arguments.positionals[0], force: arguments.has(Self.force), dryRun: arguments.has(Self.dryRun))
        console.printChange(change, arguments)
    }
}

extension Console {
    /// What a removal or a rollback has done, or would do.
    func printChange(_ change: Value, _ arguments: ParsedArguments) {
        if arguments.has(.json) { return print(change.json) }
        if arguments.has(Remove.dryRun) { print("Nothing is done now. Otherwise it") }
        let indent = arguments.has(Remove.dryRun) ? "  " : ""
        for step in change["steps"]?.list ?? [] { print(indent + (step.string ?? "").printable) }
    }
}
