import PluginABI

/// Runs code of modules that may not return, on a thread that it may keep.
struct Guardian: Sendable {
    let runner: HookRunner
    /// What waits for the code, as ``HookRunner/isCurrent(_:)`` identifies it.
    let owner: ObjectIdentifier
    let timeout: Duration
    let log: @Sendable (LogEntry) -> Void

    /// What the code returns; nil when it has not within the timeout.
    ///
    /// - Parameters:
    ///   - subject: What runs, for the log.
    ///   - consequence: What that means for others.
    /// - Throws: `outOfResources`.
    func run<Result: Sendable>(
        _ subject: String, consequence: String, _ body: @escaping @Sendable () -> Result
    ) throws(PluginError) -> Result? {
        try runner.run(
            for: owner,
            Patience(subject: subject, module: nil, timeout: timeout, consequence: consequence, log: log), body)
    }
}
