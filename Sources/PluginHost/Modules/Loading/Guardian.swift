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

    /// Begins to run `body`. The function that is returned waits for its result, and returns `nil` if `body` does not
    /// return within the timeout. It must be called.
    ///
    /// - Parameters:
    ///   - subject: A description of `body` for the log.
    ///   - consequence: What else is affected while `body` runs, for the log.
    /// - Throws: `outOfResources`.
    func begin<Result: Sendable>(
        _ subject: String, consequence: String, _ body: @escaping @Sendable () -> Result
    ) throws(PluginError) -> () -> Result? {
        let running = try runner.begin(for: owner, body)
        return {
            runner.wait(
                for: running,
                Patience(
                    subject: subject, module: nil, timeout: timeout, consequence: consequence, silence: silence
                ) { entry in
                    log(entry)
                    whenSilent()
                })
        }
    }
}
