import Foundation
import PluginABI
import PluginHost
import Synchronization

/// A host with folders of its own, and what it has told so far.
final class FolderHost: Sendable {
    let folder: TemporaryFolder
    let plugins: String
    let host: PluginHost
    private let told = Mutex<[HostChange]>([])

    /// - Parameter configure: Changes the configuration before the host is made.
    init(_ configure: (inout PluginHost.Configuration, TemporaryFolder) throws -> Void = { _, _ in }) throws {
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
        var configuration = PluginHost.Configuration(folders: [plugins])
        configuration.stagingFolder = "\(folder.path)/staging"
        configuration.stateFolder = "\(folder.path)/state"
        configuration.asyncTimeout = .seconds(600)
        configuration.hookTimeout = .seconds(600)
        let box = LogBox()
        configuration.log = { entry in box.entries.withLock { $0.append(entry) } }
        try configure(&configuration, folder)
        log = box
        host = PluginHost(configuration)
    }

    deinit { host.shutdown() }

    private let log: LogBox
    private final class LogBox: Sendable { let entries = Mutex<[LogEntry]>([]) }

    func start() throws {
        try host.start()
        let changes = host.changes
        Task(executorPreference: OwnQueue.shared) { [weak self] in
            for await change in changes { self?.told.withLock { $0.append(change) } }
        }
    }

    var messages: [String] { log.entries.withLock { $0.map(\.message) } }
    var changes: [HostChange] { told.withLock { $0 } }

    /// The files by name, with their states.
    var states: [String: String] {
        Dictionary(host.modules.map { (($0.file as NSString).lastPathComponent, $0.state.rawValue) }) { $1 }
    }

    func status(_ file: String) -> ModuleStatus? {
        host.modules.first { ($0.file as NSString).lastPathComponent == file }
    }

    /// What `answer` of a target replies; nil when it cannot be called.
    func answer(_ target: String = "Good") -> String? { try? host.perform(target, "answer").string }

    /// The error of the same, if it fails.
    func failure(_ target: String = "Good") -> PluginError? {
        do throws(PluginError) { try host.perform(target, "answer") } catch { return error }
        return nil
    }

    /// Waits until every change so far has been told: one more module comes, and is told last.
    func settle() throws -> Bool {
        let marker = "Marker\(Int.random(in: 0 ... 1_000_000_000))"
        try PlainModule(name: marker).build(into: plugins, as: "\(marker).so")
        return eventually { changes.contains { $0.isAdded(marker) } }
    }
}

/// Runs tasks while tests block the threads that tasks usually run on.
private final class OwnQueue: TaskExecutor {
    static let shared = OwnQueue()
    private let queue = DispatchQueue(label: "test-host")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

extension HostChange {
    func isAdded(_ name: String) -> Bool { if case .added(let status) = self { status.name == name } else { false } }

    /// The file that it is about.
    var file: String? {
        switch self {
        case .added(let status), .replaced(let status, _), .failed(let status, _), .waiting(let status),
            .superseded(let status):
            (status.file as NSString).lastPathComponent
        case .removed(let generation, _), .drainOverdue(let generation), .retired(let generation):
            (generation.file as NSString).lastPathComponent
        case .routesChanged(let file, _), .servicesChanged(let file, _): (file as NSString).lastPathComponent
        case .problem, .configurationChanged: nil
        }
    }

    var isFailure: Bool { if case .failed = self { true } else { false } }
    var isRemoval: Bool { if case .removed = self { true } else { false } }
    var isReplacement: Bool { if case .replaced = self { true } else { false } }
    var isRetirement: Bool { if case .retired = self { true } else { false } }
    var isProblem: Bool { if case .problem = self { true } else { false } }
}
