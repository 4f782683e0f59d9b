import PluginGateway
import PluginHost
import Testing

@Suite struct RouteTests {
    private func gateway() async throws -> TestGateway {
        try await TestGateway([labModule.build()]) { configuration, _ in configuration.hosts = ["own.example"] }
    }

    @Test func `routes of modules are served by path, with queries and bodies`() async throws {
        let gateway = try await gateway()
        #expect(try await gateway.get("/shop/a%2Fb%20c").text == "[\"a/b c\",1]")
        #expect(try await gateway.get("/shop/x?size=7&utm_source=y").text == "[\"x\",7]")
        #expect(try await gateway.get("/shop/x?size=seven").code == "mistypedParameter")
        let posted = try await gateway.ask(
            "POST", "/shop/x?size=7", headers: [("Content-Type", "application/json")], body: Array("{\"size\": 8}".utf8)
        )
        #expect(posted.text == "[\"x\",8]")
        let head = try await gateway.ask("HEAD", "/shop/x")
        #expect(head.status == 200)
        #expect(head.body.isEmpty)
        let deleted = try await gateway.ask("DELETE", "/shop/x")
        #expect(deleted.status == 405)
        #expect(deleted.header("Allow") == "GET, HEAD, POST")
        try await gateway.end()
    }

    @Test func `routes of a host are served under that host only`() async throws {
        let gateway = try await gateway()
        #expect(try await gateway.get("/only", [("Host", "OWN.example:80")]).text == "[\"own\",2]")
        #expect(try await gateway.get("/only").code == "noRoute")
        #expect(try await gateway.get("/only", [("Host", "other.example")]).status == 421)
        #expect(try await gateway.get("/only", [("Host", "own.example@evil")]).status == 400)
        try await gateway.end()
    }

    @Test func `routes do not take over the path of calls`() async throws {
        var module = CModule(name: "Any")
        let remote = "\"remote\": true, "
        module.targets = [
            .init(
                name: "Any",
                actions: [
                    .init(name: "own", manifest: remote, body: "reply(call, \"own\");"),
                    .init(name: "taken", manifest: remote, body: "reply(call, \"taken\");"),
                    .init(
                        name: "item", manifest: remote, parameters: ["id": "string"],
                        body: "reply_value(call->token, arguments[0]);"),
                ])
        ]
        module.moreManifest = """
            "routes": [
                {"pattern": "//Any/taken", "action": "Any/item", "defaults": {"id": "route"}},
                {"pattern": "//shop/:id", "action": "Any/item"}, {"pattern": "//Lab/:id", "action": "Any/item"}
            ],
            """
        let gateway = try await TestGateway([module.build(), labModule.build()])
        #expect(try await gateway.call("Any/own", "{}").text == "\"own\"")
        for path in ["Any/taken", "Any/other", "shop/five", "Lab/other", "Lab/secret"] {
            let answer = try await gateway.call(path, "{}")
            #expect(answer.code == "noRoute", "\(path): \(answer.text)")
        }
        try await gateway.end()
    }

    @Test func `what does not exist, or is not remote, is not found`() async throws {
        let gateway = try await gateway()
        for path in ["/hidden", "/shop", "/shop/", "//shop/x", "/nothing?x=1"] {
            let answer = try await gateway.rawGet(path)
            #expect(answer.hasPrefix("HTTP/1.1 404 ") && answer.contains("\"code\":\"noRoute\""), "\(path): \(answer)")
        }
        #expect(try await gateway.rawGet("/shop/../shop/x").hasSuffix("[\"x\",1]"))
        for path in ["/shop/%zz", "/shop/x?size=%1", "*", "/shop/a#b"] {
            #expect(try await gateway.rawGet(path).hasPrefix("HTTP/1.1 400 "), "\(path)")
        }
        try await gateway.end()
    }
}
