internal import FoundationEssentials
internal import PluginABI
internal import PluginFile

/// `pluginhost man [COMMAND]`
enum Man: Command {
    static let folder = OptionSpecification(
        name: "--into", value: "dir", help: "Write all pages into this folder instead, as files of section 1.")

    static let specification = CommandSpecification(
        name: "man",
        overview: "Print the man page of the program, or of one of its commands.",
        discussion: "To read a page: pluginhost man list | man -l -",
        arguments: [
            ArgumentSpecification(name: "command", isRequired: false, kind: .command, help: "The command.")
        ],
        options: [folder])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        let name = invocation.arguments.positionals.first
        if let folder = invocation.arguments.value(of: folder) {
            if name != nil { throw .usage("'\(Self.folder.name)' writes the pages of all commands: name no command.") }
            return try write(into: folder)
        }
        guard let name else { return invocation.console.printUnchanged(ManPage.program(Program.specifications)) }
        guard let command = Program.specifications.first(where: { $0.name == name }) else {
            let close = didYouMean(name, Program.specifications.map(\.name))
            throw .usage("Unknown command '\(name.shortened)'.\(close)")
        }
        invocation.console.printUnchanged(ManPage.page(of: command))
    }

    private static func write(into folder: String) throws(PluginError) {
        let commands = Program.specifications
        let pages =
            [(Program.name, ManPage.program(commands))]
            + commands.map { ("\(Program.name)-\($0.name)", ManPage.page(of: $0)) }
        for (name, page) in pages {
            let file = "\(folder)/\(name).1"
            do { try Data((page + "\n").utf8).write(to: URL(filePath: file)) } catch {
                throw PluginError(.cannotCreate, "The man page \(file) cannot be written. Does its folder exist?")
            }
        }
    }
}
