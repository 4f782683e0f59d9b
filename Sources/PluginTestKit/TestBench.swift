import Foundation
import PluginABI
public import PluginHost
import Synchronization

/// A host for one test, with a module on it, and the peers that the test gives it.
///
///     @Test func `The price comes with the name of its currency`() async throws {
///         let bench = try await TestBench(.product("ModuleA"), peers: .fake(formats))
///         #expect(try bench.host.perform("A", "price", ["key": "apple"]) == "0.5 euro")
///         let report = await bench.finish()
///         #expect(report.isClean, "\(report)")
///     }
///
/// The host is a real one: the same checks, the same call path, the same errors as in a program. It has folders of its
/// own and shares nothing with other benches but the process, so tests run in parallel. Works in every test framework.
public final class TestBench: Sendable {
    /// The host, to call the module by: ``/PluginHost/PluginHost/perform(_:_:_:timeout:)`` and all the others.
    public let host: PluginHost
    /// The name of the module under test, as its manifest has it.
    public let name: String
    /// The path of its file on the bench; nil for one that is code of the test.
    private let file: String?
    /// What the file is a copy of, and how often it was put there.
    private let build: Mutex<(original: String, number: Int)>
    private let files: BenchFolder
    private let records: BenchRecords

    /// Loads a module, and its peers before it.
    ///
    ///     let bench = try await TestBench(.product("ModuleA"), peers: .product("ModuleB"), .fake(clock)) {
    ///         $0.moduleConfiguration["ModuleA"] = ["currency": "CHF"]
    ///         $0.asyncTimeout = .milliseconds(50)
    ///     }
    ///
    /// - Parameters:
    ///   - module: The module under test.
    ///   - peers: What it finds when it starts. Others can be added later, by ``add(_:)``.
    ///   - configure: Changes what the host is told: configuration, environment, timeouts (ten minutes for asynchronous
    ///     calls, hooks and draining, where it says nothing). Folders and log are the bench's.
    /// - Throws: Why the module or a peer does not start, as a host says it: `activationFailed`, `missingRequirement`,
    ///   `conflict` and others; `unreadable` when it is not there.
    public init(
        _ module: ModuleSource, peers: ModuleSource...,
        configure: (inout PluginHost.Configuration) -> Void = { _ in }
    ) async throws {
        let (files, records) = (try BenchFolder(), BenchRecords())
        var configuration = PluginHost.Configuration(folders: [])
        configuration.takesLinkedModules = false
        configuration.environment = "test"
        configuration.asyncTimeout = Self.patience
        configuration.hookTimeout = Self.patience
        configuration.handOverTimeout = Self.patience
        configuration.drainTimeout = Self.patience
        configure(&configuration)
        configuration.folders = [files.plugins]
        configuration.stagingFolder = "\(files.path)/staging"
        configuration.stateFolder = "\(files.path)/state"
        configuration.watches = true
        configuration.log = { records.add($0) }
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

    /// Deadlines of a bench: no module is slow because the machine that tests it is busy.
    private static let patience = Duration.seconds(600)

    /// The folder that the host watches, and that the module is told as its own: a test can put files of routes and of
    /// services there, and look at what the module writes. What must be there before the module comes is named in its
    /// ``ModuleSource``.
    public var folder: String { files.plugins }

    /// Every line of the log so far: what modules wrote, and what the host says about them.
    ///
    ///     #expect(bench.log.contains { $0.module == "ModuleA" && $0.message == "The shop is open." })
    public var log: [LogEntry] { records.log }

    /// What has happened to the modules so far.
    public var changes: [HostChange] { records.changes }

    /// Adds a peer to those that are there.
    ///
    ///     try await bench.add(.fake(clock))
    ///
    /// - Throws: As ``init(_:peers:configure:)``.
    public func add(_ peer: ModuleSource) async throws { _ = try await Self.put(peer, files, host) }

    /// Takes a peer, or the module itself, away, as if its file had been deleted, or the program had unregistered it.
    ///
    /// - Parameter name: The module's name.
    /// - Throws: `unknownModule`.
    public func remove(_ name: String) throws {
        if try !host.unregister(name) { try host.remove(name, force: true) }
    }
}

// MARK: Replacement

extension TestBench {
    /// Replaces the module by another build of itself, and waits until that serves. State is handed over as in a program.
    ///
    ///     #expect(try bench.host.perform("Visits", "count") == 1)
    ///     try await bench.replace()
    ///     #expect(try bench.host.perform("Visits", "count") == 2)
    ///
    /// - Parameter build: Another file of the module. Default: the same one, as if it had been built again; it is loaded
    ///   next to the first, with globals of its own.
    /// - Throws: Why the host refuses the replacement, in which case the one before goes on; `conflict` for a module that
    ///   is code of the test, and so there only once.
    public func replace(with build: ModuleSource? = nil) async throws {
        guard let file else {
            throw PluginError(
                .conflict,
                "\(name) is a part of the test program: it is there only once, and cannot be replaced by another build. "
                    + "Load it with .product or .file.")
        }
        var other: String?
        if let build {
            guard case .file(let path, _) = try build.resolve() else {
                throw PluginError(.conflict, "\(name) came from a file; only another file can replace it.")
            }
            other = path
        }
        let (original, number) = self.build.withLock { build in
            build = (other ?? build.original, build.number + 1)
            return build
        }
        let told = changes.count
        try files.put(original, as: (file as NSString).lastPathComponent, suffix: "\0build \(number)")
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

    /// Puts a module there and waits until it serves.
    private static func put(
        _ source: ModuleSource, _ files: BenchFolder, _ host: PluginHost
    ) async throws -> Placed {
        switch try source.resolve() {
        case .code(let manifest):
            try host.register(manifest)
            return (manifest.name, nil, "")
        case .file(let original, let others):
            let name = (original as NSString).lastPathComponent
            let file = "\(files.plugins)/\(name)"
            guard !FileManager.default.fileExists(atPath: file) else {
                throw PluginError(
                    .conflict, "There is a \(name) on the bench already: give each module its own file name.")
            }
            for other in others { try files.put(other) }
            try files.put(original, as: name, suffix: "")
            var module = ""
            try await Self.await("\(name) to be loaded") {
                guard let status = host.modules.first(where: { $0.file == file }) else { return false }
                if let error = status.error, !status.isBeingWritten { throw error }
                module = status.name ?? ""
                return status.state == .active
            }
            return (module, file, original)
        }
    }

    /// Looks again and again until something holds.
    ///
    /// - Throws: `deadlineExceeded` after ten minutes: only a test that would never end gets there.
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
    /// Whether it is not known yet what is in the file.
    fileprivate var isBeingWritten: Bool { state == .waiting && error?.code == .unreadable }
}
