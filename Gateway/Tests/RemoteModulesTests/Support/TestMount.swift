import Foundation
import Logging
import PluginABI
import PluginHost
import RemoteModules
import ServiceLifecycle

/// A host in this process with a mount, and possibly modules of its own.
final class TestMount: Sendable {
    let host: PluginHost
    let remote: RemoteModules
    private let running: Task<Void, any Error>
    private let ownsHost: Bool

    /// - Parameters:
    ///   - url: The URL of the other host.
    ///   - host: The host that mounts; `nil` for a new one without modules.
    init(
        _ url: String, _ targets: [String] = ["B"], in host: PluginHost? = nil, lines: Lines = Lines(),
        _ configure: (inout RemoteConfiguration) -> Void = { _ in }
    ) throws {
        var configuration = RemoteConfiguration()
        configuration.interval = .milliseconds(50)
        configure(&configuration)
        ownsHost = host == nil
        let host = host ?? PluginHost(TestMount.emptyHost)
        self.host = host
        if ownsHost { try host.start() }
        var logger = Logger(label: "mount") { _ in LineHandler(lines: lines) }
        logger.logLevel = .trace
        let remote = try RemoteModules(of: url, targets: targets, in: host, configuration, logger: logger)
        self.remote = remote
        running = Task { try await remote.run() }
    }

    private static var emptyHost: HostConfiguration {
        var configuration = HostConfiguration(folders: [])
        configuration.takesLinkedModules = false
        return configuration
    }

    convenience init(
        of gateway: TestGateway, _ targets: [String] = ["B"], in host: PluginHost? = nil, lines: Lines = Lines(),
        _ configure: (inout RemoteConfiguration) -> Void = { _ in }
    ) async throws {
        try self.init("http://127.0.0.1:\(gateway.port)", targets, in: host, lines: lines, configure)
        _ = await isServed()
    }

    /// Waits until all targets can be called.
    func isServed() async -> Bool {
        await becomesTrue { remote.status.targets.allSatisfy { $0.problem == nil && $0.module != nil } }
    }

    func end() async throws {
        running.cancel()
        _ = try? await running.value
        if ownsHost { try await onThread { [host] in host.shutdown() } }
    }

    /// Calls a synchronous action on a separate thread.
    func perform(
        _ action: String, _ parameters: Parameters = [:], target: String = "B", timeout: Duration? = nil
    ) async throws -> Value {
        try await onThread { [host] in try host.perform(target, action, parameters, timeout: timeout) }
    }

    /// Returns the error of a call; `nil` if there is none.
    func error(
        _ action: String, _ parameters: Parameters = [:], target: String = "B", timeout: Duration? = nil
    ) async -> PluginError? {
        do {
            _ = try await perform(action, parameters, target: target, timeout: timeout)
            return nil
        } catch {
            return error as? PluginError
        }
    }
}
