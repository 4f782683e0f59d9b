import AsyncHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import PluginABI
import PluginGateway
import PluginHost
import ServiceLifecycle
import Synchronization
import Tracing

/// A gateway that listens on a port of this machine, with its own plugins folder.
final class TestGateway: Sendable {
    let gateway: PluginGateway
    let folder: String
    let port: Int
    let group: ServiceGroup
    private let running: Task<Void, any Error>
    private let ports: Ports

    private final class Ports: Sendable {
        let port = Mutex<Int?>(nil)
    }

    /// A server other than that of HTTP/1.
    struct Server {
        /// - Parameter handler: Makes the gateway's handler for a connection.
        let make: (_ handler: @escaping @Sendable () -> any RemovableChannelHandler) throws -> HTTPServerBuilder
    }

    /// The sample modules.
    static let samples = ["ModuleA", "ModuleB", "ModuleC"].map { "\(buildFolder)/lib\($0).so" }

    /// A gateway that accepts calls. The test ends it.
    ///
    /// - Parameters:
    ///   - modules: The paths of libraries, which are copied into the plugins folder.
    ///   - wanted: The port to listen on; 0 for any free port.
    ///   - log: The log of the gateway.
    ///   - loops: The event loops of the connections.
    ///   - server: The server; `nil` for one of HTTP/1.
    ///   - waitsForHost: Whether to wait until the host has started; otherwise only until the gateway listens.
    ///   - configure: Changes the settings of the gateway and the host.
    init(
        _ modules: [String], tracer: any Tracer = NoOpTracer(), port wanted: Int = 0, logger log: Logger? = nil,
        loops: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
        server: Server? = nil, waitsForHost: Bool = true,
        _ configure: (inout GatewayConfiguration, inout HostConfiguration) -> Void = { _, _ in }
    ) async throws {
        folder = try makeFolder()
        let plugins = "\(folder)/plugins"
        try FileManager.default.createDirectory(atPath: plugins, withIntermediateDirectories: false)
        for (number, module) in modules.enumerated() { try copyFile(module, to: "\(plugins)/\(number).so") }
        var host = HostConfiguration(folders: [plugins])
        host.stagingFolder = "\(folder)/staging"
        host.stateFolder = "\(folder)/state"
        host.takesLinkedModules = false
        host.schemes = ["app", "call"]
        var configuration = GatewayConfiguration()
        configuration.callTimeout = .seconds(60)
        configure(&configuration, &host)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        gateway = PluginGateway(PluginHost(host), configuration, tracer: tracer, logger: log ?? logger)
        let (ports, gateway) = (Ports(), gateway)
        self.ports = ports
        let builder =
            try server?.make { gateway.connectionHandler }
            ?? .http1(configuration: .init(additionalChannelHandlers: [gateway.connectionHandler]))
        let application = Application(
            responder: gateway.responder, server: builder,
            configuration: .init(address: .hostname("127.0.0.1", port: wanted)),
            onServerRunning: { channel in ports.port.withLock { $0 = channel.localAddress?.port } },
            eventLoopGroupProvider: .shared(loops), logger: logger)
        let group = ServiceGroup(
            configuration: .init(services: gateway.services(application), logger: logger))
        self.group = group
        running = Task { try await group.run() }
        _ = await becomesTrue { ports.port.withLock { $0 } != nil && (gateway.isReady || !waitsForHost) }
        port = ports.port.withLock { $0 } ?? 0
    }

    var plugins: String { "\(folder)/plugins" }

    func end() async throws {
        await group.triggerGracefulShutdown()
        try await running.value
        try? FileManager.default.removeItem(atPath: folder)
    }

    // MARK: Requests

    typealias Answer = TestClient.Answer

    private var client: TestClient { TestClient(port: port) }

    func request(_ method: String, _ path: String, _ headers: [(String, String)] = []) -> HTTPClientRequest {
        client.request(method, path, headers)
    }

    func ask(
        _ method: String, _ path: String, headers: [(String, String)] = [], body: [UInt8]? = nil
    ) async throws -> Answer {
        try await client.ask(method, path, headers: headers, body: body)
    }

    func get(_ path: String, _ headers: [(String, String)] = []) async throws -> Answer {
        try await client.ask("GET", path, headers: headers)
    }

    /// Calls an action with a JSON body.
    func call(_ path: String, _ json: String, _ headers: [(String, String)] = []) async throws -> Answer {
        try await client.ask(
            "POST", "/call/\(path)", headers: [("Content-Type", "application/json")] + headers, body: Array(json.utf8))
    }
}
