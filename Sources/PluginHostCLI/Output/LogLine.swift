internal import PluginABI
internal import PluginHost

extension Console {
    /// Writes a log entry as text.
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
