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
        Dictionary(host.modules.map { (($0.file as NSString).lastPathComponent, $0.state) }) { $1 }
    }

    func status(_ file: String) -> ModuleStatus? {
        host.modules.first { ($0.file as NSString).lastPathComponent == file }
    }

    /// What `answer` of a target replies; nil when it cannot be called.
    func answer(_ target: String = "Good") -> String? { try? host.perform(target, "answer").string }

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
        case .added(let status), .failed(let status), .superseded(let status), .changedOnDisk(let status, _):
            (status.file as NSString).lastPathComponent
        case .routesChanged(let file, _): (file as NSString).lastPathComponent
        case .problem, .configurationChanged: nil
        }
    }

    var isFailure: Bool { if case .failed = self { true } else { false } }
    var isChangeOnDisk: Bool { if case .changedOnDisk = self { true } else { false } }
    var isProblem: Bool { if case .problem = self { true } else { false } }
}

/// The built program `pluginhost`, in a process of its own.
struct HostProgram {
    let folder: TemporaryFolder
    let plugins: String

    struct Outcome {
        /// The signal that ended it, or 0.
        let signal: Int32
        let code: Int32
        let output: String
        let errors: String

        /// What `list --json` says of a file.
        func module(_ file: String) -> Value? {
            (try? Value(json: output))?.list?.first { $0["file"]?.string?.hasSuffix("/\(file)") == true }
        }
    }

    init() throws {
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
    }

    /// The same with another name of the plugins folder.
    func naming(_ plugins: String) -> HostProgram { HostProgram(folder: folder, plugins: plugins) }

    private init(folder: TemporaryFolder, plugins: String) { (self.folder, self.plugins) = (folder, plugins) }

    /// Runs it to its end, or to SIGKILL after two minutes.
    ///
    /// Not with Foundation's Process: that waits until nobody holds a descriptor any more which the program has handed
    /// on to whatever it has started, the backtracer of a crash included.
    func run(_ arguments: String..., environment: [String: String] = [:]) throws -> Outcome {
        let name = UUID().uuidString
        let (output, errors) = (try folder.file("\(name).out"), try folder.file("\(name).err"))
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY, 0)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))

        let program = try builtLibrary("pluginhost")
        // What it says of a crash is looked at, not what the Swift runtime adds.
        let variables = [
            "PATH": "/usr/bin:/bin", "HOME": folder.path, "TMPDIR": folder.path, "SWIFT_BACKTRACE": "enable=no",
        ].merging(sanitizerOptions) { $1 }
            .merging(environment) { $1 }
        var words = ([program] + arguments + ["--plugins", plugins]).map { strdup($0) } + [nil]
        var settings = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { for word in words + settings { free(word) } }
        var process: pid_t = 0
        let failure = posix_spawn(&process, program, &actions, &attributes, &words, &settings)
        guard failure == 0 else { throw POSIXError(.init(rawValue: failure) ?? .EIO) }

        var status: Int32 = 0
        var hasEnded = false
        for _ in 0..<12000 where !hasEnded {
            hasEnded = waitpid(process, &status, WNOHANG) == process
            if !hasEnded { usleep(10_000) }
        }
        kill(-process, SIGKILL)
        if !hasEnded { waitpid(process, &status, 0) }
        let signal = status & 0x7F
        return Outcome(
            signal: signal, code: signal == 0 ? status >> 8 & 0xFF : 0,
            output: try String(contentsOfFile: output, encoding: .utf8),
            errors: try String(contentsOfFile: errors, encoding: .utf8))
    }
}

/// What the sanitizers were told, for programs that are started; there they leave fatal signals to the program.
private var sanitizerOptions: [String: String] {
    let signals = ["segv", "sigbus", "abort", "sigill", "sigfpe", "sigtrap"].map { "handle_\($0)=0" }
    return ["ASAN_OPTIONS", "TSAN_OPTIONS"].reduce(into: [:]) { options, name in
        let told = ProcessInfo.processInfo.environment[name].map { [$0] } ?? []
        options[name] = (told + signals + ["use_sigaltstack=0"]).joined(separator: ":")
    }
}
