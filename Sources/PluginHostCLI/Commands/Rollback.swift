internal import PluginABI

/// `pluginhost rollback NAME`
struct Rollback: Question {
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

    let arguments: ParsedArguments

    init(_ arguments: ParsedArguments) { self.arguments = arguments }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        let change = try await service.rollback(
            arguments.positionals[0], to: arguments.value(of: Self.version), force: arguments.has(Remove.force),
            dryRun: arguments.has(Remove.dryRun))
        console.printChange(change, arguments)
    }
}
