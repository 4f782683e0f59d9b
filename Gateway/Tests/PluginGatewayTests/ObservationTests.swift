import Foundation
import Hummingbird
import InMemoryTracing
import Logging
import PluginABI
import PluginGateway
import PluginHost
import ServiceLifecycle
import Synchronization
import Testing

@Suite struct ObservationTests {
    @Test func `a call has a span that continues the trace of its request`() async throws {
        let tracer = InMemoryTracer()
        let gateway = try await TestGateway(TestGateway.samples, tracer: tracer)
        let trace = [(InMemoryTracer.traceIDKey, "trace-7"), (InMemoryTracer.spanIDKey, "span-7")]
        _ = try await gateway.call("C/add", "{\"a\": 1}", trace)
        _ = try await gateway.call("C/add", "{}")
        let spans = tracer.finishedSpans
        #expect(spans.map(\.operationName) == ["C/add", "C/add"])
        let (first, second) = (try #require(spans.first), try #require(spans.last))
        #expect(first.traceID == "trace-7")
        #expect(first.parentSpanID == "span-7")
        #expect(first.kind == .server)
        #expect(first.attributes["plugin.module"]?.toSpanAttribute() == .string("ModuleC"))
        #expect(first.attributes["http.response.status_code"]?.toSpanAttribute() == .int64(200))
        #expect(second.traceID != "trace-7")
        #expect(second.attributes["error.type"]?.toSpanAttribute() == .string("missingParameter"))
        #expect(second.errors.count == 1)
        try await gateway.end()
    }

    @Test func `what modules log comes with module and call`() async throws {
        let lines = Lines()
        let gateway = try await TestGateway(TestGateway.samples) { _, host in
            host.log(to: Logger(label: "plugins") { _ in LineHandler(lines: lines) })
        }
        try await gateway.end()
        let line = try #require(lines.all.first { $0.message.contains("The shop is open.") })
        #expect(line.level == .info)
        #expect(line.metadata["module"] == "ModuleA")
        #expect(line.metadata["call"] == "@setUp")
    }

    @Test func `it is mounted in the router of another program in two lines`() async throws {
        let folder = try makeFolder()
        for (number, module) in TestGateway.samples.enumerated() { try copyFile(module, to: "\(folder)/\(number).so") }
        var host = HostConfiguration(folders: [folder])
        host.takesLinkedModules = false
        var configuration = GatewayConfiguration()
        configuration.prefix = "/plugins"
        let router = Router(context: GatewayContext.self)
        router.get("hello") { _, _ in "hello" }
        router.get("/") { _, _ in "home" }

        let gateway = PluginGateway(PluginHost(host), configuration)
        gateway.mount(in: router)

        let port = Port()
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let application = Application(
            router: router,
            server: .http1(configuration: .init(additionalChannelHandlers: [gateway.connectionHandler])),
            configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in port.number.withLock { $0 = channel.localAddress?.port } }, logger: logger)
        let group = ServiceGroup(
            configuration: .init(services: gateway.services(application), logger: logger))
        let running = Task { try await group.run() }
        #expect(await becomesTrue { gateway.isReady && port.number.withLock { $0 } != nil })
        let client = TestClient(port: port.number.withLock { $0 } ?? 0)
        #expect(try await client.ask("GET", "/hello").text == "hello")
        let sum = try await client.ask(
            "POST", "/plugins/call/C/add", headers: [("Content-Type", "application/json")], body: Array("[1]".utf8))
        #expect(sum.text == "2")
        #expect(try await client.ask("GET", "/plugins/readyz").status == 200)
        #expect(try await client.ask("GET", "/plugins/").header("Content-Type") == "text/html; charset=utf-8")
        #expect(try await client.ask("GET", "/").text == "home")
        #expect(try await client.ask("PATCH", "/plugins/call/C/add").status == 405)
        #expect(try await client.ask("GET", "/call/C/add").status == 404)
        let document = try await client.ask("GET", "/plugins/openapi.json").json
        #expect(document["servers"] == [["url": "/plugins"]])
        await group.triggerGracefulShutdown()
        try await running.value
    }
}

private final class Port: Sendable {
    let number = Mutex<Int?>(nil)
}
