import Foundation
import PluginABI
import Synchronization

/// The worker processes of one host.
final class Workers: Sendable {
    private let isolation: Isolation
    private let hookTimeout: Duration
    private let log: @Sendable (LogEntry) -> Void
    private let hasCrashed: @Sendable (Generation) -> (@Sendable () -> Void)?
    /// Those that were started. They end themselves when their modules are not needed any more.
    private let processes = Mutex<[WorkerProcess]>([])

    /// - Parameter hasCrashed: See ``WorkerProcess/Settings``.
    init(
        _ configuration: HostConfiguration, hasCrashed: @escaping @Sendable (Generation) -> (@Sendable () -> Void)?
    ) {
        (isolation, hookTimeout) = (configuration.isolation, configuration.hookTimeout)
        (log, self.hasCrashed) = (configuration.log, hasCrashed)
    }

    /// Whether modules in files are opened in processes of their own.
    var areUsed: Bool { isolation.modules != .none }

    /// Returns whether a module runs in a process of its own.
    func isolates(_ module: String) -> Bool {
        switch isolation.modules {
        case .none: false
        case .named(let names): names.contains(module)
        case .all: true
        }
    }

    /// Opens a file in a process of its own.
    ///
    /// - Throws: `openFailed`, `invalidFile` or `invalidDescription`; `deadlineExceeded`; `outOfResources`.
    func open(
        _ file: StagedFile, timeout: Duration
    ) throws(PluginError) -> (WorkerProcess, UnsafePointer<plugin_module>) {
        let settings = WorkerProcess.Settings(
            isolation: isolation, hookTimeout: hookTimeout, program: try program(for: file), log: log,
            hasCrashed: hasCrashed)
        let (process, description) = try WorkerProcess.start(file, settings, timeout: timeout)
        processes.withLock { processes in
            processes.removeAll { $0.ending != nil }
            processes.append(process)
        }
        return (process, description)
    }

    /// Returns the path of the program.
    ///
    /// - Throws: `openFailed` if there is none.
    private func program(for file: StagedFile) throws(PluginError) -> String {
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
