import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

/// A host with folders of its own, and what it has written to its log.
final class TestHost: Sendable {
    let host: PluginHost
    let folder: TemporaryFolder
    private let entries: Log

    private final class Log: Sendable {
        let entries = Mutex<[LogEntry]>([])
    }

    /// - Parameter modules: Paths of libraries, copied into the plugins folder under numbers.
    init(_ modules: [String], configure: (inout PluginHost.Configuration) -> Void = { _ in }) throws {
        folder = try TemporaryFolder()
        let log = Log()
        entries = log
        let plugins = try folder.folder("plugins")
        for (number, module) in modules.enumerated() {
            try folder.copy(module, as: "plugins/\(number).so")
        }
        var configuration = PluginHost.Configuration(folders: [plugins])
        configuration.stagingFolder = try folder.folder("staging", mode: 0o700)
        configuration.stateFolder = try folder.folder("state", mode: 0o700)
        configuration.watches = false
        configuration.asyncTimeout = .seconds(600)
        configuration.hookTimeout = .seconds(600)
        configuration.log = { entry in log.entries.withLock { $0.append(entry) } }
        configure(&configuration)
        host = PluginHost(configuration)
        try host.start()
        for module in host.modules where module.state != .active {
            Issue.record("\(module.error?.description ?? module.state.rawValue)")
        }
        for problem in host.problems { Issue.record("\(problem)") }
    }

    deinit { host.shutdown() }

    /// A host with the modules A, B and C and the one for tests.
    static func withSamples() throws -> TestHost {
        try TestHost(["ModuleA", "ModuleB", "ModuleC", "FixtureModule"].map { try builtLibrary("lib\($0).so") })
    }

    /// A host with the module for tests.
    static func withFixture() throws -> TestHost { try TestHost([builtLibrary("libFixtureModule.so")]) }

    var log: [LogEntry] { entries.entries.withLock { $0 } }

    /// The lines of the log about replies that nobody waits for.
    var staleReplies: Int { log.count { $0.message.contains("replied to a call that is over") } }

    /// The code of the error of a call; nil when it succeeds.
    func code(_ target: String, _ action: String) -> PluginError.Code? {
        do throws(PluginError) { try host.perform(target, action) } catch { return error.code }
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

/// Runs a body on a thread that belongs to no Swift task, and waits for it without blocking one.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Result, any Error>) in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}

/// Runs a body on several threads at once; its argument counts from 0.
func onThreads<Result: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (Int) throws -> Result
) async throws -> [Result] {
    try await withThrowingTaskGroup(of: Result.self) { group in
        for number in 0..<count { group.addTask { try await onThread { try body(number) } } }
        return try await group.reduce(into: []) { $0.append($1) }
    }
}

/// As `eventually`, for tests that other tasks must not wait for.
func becomesTrue(_ condition: () throws -> Bool) async rethrows -> Bool {
    for _ in 0..<30_000 {
        if try condition() { return true }
        try? await Task.sleep(for: .milliseconds(10))
    }
    return false
}
