import Foundation
import PluginABI
import PluginGateway
import PluginHost
import Testing

/// Requests that arrive before the host has started.
@Suite struct StartingTests {
    @Test func `calls are refused until the modules of the first scan have started`() async throws {
        let folder = try makeFolder()
        var module = CModule(name: "Slow")
        module.setUp = """
            note("\(folder)/begun", "x");
            for (int i = 0; i < 12000 && access("\(folder)/go", F_OK) != 0; i++) usleep(10000);
            """
        module.targets = [
            .init(
                name: "Slow",
                actions: [.init(name: "answer", manifest: "\"remote\": true, ", body: "reply(call, \"yes\");")])
        ]
        module.moreManifest = """
            "routes": [{"pattern": "https://*/slow", "action": "Slow/answer"}],
            """
        let gateway = try await TestGateway([module.build()], waitsForHost: false) { _, host in
            (host.hookPatience, host.hookTimeout) = (.seconds(600), .seconds(600))
        }
        #expect(await becomesTrue { FileManager.default.fileExists(atPath: "\(folder)/begun") })
        #expect(!gateway.gateway.hasStarted && !gateway.gateway.isReady)
        #expect(try await gateway.get("/healthz").status == 200)
        #expect(try await gateway.get("/readyz").status == 503)
        for answer in [try await gateway.call("Slow/answer", "{}"), try await gateway.get("/slow")] {
            #expect(answer.status == 503 && answer.code == "hostStarting", "\(answer.text)")
            #expect(answer.header("Retry-After") == "1")
        }
        #expect(FileManager.default.createFile(atPath: "\(folder)/go", contents: nil))
        #expect(await becomesTrue { try await gateway.get("/readyz").status == 200 })
        #expect(try await gateway.call("Slow/answer", "{}").text == "\"yes\"")
        #expect(try await gateway.get("/slow").text == "\"yes\"")
        try await gateway.end()
    }
}
