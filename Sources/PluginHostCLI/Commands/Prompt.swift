internal import Glibc
internal import PluginABI
internal import PluginFile

/// The prompt that reads commands from a terminal, for the host of this process.
struct Prompt: Sendable {
    private static let text = "pluginhost> "
    /// All commands except the one that shows the prompt.
    private static let commands = Program.commands.filter { $0 != Run.self }
    private static let ownWords = [
        Candidate(text: "help", help: "Show the commands, or the help page of one."),
        Candidate(text: "quit", help: "End the host."),
    ]

    let host: any HostService
    let console: Console
    let variables: [String: String]

    /// Whether standard input is a terminal, with this program in its foreground.
    static var isPossible: Bool { isatty(0) == 1 && tcgetpgrp(0) == getpgrp() }

    /// Runs the prompt. Returns at `quit`, and at the end of the input.
    func run() async {
        let completer = Completer(
            commands: Self.commands.map(Self.atPrompt), words: Self.ownWords, host: host)
        let editor = LineEditor(history: "history", variables) { word, before in
            await completer.complete(word, after: before)
        }
        var lines = InputLines(editor: editor)
        await lines.takeCommands(Self.text, console, asJSON: false) { name, words async throws(PluginError) in
            if name == "help" { console.print(try Self.help(words.first)) } else { await perform(name, words) }
        }
    }

    private func perform(_ name: String, _ words: [String]) async {
        do throws(PluginError) {
            let command = try Self.command(named: name)
            let arguments = try ArgumentParser(command: Self.atPrompt(command)).parse(words.map(\.withHomeFolder))
            if arguments.has(.help) { return console.print(try Self.help(name)) }
            let invocation = Invocation(arguments: arguments, console: console, variables: [:], promptHost: host)
            if let question = command as? any Question.Type {
                try await question.ask(host, question.prepare(invocation))
            } else {
                try await command.run(invocation)
            }
        } catch {
            console.report(error, asJSON: words.contains(OptionSpecification.json.name))
        }
    }

    private static func command(named name: String) throws(PluginError) -> any Command.Type {
        if let command = commands.first(where: { $0.specification.name == name }) { return command }
        let names = (commands.map { $0.specification.name }) + ownWords.map(\.text)
        throw .usage("There is no command '\(name.shortened)'.\(didYouMean(name, names))")
    }

    /// Returns the command without the options that choose a host, and without those that never end.
    private static func atPrompt(_ command: any Command.Type) -> CommandSpecification {
        var specification = command.specification
        var left = [OptionSpecification.attach, Events.follow]
        if command is any Question.Type { left += OptionSpecification.hosting }
        specification.options.removeAll { option in left.contains { $0.name == option.name } }
        return specification
    }

    private static func help(_ name: String?) throws(PluginError) -> String {
        let page = HelpPage(program: "")
        if let name { return page.page(of: atPrompt(try command(named: name))) }
        let rows = commands.map { ($0.specification.name, $0.specification.overview) }
        return page.section("COMMANDS", rows: rows + ownWords.map { ($0.text, $0.help) })
            + "\n\n  See 'help <command>' for the arguments and options of a command."
    }
}

extension String {
    /// The word with the home folder in place of a leading `~/`, as shells replace it.
    fileprivate var withHomeFolder: String {
        guard hasPrefix("~/"), let home = getenv("HOME") else { return self }
        return String(cString: home) + dropFirst()
    }
}
