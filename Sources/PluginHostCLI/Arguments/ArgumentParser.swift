internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// What a command was given.
struct ParsedArguments: Sendable {
    var positionals: [String] = []
    /// The values of each option by its name; a flag has one empty value.
    var values: [String: [String]] = [:]

    func has(_ option: OptionSpecification) -> Bool { values[option.name] != nil }
    func value(of option: OptionSpecification) -> String? { values[option.name]?.last }
    func values(of option: OptionSpecification) -> [String] { values[option.name] ?? [] }

    /// The whole number of an option; nil where the option is not given.
    ///
    /// - Parameter unit: What is counted.
    /// - Throws: `usage` for what is no whole number in the range.
    func wholeNumber<Number: FixedWidthInteger & Sendable>(
        of option: OptionSpecification, _ unit: String? = nil, in range: ClosedRange<Number>
    ) throws(PluginError) -> Number? {
        guard let text = value(of: option) else { return nil }
        guard let number = Number(text), range.contains(number) else {
            let what = unit.map { "whole number of \($0)" } ?? "whole number"
            throw .usage(
                "The value '\(text.shortened)' of '\(option.name)' is no \(what) from \(range.lowerBound) to "
                    + "\(range.upperBound).")
        }
        return number
    }
}

/// Reads the arguments that follow a command's name.
struct ArgumentParser: Sendable {
    let command: CommandSpecification

    /// Options may stand anywhere until `--`. Stops early, without further checks, where help is asked for.
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
        guard let option = option(named: parts[0]) else {
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
        } else if let next = rest.first, !next.hasPrefix("--"), self.option(named: next) == nil {
            value = next
            rest.removeFirst()
        } else {
            throw .usage("Missing value for '\(option.name) <\(name)>'.")
        }
        try Self.checkPath(value, name, "the option '\(option.name)'")
        parsed.values[option.name, default: []].append(value)
    }

    private func option(named name: String) -> OptionSpecification? {
        command.allOptions.first { $0.name == name || $0.short == name }
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

    /// Refuses a path that the system could not resolve: messages show paths as they are.
    ///
    /// - Parameter kind: What help calls the value.
    static func checkPath(_ value: String, _ kind: String, _ what: String) throws(PluginError) {
        guard ["dir", "file", "path"].contains(kind), value.utf8.count >= PATH_MAX else { return }
        throw .usage(
            "The path of \(what) has \(value.utf8.count) bytes, and paths have at most \(PATH_MAX - 1): "
                + "'\(value.shortened)'.")
    }
}
