import Foundation
import Logging
import PluginABI
import PluginGateway
import PluginHost
import Testing

/// Sends requests as the page of a gateway does.
extension TestGateway {
    func post(_ path: String, _ json: String, _ headers: [(String, String)] = []) async throws -> Answer {
        try await ask(
            "POST", path, headers: [("Content-Type", "application/json")] + headers, body: Array(json.utf8))
    }

    func state(of module: String) async throws -> Value? {
        try await get("/page/state").json["modules"]?.list?.first { $0["name"]?.string == module }
    }
}

@Suite struct PageTests {
    private func gateway(
        _ page: GatewayConfiguration.Page, _ modules: [String] = TestGateway.samples
    ) async throws -> TestGateway {
        try await TestGateway(modules) { configuration, _ in configuration.page = page }
    }

    private static let files =
        ["/", "/page/page.css", "/page/icon.svg"]
        + [
            "answers", "changes", "connection", "details", "events", "forms", "lists", "log", "modules", "page",
            "plots",
            "resolve", "routes", "session", "state", "summary", "text",
        ].map { "/page/\($0).js" }

    @Test func `the page has a strict policy, and loads nothing from other hosts`() async throws {
        let gateway = try await gateway(.reads)
        for path in Self.files + ["/page/state", "/page/statistics", "/page/routes", "/page/module?name=ModuleC"] {
            let answer = try await gateway.get(path)
            #expect(answer.status == 200, "\(path)")
            let policy = answer.header("Content-Security-Policy") ?? ""
            for rule in [
                "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
                "form-action 'none'", "frame-ancestors 'none'",
            ] { #expect(policy.split(separator: ";").contains { $0.drop { $0 == " " } == rule }, "\(path) \(rule)") }
            #expect(answer.header("X-Content-Type-Options") == "nosniff")
            #expect(answer.header("Referrer-Policy") == "no-referrer")
            #expect(answer.header("Cache-Control") == "no-store")
            #expect(!answer.text.contains("https://"), "\(path)")
            #expect(try await gateway.ask("HEAD", path).body.isEmpty)
            #expect(try await gateway.ask("PUT", path).status == 405)
        }
        #expect(try await gateway.get("/").header("Content-Type") == "text/html; charset=utf-8")
        #expect(try await gateway.get("/page/page.js").header("Content-Type") == "text/javascript; charset=utf-8")
        #expect(try await gateway.get("/page/other").status == 404)
        #expect(try await gateway.get("/page/../page/page.js").status == 404)
        #expect(try await gateway.get("/", [("Host", "evil.example")]).status == 421)
        // A link from elsewhere opens the page, but does not get data.
        let link = [("Sec-Fetch-Site", "cross-site")]
        #expect(try await gateway.get("/", link).status == 200)
        #expect(try await gateway.get("/page/state", link).status == 403)
        try await gateway.end()
    }

    @Test func `its files need no token, everything else does`() async throws {
        let file = try makeFolder() + "/tokens"
        try Data("0123456789abcdef\n".utf8).write(to: URL(filePath: file))
        chmod(file, 0o600)
        let access = GatewayConfiguration.Access.tokens(try BearerTokens(file: file))
        let gateway = try await TestGateway(TestGateway.samples) { configuration, _ in
            (configuration.access, configuration.page) = (access, .changes)
        }
        for path in Self.files { #expect(try await gateway.get(path).status == 200, "\(path)") }
        for path in ["state", "statistics", "routes", "module?name=ModuleC", "other"] {
            #expect(try await gateway.get("/page/\(path)").status == 401, "\(path)")
        }
        for path in ["resolve", "remove", "rollback", "retry"] {
            #expect(try await gateway.post("/page/\(path)", "{}").status == 401, "\(path)")
        }
        let token = [("Authorization", "Bearer 0123456789abcdef")]
        #expect(try await gateway.get("/page/state", token).status == 200)
        // A token does not change that.
        let foreign = token + [("Origin", "https://evil.example")]
        #expect(try await gateway.post("/page/remove", #"{"module": "ModuleC"}"#, foreign).status == 403)
        try await gateway.end()
    }

    @Test func `the program prints the address of the page`() async throws {
        let program = try Program(["serve", "--plugins", try makeFolder(), "--listen", "127.0.0.1:0"])
        let port = try #require(await program.port(), "\(program.errorText)")
        #expect(await becomesTrue { program.text.contains("Page: http://127.0.0.1:\(port)/\n") })
        program.send(SIGTERM)
        #expect(await program.end() == 0)
        let both = try Program(["serve", "--plugins", try makeFolder(), "--no-page", "--allow-changes"])
        #expect(await both.end() == 64)
    }

    @Test func `pages of other origins get none of its data, whatever CORS allows them`() async throws {
        let cors = try #require(CORS(origins: ["https://shop.example"]))
        let gateway = try await TestGateway(TestGateway.samples) { configuration, _ in
            (configuration.cors, configuration.page) = (cors, .changes)
        }
        let shop = [("Origin", "https://shop.example"), ("Sec-Fetch-Site", "cross-site")]
        #expect(try await gateway.get("/openapi.json", shop).status == 200)
        for path in ["state", "statistics", "routes", "module?name=ModuleC"] {
            #expect(try await gateway.get("/page/\(path)", shop).status == 403, "\(path)")
        }
        #expect(try await gateway.post("/page/remove", #"{"module": "ModuleC"}"#, shop).status == 403)
        let own = [("Origin", "http://127.0.0.1:\(gateway.port)"), ("Sec-Fetch-Site", "same-origin")]
        #expect(try await gateway.get("/page/state", own).status == 200)
        #expect(try await gateway.state(of: "ModuleC")?["state"] == "active")
        try await gateway.end()
    }

    @Test func `without a page, its paths belong to the modules`() async throws {
        var module = CModule(name: "Site")
        module.targets = [
            .init(
                name: "Site",
                actions: [.init(name: "home", manifest: "\"remote\": true, ", body: "reply(call, \"home\");")])
        ]
        module.moreManifest = """
            "routes": [
                {"pattern": "http://*/", "action": "Site/home"},
                {"pattern": "http://*/page/state", "action": "Site/home"}
            ],
            """
        let gateway = try await gateway(.off, [module.build()])
        for path in ["/", "/page/state"] { #expect(try await gateway.get(path).text == "\"home\"", "\(path)") }
        #expect(try await gateway.get("/page/page.js").status == 404)
        try await gateway.end()
    }

    @Test func `the state has modules, generations, and why something does not serve`() async throws {
        var broken = CModule(name: "Broken")
        broken.code = "static const char reason[] = \"<b>No\\u202e way</b>\";"
        broken.setUp = "return refuse(call, reason);"
        let gateway = try await gateway(.reads, TestGateway.samples + [broken.build()])
        let state = try await gateway.get("/page/state").json
        #expect(state["allowsChanges"] == false && state["ready"] == true)
        let sample = try await gateway.state(of: "ModuleC")
        #expect(sample?["state"] == "active" && sample?["version"]?.string?.isEmpty == false)
        #expect(sample?["since"]?.int ?? 0 > 1_700_000_000_000)
        #expect(state["generations"]?.list?.contains { $0["number"] == sample?["generation"] } == true)
        let failed = try await gateway.state(of: "Broken")
        #expect(failed?["state"] == "failed")
        #expect(failed?["error"]?["message"]?.string?.contains("<b>No\u{202e} way</b>") == true)
        // Nor does the text contain characters that a terminal would obey.
        #expect(try await gateway.get("/page/state").text.contains("\u{202e}") == false)
        _ = try await gateway.call("C/add", "{\"a\": 1}")
        let figures = try await gateway.get("/page/statistics").json["actions"]?.list?.first { $0.list?[1] == "C/add" }
        #expect(figures?.list?.prefix(4) == ["ModuleC", "C/add", 1, 0] && figures?.list?[7] == 1)
        try await gateway.end()
    }

    @Test func `forms get what the manifest declares, kept versions, and routes`() async throws {
        let lab = try labModule.build()
        let gateway = try await gateway(.reads, [lab])
        let module = try await gateway.get("/page/module?name=Lab").json
        let actions = module["targets"]?.list?.first?["actions"]?.list ?? []
        let number = actions.first { $0["name"] == "number" }
        #expect(number?["remote"] == true)
        #expect(number?["parameters"]?.list?.first?["type"] == "int")
        #expect(actions.first { $0["name"] == "secret" }?["remote"] == false)
        #expect(module["kept"] == [])
        #expect(try await gateway.get("/page/module?name=None").code == "unknownModule")
        #expect(try await gateway.get("/page/module").code == "missingParameter")
        let routes = try await gateway.get("/page/routes").json["routes"]?.list ?? []
        #expect(routes.contains { $0["pattern"] == "https://*/shop/:id" && $0["action"] == "Lab/item" })
        try await gateway.end()
    }

    @Test func `ten thousand routes are listed`() async throws {
        let gateway = try await gateway(.reads)
        try gateway.gateway.host.addRoutes((0..<10_000).map { ("app://shop/\($0)/:id", "C/add") })
        let routes = try await gateway.get("/page/routes").json["routes"]?.list ?? []
        #expect(routes.count >= 10_000)
        try await gateway.end()
    }

    @Test func `a URL is explained as for a caller from outside`() async throws {
        let gateway = try await gateway(.reads, [labModule.build()])
        let found = try await gateway.post("/page/resolve", #"{"url": "https://a.example/shop/7"}"#).json
        #expect(found["action"] == "Lab/item" && found["route"] == "https://*/shop/:id")
        #expect(found["parameters"]?.string?.contains("\"id\":\"7\"") == true)
        let hidden = try await gateway.post("/page/resolve", #"{"url": "https://a.example/hidden"}"#).json
        #expect(hidden["error"]?["code"] == "noRoute")
        let local = #"{"url": "https://a.example/hidden", "local": true}"#
        #expect(try await gateway.post("/page/resolve", local).code == "forbidden")
        for (body, code) in [
            ("[]", "invalidValue"), ("{}", "missingParameter"), (#"{"url": 1}"#, "mistypedParameter"),
            (#"{"url": "x", "more": 1}"#, "unknownParameter"), ("{", "invalidValue"),
        ] { #expect(try await gateway.post("/page/resolve", body).code == code, "\(body)") }
        #expect(try await gateway.get("/page/resolve").status == 405)
        let text = [("Content-Type", "text/plain")]
        #expect(try await gateway.ask("POST", "/page/resolve", headers: text, body: [0x7B, 0x7D]).status == 415)
        try await gateway.end()
    }

    @Test func `a page that only shows changes nothing`() async throws {
        let gateway = try await gateway(.reads)
        for path in ["remove", "rollback", "retry"] {
            for isDryRun in [true, false] {
                let answer = try await gateway.post("/page/\(path)", "{\"module\": \"C\", \"dryRun\": \(isDryRun)}")
                #expect(answer.code == "forbidden")
                #expect(try answer.json["detail"]?.string?.contains("--allow-changes") == true)
            }
        }
        #expect(try await gateway.state(of: "ModuleC")?["state"] == "active")
        try await gateway.end()
    }

    @Test func `a module is removed and put back, after a look at what that does`() async throws {
        let gateway = try await gateway(.changes)
        let dry = try await gateway.post("/page/remove", #"{"module": "ModuleC", "dryRun": true}"#).json
        #expect(dry["dryRun"] == true)
        let steps = try #require(dry["steps"]?.list)
        #expect(steps.contains { $0.string?.hasPrefix("stops ModuleC ") == true })
        #expect(try await gateway.state(of: "ModuleC")?["state"] == "active")
        for header in [("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site")] {
            #expect(try await gateway.post("/page/remove", #"{"module": "ModuleC"}"#, [header]).status == 403)
        }
        // The module has changed in the meantime.
        let old = #"{"module": "ModuleC", "expected": ["something else"]}"#
        #expect(try await gateway.post("/page/remove", old).code == "conflict")
        #expect(try await gateway.call("C/add", "{\"a\": 1}").status == 200)
        let body = Value.map(["module": "ModuleC", "expected": .list(steps)]).json
        #expect(try await gateway.post("/page/remove", body).status == 200)
        #expect(try await gateway.call("C/add", "{\"a\": 1}").status == 404)
        #expect(try await gateway.get("/page/module?name=ModuleC").json["kept"]?.list?.count == 1)
        let none = try await gateway.post("/page/rollback", #"{"module": "ModuleB"}"#)
        #expect(none.status == 404 && none.code == "noVersionKept", "\(none.text)")
        let back = try await gateway.post("/page/rollback", #"{"module": "ModuleC", "dryRun": true}"#).json["steps"]
        let again = Value.map(["module": "ModuleC", "expected": back ?? .null]).json
        #expect(try await gateway.post("/page/rollback", again).status == 200)
        #expect(await becomesTrue { try await gateway.call("C/add", "{\"a\": 1}").status == 200 })
        #expect(try await gateway.post("/page/remove", #"{"module": "None"}"#).code == "unknownModule")
        try await gateway.end()
    }

    @Test func `the page and the log show who changed what`() async throws {
        let file = try makeFolder() + "/tokens"
        try Data("ada 0123456789abcdef\nfedcba9876543210\n".utf8).write(to: URL(filePath: file))
        chmod(file, 0o600)
        let access = GatewayConfiguration.Access.tokens(try BearerTokens(file: file))
        let lines = Lines()
        let log = Logger(label: "changes") { _ in LineHandler(lines: lines) }
        let gateway = try await TestGateway(TestGateway.samples, logger: log) { configuration, _ in
            (configuration.access, configuration.page) = (access, .changes)
        }
        let ada = [("Authorization", "Bearer 0123456789abcdef")]
        let other = [("Authorization", "Bearer fedcba9876543210")]
        let dry = #"{"module": "ModuleC", "dryRun": true}"#
        #expect(try await gateway.post("/page/remove", dry, ada).status == 200)
        #expect(try await gateway.post("/page/remove", #"{"module": "ModuleC", "force": true}"#, ada).status == 200)
        #expect(try await gateway.post("/page/rollback", #"{"module": "No\nne", "version": "7"}"#, other).status == 404)
        let changes = try await gateway.get("/page/state", ada).json["changes"]?.list ?? []
        #expect(changes.map { $0["kind"] } == ["rollback", "remove"])
        #expect(changes.map { $0["caller"] } == [nil, "ada"])
        #expect(changes.map { $0["address"] } == ["127.0.0.1", "127.0.0.1"])
        #expect(changes.map { $0["module"] } == ["No\nne", "ModuleC"])
        #expect(changes.first?["version"] == "7" && changes.first?["error"]?["code"] != nil)
        #expect(changes.last?["force"] == true && changes.last?["error"] == nil)
        #expect(changes.last?["time"]?.int ?? 0 > 1_700_000_000_000)
        #expect(lines.all.map(\.level) == [.notice, .notice])
        let metadata = lines.all.map(\.metadata)
        #expect(metadata.first?["caller"] == "ada" && metadata.first?["module"] == "ModuleC")
        #expect(metadata.first?["change"] == "remove" && metadata.first?["result"] == "done")
        // A name cannot begin a new line.
        #expect(metadata.last?["module"] == "No\u{FFFD}ne" && metadata.last?["caller"] == "unnamed")
        // The last hundred are kept.
        for _ in 0..<100 { _ = try await gateway.post("/page/retry", #"{"module": "None"}"#, ada) }
        let last = try await gateway.get("/page/state", ada).json["changes"]?.list ?? []
        #expect(last.count == 100 && last.allSatisfy { $0["kind"] == "retry" })
        try await gateway.end()
    }

    @Test func `of two simultaneous requests to remove a module, one succeeds`() async throws {
        let gateway = try await gateway(.changes)
        async let one = gateway.post("/page/remove", #"{"module": "ModuleC"}"#)
        async let other = gateway.post("/page/remove", #"{"module": "ModuleC"}"#)
        let answers = try await [one.status, other.status]
        #expect(answers.sorted() == [200, 404])
        try await gateway.end()
    }

    @Test func `a module that has failed is tried again`() async throws {
        let file = try makeFolder() + "/there"
        var module = CModule(name: "Late")
        module.setUp = "if (access(\"\(file)\", F_OK) != 0) return refuse(call, \"It is not there.\");"
        let gateway = try await gateway(.changes, [module.build()])
        #expect(try await gateway.state(of: "Late")?["state"] == "failed")
        let failed = try await gateway.post("/page/retry", #"{"module": "Late"}"#)
        #expect(failed.status == 409, "\(failed.text)")
        #expect(try failed.json["detail"]?.string?.contains("It is not there.") == true)
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        let dry = try await gateway.post("/page/retry", #"{"module": "Late", "dryRun": true}"#)
        #expect(try dry.json["steps"]?.list?.count == 1)
        #expect(try await gateway.state(of: "Late")?["state"] == "failed")
        let body = Value.map(["module": "Late", "expected": try dry.json["steps"] ?? .null]).json
        #expect(try await gateway.post("/page/retry", body).status == 200)
        // The module serves again, so the steps differ from the earlier ones.
        let late = try await gateway.post("/page/retry", body)
        #expect(late.status == 409 && late.code == "conflict", "\(late.text)")
        #expect(try await gateway.state(of: "Late")?["state"] == "active")
        for body in [#"{"module": "None"}"#, #"{"module": "None", "dryRun": true}"#] {
            let answer = try await gateway.post("/page/retry", body)
            #expect(answer.status == 404 && answer.code == "unknownModule")
        }
        try await gateway.end()
    }
}
