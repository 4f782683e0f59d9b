import AsyncHTTPClient
import Foundation
import NIOCore
import PluginABI
import PluginGateway
import PluginHost
import ServiceLifecycle
import Testing

@Suite struct EndTests {
    /// A module whose action replies only when a file exists, and that notes its end.
    static func waiting(_ folder: String) -> CModule {
        var module = CModule(name: "Slow")
        module.targets = [
            .init(
                name: "Slow",
                actions: [
                    .init(
                        name: "wait", manifest: "\"remote\": true, ",
                        body: """
                            note("\(folder)/begun", "x");
                            for (int i = 0; i < 12000 && access("\(folder)/go", F_OK) != 0; i++) usleep(10000);
                            reply(call, "done");
                            """)
                ])
        ]
        module.tearDown = "note(\"\(folder)/down\", \"x\");"
        return module
    }

    @Test func `a call in flight is finished before its module is torn down`() async throws {
        let folder = try makeFolder()
        let gateway = try await TestGateway([try Self.waiting(folder).build()])
        async let answer = gateway.call("Slow/wait", "{}")
        #expect(await becomesTrue { FileManager.default.fileExists(atPath: "\(folder)/begun") })
        async let end: Void = gateway.end()
        #expect(await becomesTrue { !gateway.gateway.isReady })
        #expect(!FileManager.default.fileExists(atPath: "\(folder)/down"))
        #expect(FileManager.default.createFile(atPath: "\(folder)/go", contents: nil))
        #expect(try await answer.text == "\"done\"")
        try await end
        #expect(FileManager.default.fileExists(atPath: "\(folder)/down"))
    }

    @Test func `a call that does not end holds up the end only for a bounded time`() async throws {
        let folder = try makeFolder()
        let gateway = try await TestGateway([try Self.waiting(folder).build()]) { configuration, host in
            configuration.drainTimeout = .milliseconds(200)
            host.shutdownTimeout = .milliseconds(200)
        }
        async let answer = gateway.call("Slow/wait", "{}")
        #expect(await becomesTrue { FileManager.default.fileExists(atPath: "\(folder)/begun") })
        try await gateway.end()
        let failed = try await answer
        #expect(failed.status == 503)
        #expect(failed.code == "hostStopping")
        #expect(FileManager.default.createFile(atPath: "\(folder)/go", contents: nil))
    }

    @Test func `half a body holds up the end only for a bounded time`() async throws {
        let gateway = try await TestGateway(TestGateway.samples) { configuration, _ in
            (configuration.drainTimeout, configuration.bodyTimeout) = (.milliseconds(200), .seconds(600))
        }
        let socket = try RawSocket(port: gateway.port)
        try socket.send(
            "POST /call/C/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "Content-Length: 100000\r\n\r\n{")
        // The gateway has begun to read the body.
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains("gateway_bodies_in_flight 1.0") })
        try await gateway.end()
        let answer = try await onThread { socket.readAll() }
        #expect(answer.hasPrefix("HTTP/1.1 503 "), "\(answer)")
        #expect(answer.contains("hostStopping"))
    }

    @Test func `an answer that nobody reads holds up the end only for a bounded time`() async throws {
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in
            (configuration.bodyLimit, configuration.writeTimeout) = (64 << 20, .seconds(600))
            configuration.drainTimeout = .milliseconds(200)
        }
        let (text, port) = (String(repeating: "x", count: 16 << 20), gateway.port)
        let socket = try await onThread {
            let socket = try RawSocket(port: port, receiveBuffer: 65_536)
            try socket.send(
                "POST /call/Lab/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Content-Length: \(text.utf8.count + 12)\r\n\r\n{\"value\":\"\(text)\"}")
            return socket
        }
        let ended = "gateway_calls_total{module=\"Lab\",action=\"Lab/echo\",code=\"ok\"} 1\n"
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains(ended) })
        try await gateway.end()
        #expect(try await onThread { socket.readAll().utf8.count } < text.utf8.count)
    }

    @Test func `an open event stream does not keep the gateway from ending`() async throws {
        let gateway = try await TestGateway([])
        let response = try await HTTPClient.shared.execute(gateway.request("GET", "/events"), timeout: .seconds(120))
        var parts = response.body.makeAsyncIterator()
        #expect(try await parts.next().map { String(buffer: $0) } == ": open\n\n")
        try await gateway.end()
        while let part = try await parts.next() { #expect(String(buffer: part) == ":\n\n") }
    }

    @Test func `the gateway is not ready first, and still answers during the delay`() async throws {
        let gateway = try await TestGateway(TestGateway.samples) { configuration, _ in
            configuration.drainDelay = .seconds(8)
        }
        #expect(try await gateway.get("/readyz").status == 200)
        await gateway.group.triggerGracefulShutdown()
        #expect(await becomesTrue { !gateway.gateway.isReady })
        #expect(try await gateway.get("/readyz").status == 503)
        #expect(try await gateway.get("/healthz").status == 200)
        #expect(try await gateway.call("C/add", "{\"a\": 1}").text == "2")
        try await gateway.end()
    }
}
