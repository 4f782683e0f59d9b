/// The declaration of an option, for the parser and for help pages.
struct OptionSpecification: Sendable {
    /// The name with its two dashes.
    let name: String
    var short: String? = nil
    /// The name of the value in help pages; `nil` for a flag.
    var value: String? = nil
    var repeats = false
    let help: String

    /// The option as help pages list it.
    var label: String { (short.map { "\($0), " } ?? "") + name + (value.map { " <\($0)>" } ?? "") }
}

/// The declaration of a positional argument of a command.
struct ArgumentSpecification: Sendable {
    let name: String
    var isRequired = true
    /// Whether the argument takes all following words. Only the last argument of a command can.
    var repeats = false
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
