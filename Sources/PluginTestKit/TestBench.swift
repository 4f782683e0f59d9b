import FoundationEssentials
import PluginFile
import Synchronization

/// A host for one test, with the module under test and the peers that the test adds.
///
///     @Test func `The price comes with the name of its currency`() async throws {
///         let bench = try await TestBench(.product("ModuleA"), peers: .fake(formats))
///         #expect(try bench.host.perform("A", "price", ["key": "apple"]) == "0.5 euro")
///         let report = await bench.finish()
///         #expect(report.isClean, "\(report)")
///     }
///
/// The host is a real one, with the same checks, the same call path and the same errors as in a program. It has folders
/// of its own, and shares only the process with other benches, so tests can run in parallel. A bench works in every
/// test framework.
public final class TestBench: Sendable {
    /// The host. A test calls the module with ``/PluginHost/PluginHost/perform(_:_:_:timeout:)`` and the host's other
    /// functions.
    public let host: PluginHost
    /// The name of the module under test, from its manifest.
    public let name: String
    /// The path of the module's file on the bench; `nil` if the module is code of the test.
    private let file: String?
    /// The path of the original file, and the number of replacements.
    private let build: Mutex<(original: String, number: Int)>
    private let files: BenchFolder
    private let records: BenchRecords

    /// Makes a bench, and loads the peers, then the module.
    ///
    ///     let bench = try await TestBench(.product("ModuleA"), peers: .product("ModuleB"), .fake(clock)) {
    ///         $0.moduleConfiguration["ModuleA"] = ["currency": "CHF"]
    ///         $0.asyncTimeout = .milliseconds(50)
    ///     }
    ///
    /// - Parameters:
    ///   - module: The module under test.
    ///   - peers: The peers that are loaded before the module. Others can be added later, with ``add(_:)``.
    ///   - isolated: Whether the module, and peers from files, run in processes of their own, as isolated modules do.
    ///     The test target then also depends on the product `pluginhost-worker`, which SwiftPM builds beside the tests;
    ///     `isolation.workerPath` of the configuration can name another place. Rules in `isolation.rules` of the
    ///     configuration grant what modules ask for; leave out their folders, since a bench copies the files.
    ///   - configure: A closure that changes the configuration of the host: environment, timeouts, configuration of
    ///     modules. The default timeout for asynchronous calls, hooks, hand-over and draining is ten minutes. The bench
    ///     sets the folders and the log.
    /// - Throws: The reason why the module or a peer does not start, as reported by the host: `activationFailed`,
    ///   `missingRequirement`, `conflict` and others; `unreadable` if a file does not exist or cannot be read, or the
    ///   program `pluginhost-worker` is missing; `conflict` if a module that is code of the test is to be isolated.
    public init(
        _ module: ModuleSource, peers: ModuleSource..., isolated: Bool = false,
        configure: (inout PluginHost.Configuration) -> Void = { _ in }
    ) async throws {
        let (files, records) = (try BenchFolder(), BenchRecords())
        var configuration = PluginHost.Configuration(folders: [])
        configuration.takesLinkedModules = false
        configuration.environment = "test"
        configuration.asyncTimeout = Self.patience
        configuration.hookTimeout = Self.patience
        configuration.hookPatience = Self.patience
        configuration.handOverTimeout = Self.patience
        configuration.drainTimeout = Self.patience
        configure(&configuration)
        configuration.folders = [files.plugins]
        configuration.stagingFolder = "\(files.path)/staging"
        configuration.stateFolder = "\(files.path)/state"
        configuration.watches = true
        configuration.log = { records.add($0) }
        if isolated { try Self.isolate(module, &configuration) }
        let host = PluginHost(configuration)
        try host.start()
        records.follow(host.changes)
        (self.host, self.files, self.records) = (host, files, records)
        for peer in peers { _ = try await Self.put(peer, files, host) }
        let placed = try await Self.put(module, files, host)
        (name, file) = (placed.name, placed.file)
        build = Mutex((placed.original, 0))
    }

    deinit { host.shutdown() }

    /// The timeout on a bench, long enough that no test fails because the machine is busy.
    private static let patience = Duration.seconds(600)

    /// The folder that the host watches, which is also the module's own folder. A test can put route files and service
    /// files there, and read what the module writes. Name files that must exist before the module is loaded in its
    /// ``ModuleSource``.
    public var folder: String { files.plugins }

    /// All lines of the log so far: those of modules, and those of the host about them.
    ///
    ///     #expect(bench.log.contains { $0.module == "ModuleA" && $0.message == "The shop is open." })
    public var log: [LogEntry] { records.log }

    /// All changes of modules so far.
    public var changes: [HostChange] { records.changes }

    /// Adds a peer.
    ///
    ///     try await bench.add(.fake(clock))
    ///
    /// - Throws: The errors of ``init(_:peers:isolated:configure:)``.
    public func add(_ peer: ModuleSource) async throws { _ = try await Self.put(peer, files, host) }

    /// Removes a peer or the module itself, as if its file had been deleted or the program had unregistered it.
    ///
    /// - Parameter name: The module's name.
    /// - Throws: `unknownModule` if there is no such module.
    public func remove(_ name: String) throws {
        if try !host.unregister(name) { try host.remove(name, force: true) }
    }
}

// MARK: Replacement

extension TestBench {
    /// Replaces the module with another build of itself, and waits until that build serves. State is handed over as in
    /// a program.
    ///
    ///     #expect(try bench.host.perform("Visits", "count") == 1)
    ///     try await bench.replace()
    ///     #expect(try bench.host.perform("Visits", "count") == 2)
    ///
    /// - Parameter build: Another file of the module. Default: the same file, as if it had been built again; it is
    ///   loaded next to the first one, with globals of its own.
    /// - Throws: The reason why the host refuses the replacement, in which case the previous build continues to serve;
    ///   `conflict` for a module that is code of the test, which has only one build.
    public func replace(with build: ModuleSource? = nil) async throws {
        guard let file else {
            throw PluginError(
                .conflict,
                "\(name) is part of the test program, so it cannot be replaced by another build. Load it with "
                    + ".product or .file.")
        }
        var other: String?
        if let build {
            guard case .file(let path, _) = try build.resolve() else {
                throw PluginError(.conflict, "\(name) was loaded from a file. Only another file can replace it.")
            }
            other = path
        }
        let (original, number) = self.build.withLock { build in
            build = (other ?? build.original, build.number + 1)
            return build
        }
        let told = changes.count
        try files.put(original, as: file.fileName, suffix: "\0build \(number)")
        try await Self.await("\(name) to be replaced") {
            for change in self.changes.dropFirst(told) {
                switch change {
                case .replaced(let status, _) where status.file == file: return true
                case .failed(let status, _) where status.file == file,
                    .waiting(let status) where status.file == file && !status.isBeingWritten:
                    throw status.error ?? PluginError(.activationFailed, "\(file) is \(status.state).")
                default: continue
                }
            }
            return false
        }
    }

    private typealias Placed = (name: String, file: String?, original: String)

    /// Adds a module to the host and waits until it serves.
    private static func put(
        _ source: ModuleSource, _ files: BenchFolder, _ host: PluginHost
    ) async throws -> Placed {
        switch try source.resolve() {
        case .code(let manifest):
            try host.register(manifest)
            return (manifest.name, nil, "")
        case .file(let original, let others):
            let name = original.fileName
            let file = "\(files.plugins)/\(name)"
            guard !FileManager.default.fileExists(atPath: file) else {
                throw PluginError(
                    .conflict, "There is already a file \(name) on the bench. Give each module its own file name.")
            }
            for other in others { try files.put(other) }
            try files.put(original, as: name, suffix: "")
            var module = ""
            try await Self.await("\(name) to be loaded") {
                guard let status = host.modules.first(where: { $0.file == file }) else { return false }
                if let error = status.error, !status.isBeingWritten { throw Self.advised(error) }
                module = status.name ?? ""
                return status.state == .active
            }
            return (module, file, original)
        }
    }

    /// Checks a condition every two milliseconds until it is true.
    ///
    /// - Throws: `deadlineExceeded` after ten minutes, which happens only if the condition never becomes true.
    private static func `await`(_ what: String, until isSo: () throws -> Bool) async throws {
        let end = ContinuousClock.now + patience
        while try !isSo() {
            guard ContinuousClock.now < end else {
                throw PluginError(.deadlineExceeded, "Waited ten minutes for \(what).")
            }
            try await Task.sleep(for: .milliseconds(2))
        }
    }
}

extension ModuleStatus {
    /// Whether the file is still being written, so that its content is not known yet.
    fileprivate var isBeingWritten: Bool { state == .waiting && error?.code == .unreadable }
}
