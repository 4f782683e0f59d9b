import Dispatch
import PluginABI

/// A wait for code of a module, with a timeout and with log lines while it lasts.
struct Patience: Sendable {
    /// The usual time before the first log line. Each further line follows when the time has doubled.
    static let silence = Duration.seconds(2)

    /// The code that the wait is for: `activate of ModuleA 1.0.0 (plugins/a.so)`.
    let subject: String
    /// The name of the module, if it is known.
    let module: String?
    /// The timeout of the whole wait; `nil` for none.
    let timeout: Duration?
    /// A sentence for the log about what the wait means for others.
    var consequence = ""
    /// The time before the first log line.
    var silence = Self.silence
    let log: @Sendable (LogEntry) -> Void

    /// Waits. Returns false if the timeout has passed.
    ///
    /// - Parameter wait: Waits until a time, and returns whether the code has ended by then.
    func wait(_ wait: (DispatchTime) -> Bool) -> Bool {
        let start = DispatchTime.now()
        let deadline = timeout.map { start + $0.dispatchInterval } ?? .distantFuture
        var silence = silence
        while true {
            let next = min(deadline, start + silence.dispatchInterval)
            if wait(next) { return true }
            if next == deadline { return false }
            let limit = timeout.map { " Its timeout is \($0)." } ?? ""
            log(
                LogEntry(
                    level: .warning, module: module,
                    message: "\(subject) has been running for \(silence).\(limit)\(consequence)"))
            silence *= 2
        }
    }
}
