import PluginABI

/// A runner for module code that may not return, on a thread that such code may keep.
struct Guardian: Sendable {
    let runner: HookRunner
    /// The object that waits for the code, as ``HookRunner/isCurrent(_:)`` identifies it.
    let owner: ObjectIdentifier
    let timeout: Duration
    /// The time before the log says that the code is still running.
    let silence: Duration
    /// Called when the log says so, on the waiting thread.
    let whenSilent: @Sendable () -> Void
    let log: @Sendable (LogEntry) -> Void

    /// Runs `body` and returns its result, or `nil` if it does not return within the timeout.
    ///
    /// - Parameters:
    ///   - subject: A description of `body` for the log.
    ///   - consequence: What else is affected while `body` runs, for the log.
    /// - Throws: `outOfResources`.
    func run<Result: Sendable>(
        _ subject: String, consequence: String, _ body: @escaping @Sendable () -> Result
    ) throws(PluginError) -> Result? {
        try runner.run(
            for: owner,
            Patience(
                subject: subject, module: nil, timeout: timeout, consequence: consequence, silence: silence
            ) { entry in
                log(entry)
                whenSilent()
            }, body)
    }
}
