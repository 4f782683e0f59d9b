internal import Glibc
internal import PluginABI
internal import PluginFile

/// The parsed arguments of a command.
struct ParsedArguments: Sendable {
    var positionals: [String] = []
    /// The values of each option by its name; a flag has one empty value.
    var values: [String: [String]] = [:]

    func has(_ option: OptionSpecification) -> Bool { values[option.name] != nil }
    func value(of option: OptionSpecification) -> String? { values[option.name]?.last }
    func values(of option: OptionSpecification) -> [String] { values[option.name] ?? [] }

    /// Returns the whole number of an option; `nil` if the option is not given.
    ///
    /// - Parameter unit: The unit, for the error message.
    /// - Throws: `usage` if the value is not a whole number in the range.
    func wholeNumber<Number: FixedWidthInteger & Sendable>(
        of option: OptionSpecification, _ unit: String? = nil, in range: ClosedRange<Number>
    ) throws(PluginError) -> Number? {
        guard let text = value(of: option) else { return nil }
        guard let number = Number(text), range.contains(number) else {
            let what = unit.map { "whole number of \($0)" } ?? "whole number"
            throw .usage(
                "The value '\(text.shortened)' of '\(option.name)' is not a \(what) from \(range.lowerBound) to "
                    + "\(range.upperBound).")
        }
        return number
    }
}

/// Reads the arguments that follow a command's name.
struct ArgumentParser: Sendable {
    let command: CommandSpecification

    /// Parses arguments. Options may be anywhere before `--`. Parsing stops at `--help`, without further checks.
    func parse(_ arguments: [String]) throws(PluginError) -> ParsedArguments {
        var parsed = ParsedArguments()
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument == "--" {
                parsed.positionals += rest
                break
            }
            guard argument.hasPrefix("-"), argument != "-" else {
                parsed.positionals.append(argument)
                continue
            }
            try parseOption(argument, &rest, into: &parsed)
            if parsed.has(.help) { return parsed }
        }
        try checkPositionals(parsed.positionals)
        return parsed
    }

    private func parseOption(
        _ argument: String, _ rest: inout ArraySlice<String>, into parsed: inout ParsedArguments
    ) throws(PluginError) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let option = command.option(named: parts[0]) else {
            let close = didYouMean(parts[0], command.allOptions.map(\.name))
            throw .usage("Unknown option '\(parts[0].shortened)'.\(close)")
        }
        guard let name = option.value else {
            if parts.count > 1 { throw .usage("The option '\(option.name)' takes no value.") }
            parsed.values[option.name] = [""]
            return
        }
        let value: String
        if parts.count > 1 {
            value = parts[1]
        } else if let next = rest.first, !next.hasPrefix("--"), command.option(named: next) == nil {
            value = next
            rest.removeFirst()
        } else {
            throw .usage("Missing value for '\(option.name) <\(name)>'.")
        }
        try Self.checkPath(value, name, "the option '\(option.name)'")
        parsed.values[option.name, default: []].append(try Self.choice(value, option))
    }

    /// Returns a value as the option declares it; case does not matter if the option has choices.
    private static func choice(_ value: String, _ option: OptionSpecification) throws(PluginError) -> String {
        guard !option.choices.isEmpty else { return value }
        guard let choice = option.choices.first(where: { $0.lowercased() == value.lowercased() }) else {
            let choices = option.choices.map { "'\($0)'" }.joined(separator: ", ")
            throw .usage("The value '\(value.shortened)' of '\(option.name)' is not one of \(choices).")
        }
        return choice
    }

    private func checkPositionals(_ positionals: [String]) throws(PluginError) {
        let required = command.arguments.filter(\.isRequired)
        if positionals.count < required.count {
            throw .usage("Missing expected argument '<\(required[positionals.count].name)>'.")
        }
        if command.arguments.last?.repeats != true, positionals.count > command.arguments.count {
            throw .usage("Unexpected argument '\(positionals[command.arguments.count].shortened)'.")
        }
        for (argument, value) in zip(command.arguments, positionals) {
            try Self.checkPath(value, argument.name, "<\(argument.name)>")
        }
    }

    /// Refuses a path that is too long for the system to resolve, because messages show paths in full.
    ///
    /// - Parameter kind: The name of the value in help pages.
    static func checkPath(_ value: String, _ kind: String, _ what: String) throws(PluginError) {
        guard ["dir", "file", "path"].contains(kind), value.utf8.count >= PATH_MAX else { return }
        throw .usage(
            "The path of \(what) has \(value.utf8.count) bytes, but paths can have at most \(PATH_MAX - 1): "
                + "'\(value.shortened)'.")
    }
}
