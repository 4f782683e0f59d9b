/// The help pages of the program and of its commands, in the usual layout of Swift programs, 80 columns wide.
struct HelpPage: Sendable {
    static let width = 80
    private static let indent = 26

    /// The program's name, which precedes each command; empty at the prompt, where commands are entered without it.
    let program: String

    /// Returns the program's own page.
    func overview(_ text: String, commands: [CommandSpecification]) -> String {
        return [
            Self.wrap("OVERVIEW: \(text)", indent: 0),
            "USAGE: \(program) <subcommand>",
            section("OPTIONS", rows: [OptionSpecification.version, .help].map { ($0.label, $0.help) }),
            section("SUBCOMMANDS", rows: commands.map { ($0.name, $0.overview) }),
            "  See '\(program) help <subcommand>' for detailed help.",
        ].joined(separator: "\n\n")
    }

    /// Returns the page of one command.
    func page(of command: CommandSpecification) -> String {
        var parts = [Self.wrap("OVERVIEW: \(command.overview)", indent: 0)]
        if !command.discussion.isEmpty { parts.append(Self.wrap(command.discussion, indent: 0)) }
        parts.append(Self.wrap(["USAGE:"] + usage(of: command), indent: 7))
        if !command.arguments.isEmpty {
            parts.append(section("ARGUMENTS", rows: command.arguments.map { ("<\($0.name)>", $0.help) }))
        }
        parts.append(section("OPTIONS", rows: command.allOptions.map { ($0.label, $0.help) }))
        return parts.joined(separator: "\n\n")
    }

    /// Returns the parts of a command's usage. Lines are broken only between parts.
    func usage(of command: CommandSpecification) -> [String] {
        let options = command.options.map { option in
            let value = option.value.map { " <\($0)>" } ?? ""
            return "[\(option.name)\(value)\(option.repeats ? " ..." : "")]"
        }
        let arguments = command.arguments.map { argument in
            let name = "<\(argument.name)>\(argument.repeats ? " ..." : "")"
            return argument.isRequired ? name : "[\(name)]"
        }
        return (program.isEmpty ? [] : [program]) + [command.name] + options + arguments
    }

    func section(_ title: String, rows: [(label: String, help: String)]) -> String {
        let lines = rows.map { row in
            let label = "  " + row.label
            let gap = String(repeating: " ", count: max(0, Self.indent - label.count))
            guard gap.isEmpty else { return Self.wrap(label + gap + row.help, indent: Self.indent) }
            let margin = String(repeating: " ", count: Self.indent)
            return label + "\n" + Self.wrap(margin + row.help, indent: Self.indent)
        }
        return "\(title):\n" + lines.joined(separator: "\n")
    }

    /// Breaks a text into lines at spaces. All lines but the first are indented.
    static func wrap(_ text: String, indent: Int) -> String {
        wrap(text.split(separator: " ", omittingEmptySubsequences: false).map(String.init), indent: indent)
    }

    /// Breaks a text into lines between words. All lines but the first are indented.
    static func wrap(_ words: [String], indent: Int) -> String {
        var lines: [String] = []
        var line: String?
        for word in words {
            if let begun = line, begun.count + 1 + word.count > width, begun.contains(where: { $0 != " " }) {
                lines.append(begun)
                line = String(repeating: " ", count: indent) + word
            } else {
                line = (line.map { $0 + " " } ?? "") + word
            }
        }
        return (lines + [line ?? ""]).joined(separator: "\n")
    }
}
