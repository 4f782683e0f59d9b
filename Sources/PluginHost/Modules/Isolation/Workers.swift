import FoundationEssentials
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The worker processes of one host.
final class Workers: Sendable {
    private let isolation: Isolation
    private let hookTimeout: Duration
    private let log: @Sendable (LogEntry) -> Void
    private let hasCrashed: @Sendable (Generation) -> (@Sendable () -> Void)?
    /// The processes that were started. They end by themselves when their modules are no longer needed.
    private let processes = Mutex<[WorkerProcess]>([])
    /// The parts of the sandbox that were reported as missing.
    private let missing = Mutex<Set<String>>([])
    /// Whether processes no longer wait for a debugger.
    private let isEnding = Atomic(false)

    /// - Parameter hasCrashed: See ``WorkerProcess/Settings``.
    init(
        _ configuration: HostConfiguration, hasCrashed: @escaping @Sendable (Generation) -> (@Sendable () -> Void)?
    ) {
        (isolation, hookTimeout) = (configuration.isolation, configuration.hookTimeout)
        (log, self.hasCrashed) = (configuration.log, hasCrashed)
    }

    /// Whether any module in a file is opened in a process of its own.
    var areUsed: Bool { isolation.isolatesSome }

    /// Whether no module in a file is opened in this process.
    var isolatesAll: Bool { isolation.isolatesAll }

    /// Returns whether scan processes open a file first. They do not if its module is known from an earlier opening, or
    /// is likely to be isolated: the sandbox of an isolated module begins before the file is opened.
    ///
    /// - Parameters:
    ///   - name: The likely name of the module.
    ///   - module: The name of the module if the same content was opened before.
    func leaveToScan(_ name: String, known module: String?) -> Bool {
        guard areUsed else { return true }
        return module == nil && !isolates(name)
    }

    /// Returns whether a module runs in a process of its own.
    func isolates(_ module: String) -> Bool { isolation.isolates(module) }

    /// Returns whether the process of a module waits for a debugger.
    func debugs(_ module: String) -> Bool { isolation.debuggedModules.contains(module) }

    /// Returns the rule for a module in a process of its own, or for a file that is only inspected.
    func rule(for module: String, _ file: StagedFile) -> IsolationRule {
        guard isolates(module) else {
            var rule = IsolationRule(module)
            rule.sandbox = .none  // It will run in this process, where its constructors may do anything.
            return rule
        }
        return isolation.rule(for: module, file: file.original.withoutLinks)
    }

    /// Opens a file in a process of its own.
    ///
    /// - Parameters:
    ///   - rule: What the process may reach and use.
    ///   - debugged: The name of the module if the process is to wait for a debugger; it then has no deadlines.
    /// - Throws: `openFailed`, `invalidFile` or `invalidDescription`; `deadlineExceeded`; `outOfResources`.
    func open(
        _ file: StagedFile, _ rule: IsolationRule, timeout: Duration, debugged: String? = nil
    ) throws(PluginError) -> (WorkerProcess, UnsafePointer<plugin_module>) {
        var settings = WorkerProcess.Settings(
            isolation: isolation.with(rule), rule: rule, hookTimeout: hookTimeout, program: try program(for: file),
            log: log, hasCrashed: hasCrashed)
        if let debugged { debug(debugged, &settings) }
        let (process, description) = try WorkerProcess.start(file, settings, timeout: timeout)
        processes.withLock { processes in
            processes.removeAll { $0.ending != nil || $0 === process }
            processes.append(process)
        }
        tellMissing(process.missingProtections)
        return (process, description)
    }

    /// Logs, once for each part, what the sandbox lacks on this system.
    private func tellMissing(_ parts: [String]) {
        for part in parts where missing.withLock({ $0.insert(part).inserted }) {
            let message = "The sandbox of isolated modules lacks \(part)."
            log(LogEntry(level: .warning, message: message))
        }
    }

    /// Returns the path of the program: the one that is configured, the one beside this program, or this program.
    ///
    /// - Throws: `openFailed` if there is none.
    func program(for file: StagedFile) throws(PluginError) -> String {
        let path = isolation.workerPath ?? Self.besideThisProgram
        if access(path, X_OK) == 0 { return path }
        if isolation.workerPath == nil, WorkerProgram.isInThisProgram.load(ordering: .relaxed) {
            return WorkerProgram.thisProgram
        }
        throw PluginError(
            .openFailed,
            "\(file.original) cannot be opened in a process of its own: there is no program \(path). It is built with "
                + "pluginhost; install it beside the host's program, name it in the configuration "
                + "(Isolation.workerPath), or call PluginHost.runWorkerIfAsked() first in the program's main function.")
    }

    private static var besideThisProgram: String {
        let program = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return program.parentFolder + "/pluginhost-worker"
    }

    private func debug(_ module: String, _ settings: inout WorkerProcess.Settings) {
        let never = Duration.seconds(1_000_000_000)
        (settings.isolation.callTimeout, settings.isolation.hangGrace, settings.hookTimeout) = (never, never, never)
        settings.awaitsDebugger = { [weak self] process in
            self?.processes.withLock { $0.append(process) }
            let message = "process \(process.id) waits for a debugger: gdb -p \(process.id)"
            self?.log(LogEntry(level: .warning, module: module, message: message))
            if self?.isEnding.load(ordering: .sequentiallyConsistent) != false { process.end() }
        }
    }

    /// Logs that a file whose process waited for a debugger contains a different module from the expected one.
    func tellOtherName(_ name: String, of file: StagedFile, debugged: String) {
        let message =
            "\(file.original) contains the module \(name.shortened) instead of \(debugged). Its process, which has waited "
            + "for a debugger, is ended."
        log(LogEntry(level: .warning, module: debugged, message: message))
    }

    /// Ends the processes that wait for a debugger, for a host that is shut down.
    func endWaiting() {
        isEnding.store(true, ordering: .sequentiallyConsistent)
        for process in processes.withLock(\.self) where process.hasNotOpened { process.end() }
    }

    /// Ends all processes, for a host that is shut down.
    func endAll() {
        for process in processes.withLock(\.self) { process.end() }
    }
}
