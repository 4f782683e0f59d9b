import PluginABI

/// The process in which the code of an isolated module runs.
protocol ModuleProcess: AnyObject, Sendable {
    /// The process id.
    var id: Int32 { get }

    /// The rule that states what it may reach and use.
    var rule: IsolationRule { get }

    /// The parts of its sandbox that the system lacks, with the reasons.
    var missingProtections: [String] { get }

    /// The memory and the processor time that it uses; `nil` if it has ended, or they cannot be read. Does not block.
    var usage: ProcessUsage? { get }

    /// The reason why the process has ended, as a sentence; `nil` while it runs.
    var ending: String? { get }

    /// Whether it is being debugged, so that no deadline ends it.
    var isDebugged: Bool { get }

    /// Whether it has ended by itself, or was ended because it hung.
    var hasCrashed: Bool { get }

    /// The last lines that it wrote to standard output, standard error and the log, with control characters escaped;
    /// empty unless it has crashed.
    var lastWords: [String] { get }

    /// Whether a call that has ended for its caller, because it was too late, still runs in it.
    var hasLateCalls: Bool { get }

    /// Whether its module is to be started again after its end, and until then remains in its place.
    var awaitsRestart: Bool { get }

    /// Records whether its module is to be started again. Returns whether that was recorded before.
    @discardableResult
    func setAwaitsRestart(_ isAwaited: Bool) -> Bool

    /// Ends the process, which is no longer needed.
    func end()
}

extension Generation {
    /// Whether its own process has ended, so that nothing in it can be called.
    var hasCrashed: Bool { module?.hasEnded == true }

    /// Whether code of it runs, whether or not the caller still waits.
    var isRunningCalls: Bool { callsInFlight > 0 || hasLateCalls }

    /// Whether a call that has ended for its caller, because it was too late, still runs in its own process.
    var hasLateCalls: Bool { module?.process?.hasLateCalls == true }

    /// The error of a start during which its process has ended; `nil` if it has not.
    func crash(in step: String) -> PluginError? {
        guard let report = module?.process?.report else { return nil }
        return PluginError(.activationFailed, "\(name) (\(file)) crashed in \(step). \(report)")
    }
}

extension LoadedModule {
    /// Whether its process has ended, so that none of its code can be called.
    var hasEnded: Bool { process?.ending != nil }

    /// Whether its process has ended, and it is not to be started again.
    var isGone: Bool { hasEnded && process?.awaitsRestart != true }
}
