import PluginABI

/// The process in which the code of an isolated module runs.
protocol ModuleProcess: AnyObject, Sendable {
    /// The process id.
    var id: Int32 { get }

    /// The rule that states what the process may reach and use.
    var rule: IsolationRule { get }

    /// The parts of the sandbox that the system does not support, with the reasons.
    var missingProtections: [String] { get }

    /// The memory and the processor time that the process uses; `nil` if it has ended, or if they cannot be read. Does
    /// not block.
    var usage: ProcessUsage? { get }

    /// The reason why the process has ended, as a sentence; `nil` while it runs.
    var ending: String? { get }

    /// Whether the process is being debugged, so that no deadline ends it.
    var isDebugged: Bool { get }

    /// Whether the process has ended by itself, or was ended because it hung.
    var hasCrashed: Bool { get }

    /// The last lines that the process wrote to standard output, standard error and the log, with control characters
    /// escaped; empty unless it has crashed.
    var lastWords: [String] { get }

    /// Whether a call that missed its deadline, and has ended for its caller, still runs in the process.
    var hasLateCalls: Bool { get }

    /// How many messages of calls, and of the module's own requests, the host and the process have exchanged; `nil`
    /// after the end of the process, and while a message is not answered, except during calls within calls.
    var traffic: UInt64? { get }

    /// Whether the process holds objects, or is being lent some.
    var holdsObjects: Bool { get }

    /// Whether the module is to be started again after the end of the process, and keeps its place until then.
    var awaitsRestart: Bool { get }

    /// Records whether the module is to be started again. Returns whether that was recorded before.
    @discardableResult
    func setAwaitsRestart(_ isAwaited: Bool) -> Bool

    /// Ends the process, which is no longer needed.
    func end()
}

extension Generation {
    /// Whether the generation's own process has ended, so that nothing in it can be called.
    var hasCrashed: Bool { module?.hasEnded == true }

    /// Whether code of the generation runs, even if its caller no longer waits.
    var isRunningCalls: Bool { callsInFlight > 0 || hasLateCalls }

    /// Whether a call that missed its deadline, and has ended for its caller, still runs in the generation's own
    /// process.
    var hasLateCalls: Bool { module?.process?.hasLateCalls == true }

    /// The error of a call during which the generation's own process has ended; `nil` if it has not.
    ///
    /// - Parameter title: The target and name of the action.
    func crash(of title: String) -> PluginError? {
        module?.process?.ending.map { .crash(of: title, self, $0) }
    }

    /// The error of a start during which the process has ended; `nil` if it has not.
    func crash(in step: String) -> PluginError? {
        guard let report = module?.process?.report else { return nil }
        return PluginError(.activationFailed, "\(name) (\(file)) crashed in \(step). \(report)")
    }
}

extension LoadedModule {
    /// Whether the module's process has ended, so that none of its code can be called.
    var hasEnded: Bool { process?.ending != nil }

    /// Whether the module's process has ended, and the module is not to be started again.
    var isGone: Bool { hasEnded && process?.awaitsRestart != true }
}

extension PluginError {
    /// The error of a call during which the process of a generation has ended.
    ///
    /// - Parameters:
    ///   - title: The target and name of the action.
    ///   - ending: The reason why the process has ended, as a sentence.
    static func crash(of title: String, _ generation: Generation, _ ending: String) -> PluginError {
        PluginError(
            .moduleCrashed,
            "\(title) was not completed, because \(generation.name) is no longer running. \(ending) Whether the call has "
                + "had an effect is unknown.")
    }
}
