import Foundation
import Hummingbird
import Logging
import PluginGateway
import PluginHost
import ServiceLifecycle
import UnixSignals

/// The measured servers, in one process: the gateway, and a router whose routes answer the same without it.
enum Server {
    private struct Item: ResponseEncodable {
        let id: Int
        let name: String
        let size: Int
    }

    private struct Asked: Decodable {
        let id: Int
        let size: Int?
    }

    static func run(folder: String) async throws {
        var logger = Logger(label: "bench")
        logger.logLevel = .critical
        var host = HostConfiguration(folders: [folder])
        host.schemes = ["app", "call"]
        host.takesLinkedModules = false
        let gateway = PluginGateway(PluginHost(host))

        let router = Router(context: GatewayContext.self)
        router.get("shop/:id") { _, context in
            Item(id: try context.parameters.require("id", as: Int.self), name: "apple", size: 1)
        }
        router.post("call/Shop/item") { request, context in
            let asked = try await request.decode(as: Asked.self, context: context)
            return Item(id: asked.id, name: "apple", size: asked.size ?? 1)
        }
        let bare = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in say("bare", channel.localAddress?.port) }, logger: logger)
        let served = Application(
            responder: gateway.responder,
            server: .http1(configuration: .init(additionalChannelHandlers: [gateway.connectionHandler])),
            configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in say("gateway", channel.localAddress?.port) }, logger: logger)
        try await ServiceGroup(
            services: gateway.services(served) + [bare], gracefulShutdownSignals: [.sigterm], logger: logger
        ).run()
    }

    private static func say(_ name: String, _ port: Int?) {
        print("\(name) \(port ?? 0)")
        fflush(nil)
    }
}
