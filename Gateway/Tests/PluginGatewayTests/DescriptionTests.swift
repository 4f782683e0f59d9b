import Foundation
import PluginABI
import PluginGateway
import PluginHost
import Testing

@Suite struct DescriptionTests {
    private func paths(_ gateway: TestGateway) async throws -> [String: Value] {
        try await gateway.get("/openapi.json").json["paths"]?.map ?? [:]
    }

    @Test func `routes of HTTP are paths with parameters`() async throws {
        let json = [("Content-Type", "application/json")]
        let gateway = try await TestGateway([storeModule.build()])
        let document = try await gateway.get("/openapi.json").json
        let paths = document["paths"]?.map ?? [:]
        let own = Set(["/healthz", "/readyz", "/metrics", "/events", "/openapi.json", "/modules.json"])
        #expect(
            Set(paths.keys.filter { !$0.hasPrefix("/call/") }).subtracting(own) == [
                "/items/{id}", "/items/{id}/{size}", "/numbers/{from}.json", "/watch", "/plain", "/bytes", "/maps",
                "/join",
            ])
        #expect(document["x-other-routes"] == ["https://*/files/:id+"])
        // The gateway's own path precedes the route.
        #expect(paths["/healthz"]?["get"]?["tags"] == ["gateway"])

        let item = paths["/items/{id}"]
        let parameters = item?["get"]?["parameters"]?.list ?? []
        #expect(item?["get"]?["summary"] == "An item")
        #expect(parameters.map { $0["name"]?.string } == ["Timeout", "id", "size"])
        #expect(parameters[1]["in"] == "path" && parameters[1]["required"] == true)
        #expect(parameters[2]["in"] == "query" && parameters[2]["required"] == false)
        #expect(parameters[2]["schema"]?["$ref"] == "#/components/schemas/Store.Size")
        #expect(parameters[2]["schema"]?["default"] == "small")
        let body = item?["post"]?["requestBody"]
        #expect(body?["required"] == false)
        #expect(body?["content"]?["application/json"]?["schema"]?["properties"]?.map?.keys.sorted() == ["size"])
        #expect(paths["/items/{id}/{size}"]?["get"]?["parameters"]?.list?.last?["in"] == "path")

        // A list has all parameters in order, and after them the rest.
        #expect(try await gateway.ask("POST", "/maps", headers: json, body: Array("[{}]".utf8)).text == "0")
        func lists(_ path: String) -> Value? {
            paths[path]?["post"]?["requestBody"]?["content"]?["application/json"]?["schema"]?["anyOf"]?[1]
        }
        #expect(lists("/maps")?["maxItems"] == 1 && lists("/items/{id}") == nil)
        #expect(try await gateway.call("Store/filter", "[\"x\", null]").text == "1")
        #expect(lists("/call/Store/filter")?["items"] == ["type": ["object", "null"]])

        // A parameter that a query cannot carry requires a body.
        #expect(paths["/maps"]?["get"] == nil)
        #expect(paths["/maps"]?["post"] != nil)
        #expect(try await gateway.get("/maps").header("Allow") == "POST")
        #expect(paths["/watch"]?["get"]?["servers"] == [["url": "https://own.example"]])
        #expect(paths["/plain"]?["get"]?["servers"] == [["url": "http://own.example"]])
        #expect(paths["/items/{id}"]?["get"]?["servers"] == nil)
        try await gateway.end()
    }

    @Test func `records, enumerations and results have schemas`() async throws {
        let gateway = try await TestGateway([storeModule.build()])
        let document = try await gateway.get("/openapi.json").json
        let schemas = document["components"]?["schemas"]
        #expect(schemas?["Store.Size"]?["enum"] == ["small", "large"])
        let item = schemas?["Store.Item"]
        #expect(item?["description"] == "What is sold")
        #expect(item?["required"] == ["id", "size", "tags"])
        #expect(item?["properties"]?["tags"]?["items"]?["type"] == "string")
        func content(_ action: String) -> Value? {
            document["paths"]?["/call/Store/\(action)"]?["post"]?["responses"]?["200"]?["content"]
        }
        let reference: Value = ["$ref": "#/components/schemas/Store.Item"]
        #expect(content("item")?["application/json"]?["schema"] == reference)
        #expect(content("find")?["application/json"]?["schema"]?["anyOf"] == [reference, ["type": "null"]])
        #expect(content("count") == ["application/jsonl": [:]])
        #expect(content("bytes") == ["application/octet-stream": [:]])
        #expect(content("watch")?.map?.keys.sorted() == ["application/json", "text/event-stream"])
        // Objects that are not cursors cannot leave the program.
        #expect(content("page") == nil)
        let failure = document["paths"]?["/call/Store/item"]?["post"]?["responses"]?["429"]
        #expect(failure?["content"]?["application/problem+json"] != nil)
        #expect(failure?["description"]?.string?.contains("`moduleBusy`") == true)
        try await gateway.end()
    }

    @Test(.disabled(if: ProcessInfo.processInfo.environment["GATEWAY_SKIPS_VALIDATION"] != nil))
    func `the description is valid`() async throws {
        let modules = try [labModule.build(), storeModule.build()]
        let gateway = try await TestGateway(TestGateway.samples + modules)
        let file = try makeFolder() + "/openapi.json"
        try Data(try await gateway.get("/openapi.json").body).write(to: URL(filePath: file))
        let result = try await Program.run(["openapi-spec-validator", file])
        #expect(result.status == 0, "\(result.output)")
        try await gateway.end()
    }

    @Test func `the description has the types that modules in Swift derive from their code`() async throws {
        let gateway = try await TestGateway(TestGateway.samples) { _, host in
            host.isolation.workerPath = "\(buildFolder)/pluginhost-gateway"
        }
        // Several requests wait for the same processes, but not for long.
        let requests = (0..<4).map { _ in Task { try await gateway.get("/openapi.json").status } }
        for request in requests { #expect(try await request.value == 200) }
        #expect(
            await becomesTrue {
                let description = try await gateway.get("/openapi.json").json
                return description["components"]?["schemas"]?["ModuleA.Detail"] != nil
                    // Its result is known to be an object that cannot be sent.
                    && description["paths"]?["/call/B/basket"] == nil
            })
        let description = try await gateway.get("/openapi.json").json
        #expect(description["components"]?["schemas"]?["ModuleA.Detail"]?["required"] == ["title", "page"])
        let result = description["paths"]?["/call/A/fetchDetail"]?["post"]?["responses"]?["200"]
        #expect(result?["content"]?["application/json"]?["schema"]?["$ref"] == "#/components/schemas/ModuleA.Detail")
        try await gateway.end()
    }

    /// The settings that README names.
    private static let settings = URL(filePath: #filePath).appending(path: "../../../schemathesis.toml").standardized
        .path

    /// Requests as the description allows them, and others that it forbids.
    @Test(.disabled(if: ProcessInfo.processInfo.environment["GATEWAY_SKIPS_SCHEMATHESIS"] != nil))
    func `schemathesis finds no violation of the description`() async throws {
        let folder = try makeFolder()
        let plugins = "\(folder)/plugins"
        try FileManager.default.createDirectory(atPath: plugins, withIntermediateDirectories: false)
        for (number, module) in (TestGateway.samples + [try storeModule.build()]).enumerated() {
            try copyFile(module, to: "\(plugins)/\(number).so")
        }
        let program = try Program(["serve", "--plugins", plugins, "--listen", "127.0.0.1:0"])
        let port = try #require(await program.port(), "\(program.errorText)")
        let client = TestClient(port: port)
        #expect(await becomesTrue { try await client.ask("GET", "/readyz").status == 200 })
        let result = try await Program.run([
            "env", "-C", folder, "schemathesis", "--config-file", Self.settings, "run",
            "http://127.0.0.1:\(port)/openapi.json",
            // The stream of events does not end, and this machine cannot resolve the host of the other two.
            "--exclude-path", "/events", "--exclude-path", "/watch", "--exclude-path", "/plain", "--no-color",
            "--phases",
            "examples,coverage,fuzzing", "--max-examples", "15", "--seed", "7",
            "--workers", "2", "--generation-deterministic",
        ])
        #expect(result.status == 0, "\(result.output)")
        program.send(SIGTERM)
        #expect(await program.end() == 0)
    }

    @Test func `the remote actions are offered to other hosts as the manifests declare them`() async throws {
        let gateway = try await TestGateway([labModule.build(), CModule(name: "Local").build()])
        let answer = try await gateway.get("/modules.json")
        #expect(answer.header("Content-Type") == "application/json")
        let modules = try answer.json["modules"]?.list ?? []
        // Modules and actions that are not remote do not exist.
        #expect(modules.map { $0["name"] } == ["Lab"])
        let actions = modules[0]["targets"]?[0]?["actions"]?.list ?? []
        #expect(actions.first?["name"] == "echo" && !actions.contains { $0["name"] == "secret" })
        #expect(actions.first { $0["name"] == "demanding" }?["demands"] == ["login"])
        #expect(modules[0]["types"]?.list?.count == 2)
        #expect(modules[0]["routes"] == nil && actions.allSatisfy { $0["remote"] == nil })
        let tag = try #require(answer.header("ETag"))
        let same = try await gateway.get("/modules.json", [("If-None-Match", "\"x\", \(tag)")])
        #expect(same.status == 304 && same.body.isEmpty)
        #expect(same.header("ETag") == tag)
        #expect(try await gateway.get("/modules.json", [("If-None-Match", "W/\(tag)")]).status == 304)
        try CModule(name: "Lab", version: "1.0.1").build(into: gateway.plugins, as: "0.so")
        #expect(
            await becomesTrue { try await gateway.get("/modules.json", [("If-None-Match", tag)]).status == 200 })
        #expect(try await gateway.get("/modules.json").text == "{\"modules\":[]}")
        try await gateway.end()
    }

    @Test func `only what a mount needs of values and types is offered`() async throws {
        var module = CModule(name: "Shop")
        let names = ["find", "list", "local", "notFound"]
        module.targets = [.init(name: "Shop", actions: names.map { .init(name: $0, body: "reply(call, \"\");") })]
        module.types = ["Items", "Editor"].map { name in
            (name, ["next", "save"].map { .init(name: $0, body: "reply(call, \"\");") })
        }
        module.manifest = """
            {"name": "Shop", "version": "1.0.0",
             "values": [{"name": "Order", "cases": ["title", "date"]},
                        {"name": "Item", "fields": [{"name": "parts", "type": "map<list<Part>>?"}]},
                        {"name": "Part", "fields": [{"name": "id", "type": "string"}]},
                        {"name": "Salary", "fields": [{"name": "amount", "type": "int"}]},
                        {"name": "Draft", "fields": [{"name": "salary", "type": "Salary"}]}],
             "types": [{"name": "Items", "actions": [{"name": "next", "result": "Item?", "summary": "Next"},
                                                     {"name": "save", "parameters": [{"name": "d", "type": "Draft"}]}]},
                       {"name": "Editor", "actions": [{"name": "next", "result": "Draft"}, {"name": "save"}]}],
             "targets": [{"name": "Shop", "actions": [
                {"name": "find", "remote": true, "parameters": [{"name": "order", "type": "Order"}]},
                {"name": "list", "remote": true, "result": "Items"},
                {"name": "local", "result": "Editor", "parameters": [{"name": "d", "type": "Draft"}]},
                {"name": "notFound", "remote": true, "rest": true}]}]}
            """
        let gateway = try await TestGateway([module.build()])
        let answer = try await gateway.get("/modules.json")
        let offer = try answer.json["modules"]?[0]
        #expect(offer?["values"]?.list?.map { $0["name"] } == ["Order", "Item", "Part"], "\(answer.text)")
        #expect(offer?["types"] == [["name": "Items", "actions": [["name": "next", "result": "Item?"]]]])
        #expect(offer?["targets"]?[0]?["actions"]?.list?.map { $0["name"] } == ["find", "list"])
        #expect(try await gateway.get("/openapi.json").json["paths"]?["/call/Shop/notFound"] == nil)
        // The fallback of a target with other actions does not answer.
        #expect(try await gateway.call("Shop/other", "{}").code == "noRoute")
        try await gateway.end()
    }
}
