internal import Dispatch
internal import Glibc
internal import PluginABI

/// Takes commands from the person at the terminal, for the host that runs here.
struct Prompt: Sendable {
    private static let text = "pluginhost> "
    private static let commands: [any Question.Type] = [
        List.self, Call.self, Open.self, Post.self, Routes.self, Inspect.self,
    ]

    let service: any HostService
    let console: Console

    /// Standard input is a terminal, and this program is in its foreground.
    static var isPossible: Bool { isatty(0) == 1 && tcgetpgrp(0) == getpgrp() }

    /// Returns when the person wants to quit.
    func run() async {
        while true {
            console.prompt(Self.text)
            let line = await Self.readLine()
            console.promptAnswered()
            guard let line else { return }
            do throws(PluginError) {
                let words = try shellWords(line)
                guard let name = words.first else { continue }
                switch name {
                case "quit", "exit": return
                case "help": console.print(Self.help(words.dropFirst().first))
                default: await perform(name, Array(words.dropFirst()))
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
                let close = suggestion(closest(to: name, among: names))
                throw PluginError(.usage, "There is no command '\(name)'.\(close)")
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

    /// A line without its end; nil at the end of the input. Terminals give out whole lines.
    private static func readLine() async -> String? {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "pluginhost.prompt").async {
                var bytes: [UInt8] = []
                var chunk = [UInt8](repeating: 0, count: 4096)
                while bytes.last != UInt8(ascii: "\n") {
                    let count = read(0, &chunk, chunk.count)
                    if count > 0 {
                        bytes += chunk[..<count]
                    } else if count == 0 || errno != EINTR {
                        break
                    }
                }
                continuation.resume(returning: bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self))
            }
        }
    }
}
