import Foundation
import PluginABI
import PluginFile
import Synchronization

/// The worker processes of one host.
final class Workers: Sendable {
    private let isolation: Isolation
    private let log: @Sendable (LogEntry) -> Void
    private let hasCrashed: @Sendable (Generation) -> (@Sendable () -> Void)?
    /// Those that were started. They end themselves when their modules are not needed any more.
    private let processes = Mutex<[WorkerProcess]>([])
    /// The parts of the sandbox that were reported as missing.
    private let missing = Mutex<Set<String>>([])

    /// - Parameter hasCrashed: See ``WorkerProcess/Settings``.
    init(
        _ configuration: HostConfiguration, hasCrashed: @escaping @Sendable (Generation) -> (@Sendable () -> Void)?
    ) {
        (isolation, log, self.hasCrashed) = (configuration.isolation, configuration.log, hasCrashed)
    }

    /// Whether modules in files are opened in processes of their own.
    var areUsed: Bool { isolation.modules != .none || !isolation.rules.isEmpty }

    /// Returns whether a module runs in a process of its own.
    func isolates(_ module: String) -> Bool { isolation.isolates(module) }

    /// Returns what applies to a module in a process of its own, or to a file that is only looked at.
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
    /// - Parameter rule: What the process may reach and use.
    /// - Throws: `openFailed`, `invalidFile` or `invalidDescription`; `deadlineExceeded`; `outOfResources`.
    func open(
        _ file: StagedFile, _ rule: IsolationRule, timeout: Duration
    ) throws(PluginError) -> (WorkerProcess, UnsafePointer<plugin_module>) {
        let settings = WorkerProcess.Settings(
            isolation: isolation.with(rule), rule: rule, program: try program(for: file), log: log,
            hasCrashed: hasCrashed)
        let (process, description) = try WorkerProcess.start(file, settings, timeout: timeout)
        processes.withLock { processes in
            processes.removeAll { $0.ending != nil }
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

    /// Returns the path of the program.
    ///
    /// - Throws: `openFailed` if there is none.
    func program(for file: StagedFile) throws(PluginError) -> String {
        let path = isolation.workerPath ?? Self.besideThisProgram
        guard access(path, X_OK) == 0 else {
            throw PluginError(
                .openFailed,
                "\(file.original) cannot be opened in a process of its own: there is no program \(path). It is built "
                    + "with pluginhost; install it beside the host's program, or name it in the configuration "
                    + "(Isolation.workerPath).")
        }
        return path
    }

    private static var besideThisProgram: String {
        let program = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return (program as NSString).deletingLastPathComponent + "/pluginhost-worker"
    }

    /// Ends all processes, at the end of the host.
    func endAll() {
        for process in processes.withLock(\.self) { process.end() }
    }
}
