internal import Glibc
internal import PluginABI
internal import PluginFile

/// The prompt that reads commands from a terminal, for the host of this process.
struct Prompt: Sendable {
    private static let text = "pluginhost> "
    private static let commands: [any Question.Type] = [
        List.self, Call.self, Release.self, Open.self, Post.self, Routes.self, Inspect.self, Remove.self, Rollback.self,
        Versions.self,
    ]

    let host: any HostService
    let console: Console

    /// Whether standard input is a terminal, with this program in its foreground.
    static var isPossible: Bool { isatty(0) == 1 && tcgetpgrp(0) == getpgrp() }

    /// Runs the prompt. Returns at `quit`, and at the end of the input.
    func run() async {
        var lines = InputLines()
        await lines.takeCommands(Self.text, console, asJSON: false) { name, words async throws(PluginError) in
            if name == "help" { console.print(Self.help(words.first)) } else { await perform(name, words) }
        }
    }

    private func perform(_ name: String, _ words: [String]) async {
        do throws(PluginError) {
            guard let command = Self.commands.first(where: { $0.specification.name == name }) else {
                let names = Self.commands.map { $0.specification.name } + ["help", "quit"]
                let close = didYouMean(name, names)
                throw .usage("There is no command '\(name.shortened)'.\(close)")
            }
            let arguments = try ArgumentParser(command: Self.atPrompt(command.specification)).parse(words)
            if arguments.has(.help) { return console.print(Self.help(name)) }
            let invocation = Invocation(arguments: arguments, console: console, variables: [:])
            try await command.ask(host, command.prepare(invocation))
        } catch {
            console.report(error, asJSON: words.contains(OptionSpecification.json.name))
        }
    }

    /// Returns the command without the options that choose a host.
    private static func atPrompt(_ command: CommandSpecification) -> CommandSpecification {
        let choosing = (OptionSpecification.hosting + [.attach]).map(\.name)
        var command = command
        command.options.removeAll { choosing.contains($0.name) }
        return command
    }

    private static func help(_ name: String?) -> String {
        let page = HelpPage(program: "")
        if let command = commands.first(where: { $0.specification.name == name }) {
            return page.page(of: atPrompt(command.specification))
        }
        let usages = commands.map { page.usage(of: atPrompt($0.specification)).joined(separator: " ") }
        return (usages + ["help [<command>]", "quit"]).joined(separator: "\n")
    }
}
