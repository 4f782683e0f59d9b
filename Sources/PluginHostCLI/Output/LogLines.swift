internal import FoundationEssentials
internal import PluginABI
internal import PluginHost

extension ParsedArguments {
    /// Where the host's log goes: to standard error, in the form and from the level of the options.
    func log(
        to console: Console, from level: LogLevel
    ) throws(PluginError) -> @Sendable (LogEntry) -> Void {
        let form = value(of: .log) ?? "text"
        guard ["text", "json"].contains(form) else {
            throw PluginError(.usage, "The value '\(form.shortened)' of '--log' is neither 'text' nor 'json'.")
        }
        var least = level
        if let word = value(of: .logLevel) {
            guard let level = LogLevel.allCases.first(where: { "\($0)" == word }) else {
                throw PluginError(
                    .usage, "The value '\(word.shortened)' of '--log-level' is none of debug, info, warning, error.")
            }
            least = level
        }
        return { [least] entry in
            guard entry.level >= least else { return }
            if form == "json" { console.diagnose(entry.record.json) } else { console.log(entry) }
        }
    }
}

extension LogEntry {
    /// For programs; written at this moment.
    var record: Value {
        [
            "time": .string(Date.now.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))),
            "level": .string("\(level)"), "module": module.map { .string($0) } ?? .null,
            "call": call.map { .string($0) } ?? .null, "message": .string(message),
        ]
    }
}

extension Console {
    /// Writes a line of the log for people.
    func log(_ entry: LogEntry) {
        let about = [entry.module, entry.call.map { "(\($0))" }].compactMap(\.self).joined(separator: " ")
        let text = ((about.isEmpty ? "" : "\(about): ") + entry.message).printable
        switch entry.level {
        case .error: diagnose(errorStyle("Error:", .red) + " " + text)
        case .warning: diagnose(errorStyle("Warning:", .yellow) + " " + text)
        case .info: diagnose(text)
        case .debug: diagnose(errorStyle(text, .dim))
        }
    }
}
