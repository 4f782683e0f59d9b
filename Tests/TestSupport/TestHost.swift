import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

/// Whether the modules of all tests run in separate processes: with `PLUGINHOST_TESTS_ISOLATE=all`.
let modulesAreIsolated = ProcessInfo.processInfo.environment["PLUGINHOST_TESTS_ISOLATE"] == "all"

/// A host with its own folders, and what it has reported and logged so far.
final class TestHost: Sendable {
    let folder: TemporaryFolder
    let plugins: String
    let host: PluginHost
    private let records: Records

    private final class Records: Sendable {
        let entries = Mutex<[LogEntry]>([])
        let changes = Mutex<[HostChange]>([])
    }

    /// A host that the test starts.
    ///
    /// - Parameter configure: Changes the configuration before the host is made.
    init(_ configure: (inout PluginHost.Configuration, TemporaryFolder) throws -> Void = { _, _ in }) throws {
        let records = Records()
        self.records = records
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
        var configuration = PluginHost.Configuration(folders: [plugins])
        configuration.stagingFolder = "\(folder.path)/staging"
        configuration.stateFolder = "\(folder.path)/state"
        configuration.asyncTimeout = .seconds(600)
        configuration.hookTimeout = .seconds(600)
        configuration.hookPatience = .seconds(600)
        configuration.log = { entry in records.entries.withLock { $0.append(entry) } }
        try configure(&configuration, folder)
        if modulesAreIsolated {
            configuration.isolation.modules = .all
            // The modules of tests write their notes to files.
            var rule = IsolationRule("*")
            rule.writablePaths = [NSTemporaryDirectory()]
            configuration.isolation.rules.append(rule)
        }
        host = PluginHost(configuration)
    }

    /// A host that serves these modules, and does not watch its folder.
    ///
    /// - Parameter modules: Paths of libraries, copied into the plugins folder with numbers as names.
    convenience init(
        _ modules: [String], configure: (inout PluginHost.Configuration) -> Void = { _ in }
    ) throws {
        try self.init { configuration, folder in
            for (number, module) in modules.enumerated() { try folder.copy(module, as: "plugins/\(number).so") }
            configuration.watches = false
            configure(&configuration)
        }
        try host.start()
        for module in host.modules where module.state != .active {
            Issue.record("\(module.error?.description ?? module.state.rawValue)")
        }
        for problem in host.problems { Issue.record("\(problem)") }
    }

    deinit { host.shutdown() }

    /// A host with the modules A, B and C and the fixture module.
    static func withSamples() throws -> TestHost {
        try TestHost(["ModuleA", "ModuleB", "ModuleC", "FixtureModule"].map { built("lib\($0).so") })
    }

    /// A host with the fixture module.
    static func withFixture() throws -> TestHost { try TestHost([built("libFixtureModule.so")]) }

    /// Starts the host, and from then on records its reports.
    func start() throws {
        try host.start()
        let changes = host.changes
        Task(executorPreference: OwnQueue.shared) { [records] in
            for await change in changes { records.changes.withLock { $0.append(change) } }
        }
    }

    /// Starts the host on a separate thread, so that other tests can use the threads of tasks meanwhile.
    func startAside() async throws { try await onThread { [self] in try start() } }

    /// Puts a file into the plugins folder in one step, by a rename.
    func put(_ content: Data, _ name: String) throws {
        let new = try folder.file(UUID().uuidString, content)
        guard rename(new, "\(plugins)/\(name)") == 0 else { throw POSIXError(.EIO) }
    }

    func put(_ text: String, _ name: String) throws { try put(Data(text.utf8), name) }

    // MARK: - Reports

    var changes: [HostChange] { records.changes.withLock { $0 } }
    var log: [LogEntry] { records.entries.withLock { $0 } }
    var messages: [String] { log.map(\.message) }

    /// The number of log entries about stale replies.
    var staleReplies: Int { log.count(where: \.isAboutStaleReply) }

    /// Waits until every change so far has been reported. Adds one more module, whose change is reported last.
    func waitForChanges() throws -> Bool {
        let marker = "Marker\(records.changes.withLock(\.count))"
        try CModule(name: marker).build(into: plugins, as: "\(marker).so")
        return eventually { changes.contains { $0.isAdded(marker) } }
    }

    /// The states of the files, by name.
    var states: [String: String] {
        Dictionary(host.modules.map { (($0.file as NSString).lastPathComponent, $0.state.rawValue) }) { $1 }
    }

    func status(_ file: String) -> ModuleStatus? {
        host.modules.first { ($0.file as NSString).lastPathComponent == file }
    }

    // MARK: - Answers

    /// The reply of `answer` of a target; nil if the action cannot be called.
    func answer(_ target: String = "Good") -> String? { try? host.perform(target, "answer").string }

    /// The error of `answer` of a target; nil if the call succeeds.
    func failure(_ target: String = "Good") -> PluginError? { error(target, "answer") }

    /// The code of the error of a call; nil if the call succeeds.
    func code(_ target: String, _ action: String) -> PluginError.Code? { error(target, action)?.code }

    private func error(_ target: String, _ action: String) -> PluginError? {
        do throws(PluginError) { try host.perform(target, action) } catch { return error }
        return nil
    }

    /// The error of a call that is expected to fail.
    func failure(
        _ target: String, _ action: String, _ parameters: Parameters = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> PluginError {
        try #require(
            #expect(throws: PluginError.self, sourceLocation: sourceLocation) {
                try self.host.perform(target, action, parameters)
            }, sourceLocation: sourceLocation)
    }
}

/// Runs tasks while tests block the threads on which tasks usually run.
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

    /// The file that the change concerns.
    var file: String? {
        switch self {
        case .added(let status), .started(let status), .rested(let status), .restarted(let status),
            .replaced(let status, _), .failed(let status, _), .waiting(let status), .starting(let status),
            .superseded(let status):
            (status.file as NSString).lastPathComponent
        case .removed(let generation, _), .crashed(let generation, _), .drainOverdue(let generation),
            .retired(let generation):
            (generation.file as NSString).lastPathComponent
        case .routesChanged(let file, _), .servicesChanged(let file, _): (file as NSString).lastPathComponent
        case .problem, .configurationChanged, .missed: nil
        }
    }

    var isFailure: Bool { if case .failed = self { true } else { false } }
    var isRemoval: Bool { if case .removed = self { true } else { false } }
    var isReplacement: Bool { if case .replaced = self { true } else { false } }
    var isRetirement: Bool { if case .retired = self { true } else { false } }
    var isProblem: Bool { if case .problem = self { true } else { false } }
}
