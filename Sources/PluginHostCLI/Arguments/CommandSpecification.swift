/// An option as it is declared: the parser and the help page read the same declaration.
struct OptionSpecification: Sendable {
    /// With its two dashes.
    let name: String
    var short: String? = nil
    /// What the help calls the value; nil for a flag.
    var value: String? = nil
    var repeats = false
    let help: String

    /// How the help lists the option.
    var label: String { (short.map { "\($0), " } ?? "") + name + (value.map { " <\($0)>" } ?? "") }
}

/// What a command takes besides options.
struct ArgumentSpecification: Sendable {
    let name: String
    var isRequired = true
    /// Takes all that follow; only the last argument of a command can.
    var repeats = false
    let help: String
}

/// One command of the program.
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
