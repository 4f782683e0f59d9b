/// The kind of thing that a value names, for completion.
enum ValueKind: Sendable, Equatable {
    /// Any text.
    case text
    case choice([String])
    case file, folder
    /// The name of a module.
    case module
    /// The name of a module, or a file.
    case moduleOrFile
    /// The receiver of a call: a target, a service or an object.
    case receiver
    case action
    /// A parameter of the action, `name=value`.
    case parameter
    case url
    case command
}

/// The declaration of an option, for the parser, help pages, man pages and completion.
struct OptionSpecification: Sendable {
    /// The name with its two dashes.
    let name: String
    var short: String? = nil
    /// The name of the value in help pages; `nil` for a flag.
    var value: String? = nil
    var repeats = false
    /// The values that the option accepts; empty if they are not a fixed list.
    var choices: [String] = []
    let help: String

    /// The kind of thing that its value names.
    var kind: ValueKind {
        switch value {
        case _ where !choices.isEmpty: .choice(choices)
        case "dir": .folder
        case "file", "path", "path-or-url": .file
        case "module": .module
        default: .text
        }
    }

    /// The option as help pages list it.
    var label: String { (short.map { "\($0), " } ?? "") + name + (value.map { " <\($0)>" } ?? "") }
}

/// The declaration of a positional argument of a command.
struct ArgumentSpecification: Sendable {
    let name: String
    var isRequired = true
    /// Whether the argument takes all following words. Only the last argument of a command can.
    var repeats = false
    var kind = ValueKind.text
    let help: String
}

/// The declaration of a command of the program.
struct CommandSpecification: Sendable {
    let name: String
    let overview: String
    var discussion = ""
    var arguments: [ArgumentSpecification] = []
    var options: [OptionSpecification] = []

    var allOptions: [OptionSpecification] { options + [.help] }
}

extension OptionSpecification {
    static let help = OptionSpecification(name: "--help", short: "-h", help: "Show help information.")
    static let version = OptionSpecification(name: "--version", help: "Show the version.")
}
