/// The man pages of the program and of its commands, in the language of man(7), from what their help pages are made of.
enum ManPage {
    /// Returns the page of the program.
    static func program(_ commands: [CommandSpecification]) -> String {
        let name = Program.name
        return [
            title(name),
            section("Name", ["\(name) \\- \(escaped(withoutDot(Program.overview)))"]),
            section(
                "Synopsis",
                [".B \(name)", ".I command", ".RI [ argument\\~...]", ".br", ".B \(name)", ".B \\-\\-version"]),
            section(
                "Commands",
                commands.flatMap { entry("\\fB\($0.name)\\fR", "\($0.overview) See \(name)-\($0.name)(1).") }),
            section("Environment", environment.flatMap { entry("\\fB\($0)\\fR", $1) }),
            section("Files", files.flatMap { entry("\\fI\(escaped($0))\\fR", $1) }),
            section("Exit status", ExitCode.allCases.flatMap { entry("\\fB\($0.rawValue)\\fR", $0.meaning) }),
            section("See also", [commands.map { ".BR \(name)\\-\($0.name) (1)" }.joined(separator: ",\n")]),
        ].joined(separator: "\n")
    }

    /// Returns the page of one command.
    static func page(of command: CommandSpecification) -> String {
        let name = "\(Program.name)-\(command.name)"
        var parts = [
            title(name), section("Name", ["\(escaped(name)) \\- \(escaped(withoutDot(command.overview)))"]),
            section("Synopsis", synopsis(of: command)),
        ]
        let description = [command.overview, command.discussion].filter { !$0.isEmpty }.joined(separator: " ")
        parts.append(section("Description", [text(description)]))
        if !command.arguments.isEmpty {
            let entries = command.arguments.flatMap { entry("\\fI\(escaped($0.name))\\fR", $0.help) }
            parts.append(section("Arguments", entries))
        }
        parts.append(section("Options", command.allOptions.flatMap { entry(label(of: $0), $0.help) }))
        parts.append(section("See also", [".BR \(Program.name) (1)"]))
        return parts.joined(separator: "\n")
    }

    private static let environment = [
        (
            "PLUGINHOST_SOCKET",
            "The path of the control socket on which 'run' listens and other commands look for a host, unless they are "
                + "given another. If it is empty, there is no default socket."
        ),
        ("PLUGINHOST_PATH", "The plugins folders, separated by colons, if '--plugins' is not given."),
        ("XDG_RUNTIME_DIR", "The folder of the control socket 'pluginhost.sock', if PLUGINHOST_SOCKET is not set."),
        ("XDG_STATE_HOME", "The folder that contains the state folder, 'pluginhost'."),
        ("NO_COLOR", "If it is not empty, the output has no colours."),
        ("NOTIFY_SOCKET, WATCHDOG_USEC", "Set by systemd for services: see sd_notify(3)."),
    ]

    private static let files = [
        ("./plugins", "The plugins folder, if neither '--plugins' nor PLUGINHOST_PATH names one."),
        ("~/.local/state/pluginhost", "The state folder, if XDG_STATE_HOME is not set."),
    ]

    private static func title(_ name: String) -> String {
        ".TH \(escaped(name.uppercased())) 1 \"\" \"\(Program.name) \(Program.version)\" \"\(Program.name) Manual\""
    }

    private static func section(_ title: String, _ lines: [String]) -> String {
        ([".SH \(title.uppercased().contains(" ") ? "\"\(title.uppercased())\"" : title.uppercased())"] + lines)
            .joined(separator: "\n")
    }

    private static func entry(_ label: String, _ help: String) -> [String] { [".TP", label, text(help)] }

    private static func label(of option: OptionSpecification) -> String {
        let names = [option.short, option.name].compactMap(\.self).map { "\\fB\(escaped($0))\\fR" }
        return names.joined(separator: ", ") + (option.value.map { " \\fI\(escaped($0))\\fR" } ?? "")
    }

    private static func synopsis(of command: CommandSpecification) -> [String] {
        let arguments = command.arguments.map { argument in
            let name = "\\fI\(escaped(argument.name))\\fR\(argument.repeats ? "\\~..." : "")"
            return argument.isRequired ? name : "[\(name)]"
        }
        return [".B \(Program.name) \(command.name)", "[\\fIoption\\fR\\~...]"] + arguments
    }

    private static func withoutDot(_ text: String) -> String {
        String(text.hasSuffix(".") ? text.dropLast() : text[...])
    }

    /// Returns a paragraph. A line must not begin like a request.
    private static func text(_ text: String) -> String {
        let line = escaped(text)
        return line.hasPrefix(".") || line.hasPrefix("'") ? "\\&" + line : line
    }

    private static func escaped(_ text: String) -> String {
        text.reduce(into: "") { escaped, character in
            switch character {
            case "\\": escaped += "\\e"
            case "-": escaped += "\\-"
            case "'": escaped += "\\(aq"
            case "`": escaped += "\\(ga"
            case "^": escaped += "\\(ha"
            case "~": escaped += "\\(ti"
            case "\n": escaped += " "
            default: escaped.append(character)
            }
        }
    }
}
