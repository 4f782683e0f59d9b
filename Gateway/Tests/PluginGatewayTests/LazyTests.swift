import Foundation
import PluginABI
import PluginGateway
import PluginHost
import Testing

@Suite struct LazyTests {
    @Test func `modules that start when they are needed are described, and their first call starts them`() async throws
    {
        let folder = try makeFolder()
        var module = CModule(name: "Idle")
        module.isSealed = true
        module.setUp = "note(\"\(folder)/up\", \"x\");"
        module.targets = [
            .init(
                name: "Idle",
                actions: [
                    .init(name: "answer", manifest: "\"remote\": true, ", body: "reply(call, \"yes\");"),
                    .init(
                        name: "watch", manifest: "\"remote\": true, ", parameters: ["then": "object"],
                        body: "reply(call, \"watched\");"),
                ])
        ]
        module.moreManifest = """
            "routes": [{"pattern": "https://*/idle", "action": "Idle/answer"}],
            """
        let other = CModule(name: "Other", isSealed: true)
        var local = CModule(name: "Local", isSealed: true)
        local.targets = [.init(name: "Local", actions: [.init(name: "answer", body: "reply(call, \"yes\");")])]
        let gateway = try await TestGateway([module.build(), other.build(), local.build()]) { configuration, host in
            (configuration.page, host.start) = (.changes, .lazy)
        }
        func metrics() async throws -> String { try await gateway.get("/metrics").text }
        func hasStarted() -> Bool { FileManager.default.fileExists(atPath: "\(folder)/up") }

        #expect(try await gateway.get("/readyz").status == 200)
        #expect(try await metrics().contains("plugin_modules{state=\"registered\"} 3.0\n"))
        let paths = try await gateway.get("/openapi.json").json["paths"]
        #expect(paths?["/call/Idle/answer"] != nil)
        #expect(paths?["/idle"]?["get"] != nil)
        #expect(!hasStarted())
        #expect(try await gateway.call("Idle/nothing", "{}").status == 404)
        #expect(!hasStarted(), "404")
        // Finding out what a URL leads to starts nothing, nor does a call that the guard refuses.
        let found = gateway.gateway.host.resolve("https://a.example/idle", origin: .remote)
        #expect(found.module == "Idle" && found.action == "Idle/answer" && found.error == nil, "\(found)")
        #expect(try await gateway.post("/page/resolve", #"{"url": "call://Idle/answer"}"#).json["module"] == "Idle")
        #expect(try await gateway.ask("PUT", "/idle").status == 405)
        gateway.gateway.host.onRemoteCall { _ in .refuse("Not now.") }
        #expect(try await gateway.get("/idle").status == 403)
        #expect(try await gateway.call("Idle/answer", "{}").status == 403)
        #expect(!hasStarted(), "resolved, or refused")
        gateway.gateway.host.onRemoteCall(nil)

        #expect(try await gateway.get("/idle").text == "\"yes\"")
        #expect(hasStarted())
        #expect(try await gateway.call("Idle/answer", "{}").text == "\"yes\"")
        let events = try await gateway.call("Idle/watch", "{\"then\": \"x\"}", [("Accept", "text/event-stream")])
        #expect(events.text == "event: result\ndata: \"watched\"\n\n")
        #expect(try await gateway.get("/readyz").status == 200)
        let text = try await metrics()
        #expect(text.contains("plugin_modules{state=\"registered\"} 2.0\n"))
        #expect(text.contains("plugin_modules{state=\"active\"} 1.0\n"))
        #expect(text.contains("gateway_calls_total{module=\"Idle\",action=\"Idle/answer\",code=\"ok\"} 2\n"))
        #expect(try await gateway.get("/openapi.json").json["paths"]?["/call/Idle/answer"] != nil)
        let explained = try await gateway.post("/page/resolve", #"{"url": "call://Local/answer", "local": true}"#)
        #expect(try explained.json["module"] == "Local")
        #expect(try await metrics().contains("plugin_modules{state=\"active\"} 2.0\n"))
        try await gateway.end()
    }
}
