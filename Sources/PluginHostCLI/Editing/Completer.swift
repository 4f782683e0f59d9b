internal import PluginABI
internal import PluginFile

/// A possible completion of a word.
struct Candidate: Sendable, Hashable {
    /// The whole word.
    let text: String
    var help = ""
    /// Whether the word is finished, so that a space can follow.
    var isWhole = true
}

/// Completes the words of a command line, for shells and for the prompt.
struct Completer: Sendable {
    let commands: [CommandSpecification]
    /// Words accepted instead of a command, followed by the name of a command or by nothing.
    var words: [Candidate] = []
    /// The host whose modules, targets and actions are offered; `nil` to complete without them.
    let host: (any HostService)?

    /// Returns the words that `word` can become.
    ///
    /// - Parameter before: The words in front of it, from the command on.
    func complete(_ word: String, after before: [String]) async -> [Candidate] {
        let candidates = await candidates(word, before)
        // Names come from modules; those with control characters cannot be entered.
        return candidates.filter { $0.text.hasPrefix(word) && $0.text.printable == $0.text }
    }

    private func candidates(_ word: String, _ before: [String]) async -> [Candidate] {
        let names = commands.map { Candidate(text: $0.name, help: $0.overview) }
        guard let name = before.first else {
            return names + words.filter { !$0.text.hasPrefix("-") || word.hasPrefix("-") }
        }
        if name == "help" { return before.count == 1 ? names : [] }
        guard let command = commands.first(where: { $0.name == name }) else { return [] }
        let line = Line(before.dropFirst(), of: command)
        if let option = line.pending { return await values(of: option.kind, word, line) }
        guard word.hasPrefix("-"), !line.hasEndedOptions else {
            guard let argument = line.nextArgument else { return [] }
            return await values(of: argument.kind, word, line)
        }
        if let equals = word.firstIndex(of: "="), let option = command.option(named: String(word[..<equals])) {
            let prefix = word[...equals]
            return await values(of: option.kind, String(word[word.index(after: equals)...]), line).map {
                Candidate(text: prefix + $0.text, help: $0.help, isWhole: $0.isWhole)
            }
        }
        let open = command.allOptions.filter { $0.repeats || !line.given.contains($0.name) }
        return open.map { Candidate(text: $0.name, help: $0.help) }
    }

    /// The words in front of the one that is completed.
    private struct Line {
        let command: CommandSpecification
        var positionals: [String] = []
        var given: Set<String> = []
        /// The option whose value is completed.
        var pending: OptionSpecification?
        var hasEndedOptions = false

        init(_ words: some Sequence<String>, of command: CommandSpecification) {
            self.command = command
            for word in words {
                if pending != nil {
                    pending = nil
                } else if hasEndedOptions || !word.hasPrefix("-") || word == "-" {
                    positionals.append(word)
                } else if word == "--" {
                    hasEndedOptions = true
                } else {
                    let name = word.prefix { $0 != "=" }
                    let option = command.option(named: String(name))
                    if let option { given.insert(option.name) }
                    if option?.value != nil, name.count == word.count { pending = option }
                }
            }
        }

        var nextArgument: ArgumentSpecification? {
            let arguments = command.arguments
            if positionals.count < arguments.count { return arguments[positionals.count] }
            return arguments.last?.repeats == true ? arguments.last : nil
        }

        func has(_ option: OptionSpecification) -> Bool { given.contains(option.name) }
    }

    // MARK: Values

    private func values(of kind: ValueKind, _ word: String, _ line: Line) async -> [Candidate] {
        switch kind {
        case .text: []
        case .choice(let texts): texts.map { Candidate(text: $0) }
        case .file: FileCompletion.candidates(word, foldersOnly: false)
        case .folder: FileCompletion.candidates(word, foldersOnly: true)
        case .module: await modules()
        case .moduleOrFile: await modules() + FileCompletion.candidates(word, foldersOnly: false)
        case .receiver: await receivers(line)
        case .action: await actions(line).map { Candidate(text: $0.text("name")) }
        case .parameter: await parameters(word, line)
        case .url: await urls()
        case .command: commands.map { Candidate(text: $0.name, help: $0.overview) }
        }
    }

    private func modules() async -> [Candidate] {
        unique(await ask("list").compactMap { $0["name"]?.string }).map { Candidate(text: $0) }
    }

    private func receivers(_ line: Line) async -> [Candidate] {
        if line.has(.ofObject) { return [] }
        if line.has(.ofService) {
            return unique(await ask("services").map { $0.text("name") }).map { Candidate(text: $0) }
        }
        return await ask("list").filter(\.isServedOrRegistered).flatMap { module in
            module.texts("targets").map { Candidate(text: $0, help: module.text("name")) }
        }
    }

    private func actions(_ line: Line) async -> [Value] {
        guard let receiver = line.positionals.first, !line.has(.ofObject) else { return [] }
        return await ask("actions", [line.has(.ofService) ? "service" : "target": .string(receiver)])
    }

    /// Completes `name=`, and the values of parameters that are true or false, or bytes.
    private func parameters(_ word: String, _ line: Line) async -> [Candidate] {
        guard line.positionals.count > 1 else { return [] }
        let action = await actions(line).first { $0["name"]?.string == line.positionals[1] }
        let given = Set(line.positionals.dropFirst(2).map { $0.prefix { $0 != "=" } })
        let parameters = (action?.list("parameters") ?? []).filter { !given.contains($0.text("name")[...]) }
        guard let equals = word.firstIndex(of: "=") else {
            return parameters.map { parameter in
                let help = parameter.text("type") + (parameter["required"] == true ? ", required" : "")
                return Candidate(text: parameter.text("name") + "=", help: help, isWhole: false)
            }
        }
        let (name, value) = (word[..<equals], word[word.index(after: equals)...])
        switch parameters.first(where: { $0.text("name") == name })?["type"] {
        case "bool": return ["true", "false"].map { Candidate(text: "\(name)=\($0)") }
        case "bytes":
            guard value.hasPrefix("@") else {
                return ["@", "base64:"].map { Candidate(text: "\(name)=\($0)", isWhole: false) }
            }
            return FileCompletion.candidates(String(value.dropFirst()), foldersOnly: false).map {
                Candidate(text: "\(name)=@\($0.text)", isWhole: $0.isWhole)
            }
        default: return []
        }
    }

    /// Completes the part of routes in front of the first placeholder.
    private func urls() async -> [Candidate] {
        let literals = await ask("routes").map { route in
            let pattern = route.text("pattern")
            guard let scheme = pattern.firstRange(of: "://") else { return "" }
            let rest = pattern[scheme.upperBound...].prefix { !":*({?\\".contains($0) }
            return String(pattern[..<scheme.upperBound] + rest)
        }
        return unique(literals).map { Candidate(text: $0, isWhole: false) }
    }

    private func ask(_ method: String, _ parameters: [String: Value] = [:]) async -> [Value] {
        guard let host, let answer = try? await host.request(method, parameters) else { return [] }
        return answer.list ?? []
    }

    private func unique(_ texts: [String]) -> [String] { Set(texts).subtracting([""]).sorted() }
}

extension CommandSpecification {
    func option(named name: String) -> OptionSpecification? {
        allOptions.first { $0.name == name || $0.short == name }
    }
}
