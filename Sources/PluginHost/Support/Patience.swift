import Dispatch
import PluginABI

/// How somebody waits for code of a module: until a deadline, and not in silence.
struct Patience: Sendable {
    /// For how long nothing is said. After that it is said again whenever the time has doubled.
    static let silence = Duration.seconds(2)

    /// What is waited for: `activate of ModuleA 1.0.0 (plugins/a.so)`.
    let subject: String
    /// The name of the module, where it is known.
    let module: String?
    /// Of the whole wait; nil for none.
    let timeout: Duration?
    /// What the wait means for others.
    var consequence = ""
    let log: @Sendable (LogEntry) -> Void

    /// Waits until the semaphore is signalled. False when the time is over.
    func wait(for semaphore: DispatchSemaphore) -> Bool {
        let start = DispatchTime.now()
        let deadline = timeout.map { start + $0.dispatchInterval } ?? .distantFuture
        var silence = Self.silence
        while true {
            let next = min(deadline, start + silence.dispatchInterval)
            if semaphore.wait(timeout: next) == .success { return true }
            if next == deadline { return false }
            let limit = timeout.map { " It has \($0) in all." } ?? ""
            log(
                LogEntry(
                    level: .warning, module: module,
                    message: "\(subject) has been running for \(silence).\(limit)\(consequence)"))
            silence *= 2
        }
    }
}
