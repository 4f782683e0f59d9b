internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginHost

extension Console {
    /// Writes a log entry as text.
    ///
    /// - Parameter hasTime: Whether the line begins with the time.
    func log(_ entry: LogEntry, hasTime: Bool) {
        let about = [entry.module, entry.call.map { "(\($0))" }].compactMap(\.self).joined(separator: " ")
        let text = ((about.isEmpty ? "" : "\(about): ") + entry.message).printable
        let time = isatty(2) == 1 ? Date.now.timeOfDay : Date.now.localTime
        let begin = hasTime ? errorStyle(time, .dim) + "  " : ""
        switch entry.level {
        case .error: diagnose(begin + errorStyle("Error:", .red) + " " + text)
        case .warning: diagnose(begin + errorStyle("Warning:", .yellow) + " " + text)
        case .info: diagnose(begin + text)
        case .debug: diagnose(begin + errorStyle(text, .dim))
        }
    }
}
