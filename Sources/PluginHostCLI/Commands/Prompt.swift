internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// Takes commands from the person at the terminal, for the host that runs here.
struct Prompt: Sendable {
    private static let text = "pluginhost> "
    private static let commands: [any Question.Type] = [
        List.self, Call.self, Release.self, Open.self, Post.self, Routes.self, Inspect.self, Remove.self, Rollback.self,
        Versions.self,
    ]

    let service: any HostService
    let console: Console
    private let lines = InputLines()

    init(service: any HostService, console: Console) { (self.service, self.console) = (service, console) }

    /// Standard input is a terminal, and this program is in its foreground.
    static var isPossible: Bool { isatty(0) == 1 && tcgetpgrp(0) == getpgrp() }

    /// Returns when the person wants to quit.
    func run() async {
        while true {
            do throws(PluginError) {
                guard let words = try await lines.words(Self.text, console) else { return }
                switch words[0] {
                case "quit", "exit": return
                case "help": console.print(Self.help(words.dropFirst().first))
                default: await perform(words[0], Array(words.dropFirst()))
                }
            } catch {
                console.report(error, asJSON: false)
            }
        }
    }

    private func perform(_ name: String, _ words: [String]) async {
        let asJSON = words.contains(OptionSpecification.json.name)
        do throws(PluginError) {
            guard let command = Self.commands.first(where: { $0.specification.name == name }) else {
                let names = Self.commands.map { $0.specification.name } + ["help", "quit"]
                let close = didYouMean(name, names)
                throw PluginError(.usage, "There is no command '\(name.shortened)'.\(close)")
            }
            let specification = Self.atPrompt(command.specification)
            let parsed = try ArgumentParser(command: specification).parse(words)
            if parsed.has(.help) {
                console.print(Self.help(name))
            } else {
                try await command.init(parsed).ask(service, console)
            }
        } catch {
            console.report(error, asJSON: asJSON)
        }
    }

    /// The command without the options that choose a host.
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
        let usages = commands.map { page.usage(of: atPrompt($0.specification)) }
        return (usages + ["help [<command>]", "quit"]).joined(separator: "\n")
    }
}
