import Foundation
import Logging
import PluginGateway
import PluginHost
import ServiceLifecycle
import Synchronization

@testable import PluginGatewayFleet

/// An etcd, a store, and hosts in this process.
final class TestFleet {
    let etcd: EtcdProcess
    let client: Etcd
    let control: FleetControl
    let keys = FleetKeys(prefix: "test")
    let folder: String

    init() async throws {
        etcd = try await EtcdProcess()
        client = try etcd.client()
        control = FleetControl(client, prefix: "test")
        folder = try makeFolder()
        try FileManager.default.createDirectory(atPath: "\(folder)/store", withIntermediateDirectories: false)
        for version in ["1.0.0", "1.1.0"] {
            try copyFile(TestMember.file(version), to: "\(folder)/store/Good-\(version).so")
        }
    }

    func release(_ version: String) throws -> ModuleRelease {
        let file = "Good-\(version).so"
        return ModuleRelease(
            version: version, digest: try FleetControl.digest(ofFile: "\(folder)/store/\(file)"), file: file)
    }

    /// Writes a host that nobody runs, and returns its lease.
    func pretend(_ name: String) async throws -> Int {
        let lease = try await client.grantLease(600)
        let host = HostRecord(name: name, address: "\(name):80", state: .ready, modules: [], problem: nil)
        try await client.put(keys.host(name), Array(host.json.json.utf8), lease: lease)
        return lease
    }

    /// Starts a host, with version 1.0.0 of the module, and further files in its plugins folder.
    func start(
        _ name: String, isLazy: Bool = false, files: [String] = [],
        _ configure: (inout FleetConfiguration) -> Void = { _ in }
    ) async throws -> TestMember {
        var configuration = FleetConfiguration(
            etcd: EtcdConfiguration(endpoints: [etcd.url]), name: name, address: "\(name):80", store: "\(folder)/store")
        configuration.prefix = "test"
        configuration.leaseSeconds = 60
        configuration.pollInterval = .milliseconds(300)
        configuration.drain = .milliseconds(50)
        configure(&configuration)
        return try await TestMember(configuration, isLazy: isLazy, files: files)
    }

    /// Begins a rollout with a short drain and a short observation.
    func rollOut(_ release: ModuleRelease, soak: Double = 0.05) async throws -> RolloutRecord {
        try await control.rollOut("Good", release, drain: 0.05, soak: soak, limits: .init())
    }

    /// Waits until the rollout is over, or in the given state.
    func end(_ state: RolloutRecord.State? = nil) async throws -> RolloutRecord? {
        var record: RolloutRecord?
        _ = await becomesTrue {
            record = try await control.snapshot().rollout
            return state.map { record?.state == $0 } ?? (record?.isActive == false)
        }
        return record
    }
}

/// A host in this process that takes part in a fleet. The test ends it.
final class TestMember {
    let gateway: PluginGateway
    let folder: String
    let plugins: String
    let lines = Lines()
    private let group: ServiceGroup
    private let running: Task<Void, any Error>

    /// What a member logs.
    struct Lines: LogHandler {
        let text = Box()
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.debug

        final class Box: Sendable {
            let text = Mutex("")
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { text.text.withLock { $0 += "\(event.level): \(event.message)\n" } }
    }

    private static let files = Mutex<[String: String]>([:])

    /// Builds a version of the module once.
    static func file(_ version: String) throws -> String {
        try files.withLock { files in
            if let file = files[version] { return file }
            var module = CModule(version: version, answer: version)
            module.isSealed = true
            let file = try module.build()
            files[version] = file
            return file
        }
    }

    init(_ configuration: FleetConfiguration, isLazy: Bool, files: [String]) async throws {
        folder = try makeFolder()
        plugins = "\(folder)/plugins"
        try FileManager.default.createDirectory(atPath: plugins, withIntermediateDirectories: false)
        try copyFile(Self.file("1.0.0"), to: "\(plugins)/good.so")
        for file in files { try "x".write(toFile: "\(plugins)/\(file)", atomically: true, encoding: .utf8) }
        var host = HostConfiguration(folders: [plugins])
        (host.stagingFolder, host.stateFolder) = ("\(folder)/staging", "\(folder)/state")
        host.takesLinkedModules = false
        if isLazy { host.start = .lazy }
        var settings = GatewayConfiguration()
        settings.access = .everyone
        gateway = PluginGateway(PluginHost(host), settings)
        let lines = lines
        let logger = Logger(label: "fleet") { _ in lines }
        let member = try FleetMember(gateway, configuration, logger: logger)
        group = ServiceGroup(
            services: [PluginHostService(gateway), member], logger: Logger(label: "test") { _ in lines })
        running = Task { [group] in try await group.run() }
        guard await becomesTrue({ gateway.isReady }) else { throw Failed(text: log) }
    }

    var log: String { lines.text.text.withLock { $0 } }

    /// The version that serves.
    var version: String? {
        gateway.host.modules.first { $0.name == "Good" && ($0.state == .active || $0.state == .registered) }?.version
    }

    func end() async throws {
        await group.triggerGracefulShutdown()
        try await running.value
    }
}
