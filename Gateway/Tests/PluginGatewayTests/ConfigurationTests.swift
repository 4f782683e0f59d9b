import AsyncHTTPClient
import Foundation
import PluginGateway
import PluginHost
import Testing

@testable import GatewayProgram

@Suite struct ConfigurationTests {
    private static let sample = URL(filePath: #filePath).appending(path: "../../../gateway.sample.json").standardized

    private func write(_ text: String) throws -> String {
        let file = try makeFolder() + "/gateway.json"
        try Data(text.utf8).write(to: URL(filePath: file))
        return file
    }

    @Test func `the sample is read, with paths that start at its folder`() throws {
        let settings = try ServeSettings(file: Self.sample.path)
        let folder = Self.sample.deletingLastPathComponent().path
        #expect(settings.host.folders == ["\(folder)/plugins"])
        #expect(settings.listen == "0.0.0.0:8443")
        #expect(settings.tokens == "\(folder)/secrets/tokens")
        #expect(settings.certificate == "\(folder)/secrets/server.pem")
        #expect(settings.key == "\(folder)/secrets/server-key.pem")
        #expect(settings.gateway.cors?.origins == ["https://shop.example"])
        #expect(settings.gateway.cors?.headers == ["X-Request-ID"])
        #expect(settings.gateway.cors?.maximumAge == 3600)
        #expect(settings.gateway.bodyLimit == 1 << 20)
        #expect(settings.gateway.drainDelay == .seconds(5))
        #expect(settings.host.start == .lazy)
        #expect(settings.host.eagerModules == ["ModuleA"])
        #expect(settings.host.isolation.modules == .named(["ModuleC"]))
        #expect(settings.host.isolation.rules.first?.memoryLimit == 256 << 20)
        #expect(settings.host.moduleConfiguration == ["ModuleA": ["currency": "CHF"]])
        #expect(settings.host.hookTimeout == .seconds(60))
        #expect(settings.host.schemes == ["app", "call"])
    }

    @Test(arguments: [
        ("", "is empty"), ("{\n  \"listen\": 1,\n}", "line 2"),
        ("{\"listen\": \"a:1\", \"listen\": \"b:1\"}", "listen"), ("[]", ":1:1: This must be an object"),
        ("{\n  \"lsten\": \"a:1\"\n}", ":2:3: There is no setting “lsten”. Did you mean “listen”?"),
        (
            "{\"limits\": {\n\"body\": 1, \"Calls\": 2}}",
            ":2:12: There is no setting “Calls” in “limits”. Did you mean “calls”?"
        ),
        ("{\"wholly\": 1}", ":1:2: There is no setting “wholly”."),
        ("{\"listen\": 7}", ":1:2: “listen” must be a text"),
        ("{\"limits\": {\"body\": 0}}", ":1:13: “body” must be a whole number from 1 to"),
        ("{\"limits\": {\"calls\": 5000}}", "“calls” must be a whole number from 1 to 4096"),
        ("{\"timeouts\": {\"call\": 0}}", "“call” must be a number of seconds, 0.001 to 86400"),
        ("{\"timeouts\": {\"call\": 1e-30}}", "“call” must be a number of seconds"),
        ("{\"timeouts\": {\"heartbeat\": 31}}", "“heartbeat” must be a number of seconds, 0.1 to 30"),
        ("{\"tls\": {\"certificate\": \"a\"}}", ":1:2: “tls” must have a “certificate” and its “key”"),
        ("{\"cors\": {\"origins\": [\"https://a/b\"]}}", ":1:23: An origin is a scheme and a host"),
        ("{\"cors\": {\"origins\": [\"https://a\",\n\"https://a:443\"]}}", ":2:1: An origin is a scheme and a host"),
        ("{\"hosts\": [\"a\",\n\"a:80\"]}", ":2:1: A host is a name or an address without a port"),
        ("{\"prefix\": \"/a?b\"}", ":1:2: “prefix” must be a path"),
        ("{\"prefix\": \"/a/../b\"}", "“prefix” must be a path"),
        ("{\n\"page\": \"writes\"}", ":2:1: “page” must be “off”, “reads” or “changes”."),
        ("{\"page\": true}", ":1:2: “page” must be a text"),
        ("{\"cors\": {\"origins\": []}}", "“cors” must have “origins”"),
        ("{\"plugins\": [\"\"]}", "“plugins” must be a list of texts"), ("{\"prefix\": \"x\"}", "“prefix” must begin"),
        ("{\"host\": {\"restAfter\": 0.5}}", ":1:11: “restAfter” must be a number of seconds, 1.0 to "),
        ("{\"host\": {\"schemes\": []}}", ":1:11: “schemes” must be one or more schemes"),
        ("{\"host\": {\"schemes\": [\"call\", \"1 x\"]}}", ":1:11: “schemes” must be one or more schemes"),
        ("{\"host\": {\"start\": \"never\"}}", ":1:11: “start” must be “eager” or “lazy”"),
        ("{\"host\": {\"isolation\": [{\"module\": \"A\"},\n {\"module\": \"B\", \"memry\": 1}]}}", ":2:2: "),
        ("{\"host\": {\"modules\": {\"a\\u0041\": 7}}}", ":1:23: The configuration of a module must be an object"),
    ])
    func `mistakes in the file are errors with their place`(text: String, message: String) throws {
        let file = try write(text)
        let error = #expect(throws: (any Error).self) { try ServeSettings(file: file) }
        let found = error.map { "\($0)" } ?? ""
        #expect(found.contains(file) && found.contains(message), "\(found)")
    }

    @Test func `the file says what the page may do, unless an option does`() throws {
        let folder = try makeFolder()
        func settings(_ page: String, _ options: [String] = []) throws -> GatewayConfiguration.Page {
            let file = try write("{\"plugins\": [\".\"]\(page)}")
            return try Serve.parse(["--config", file, "--plugins", folder] + options).settings().gateway.page
        }
        #expect(try settings("") == .reads)
        for page in [GatewayConfiguration.Page.off, .reads, .changes] {
            #expect(try settings(", \"page\": \"\(page.rawValue)\"") == page)
        }
        #expect(try settings(", \"page\": \"changes\"", ["--no-page"]) == .off)
        #expect(try settings(", \"page\": \"off\"", ["--allow-changes"]) == .changes)
        #expect(try ServeSettings(file: Self.sample.path).gateway.page == .reads)
    }

    @Test func `options precede the file`() throws {
        let file = try write(
            """
            {"plugins": ["."], "listen": "127.0.0.1:1", "limits": {"body": 5, "calls": 6}, "timeouts": {"call": 7},
             "host": {"start": "lazy", "restAfter": 60}}
            """)
        let folder = try makeFolder()
        let read = try Serve.parse(["--config", file]).settings()
        #expect(read.listen == "127.0.0.1:1")
        #expect(read.gateway.callTimeout == .seconds(7))
        #expect(read.host.isolation.restAfter == .seconds(60))
        let serve = try Serve.parse([
            "--config", file, "--plugins", folder, "--listen", "127.0.0.1:2", "--body-limit", "8", "--timeout", "9",
        ])
        let settings = try serve.settings()
        #expect(settings.host.folders == [folder])
        #expect(settings.listen == "127.0.0.1:2")
        #expect(settings.gateway.bodyLimit == 8)
        #expect(settings.gateway.callLimit == 6)
        #expect(settings.gateway.callTimeout == .seconds(9))
    }

    @Test func `the program serves what its file says`() async throws {
        let folder = try makeFolder()
        try FileManager.default.createDirectory(atPath: "\(folder)/modules", withIntermediateDirectories: false)
        for module in TestGateway.samples {
            try copyFile(module, to: "\(folder)/modules/\(URL(filePath: module).lastPathComponent)")
        }
        try Data(
            """
            {"plugins": ["modules"], "listen": "127.0.0.1:0", "prefix": "/shop", "limits": {"body": 100},
             "host": {"modules": {"ModuleA": {"currency": "CHF"}}}}
            """.utf8
        ).write(to: URL(filePath: "\(folder)/gateway.json"))
        let program = try Program(["serve", "--config", "\(folder)/gateway.json"])
        let client = TestClient(port: try #require(await program.port(), "\(program.errorText)"))
        let json = [("Content-Type", "application/json")]
        #expect(await becomesTrue { try await client.ask("GET", "/shop/readyz").status == 200 })
        let price = try await client.ask(
            "POST", "/shop/call/A/price", headers: json, body: Array("{\"key\": \"apple\"}".utf8))
        #expect(price.text.contains("franc"), "\(price.text)")
        let large = try await client.ask(
            "POST", "/shop/call/A/price", headers: json, body: [UInt8](repeating: 0x20, count: 101))
        #expect(large.status == 413)
        program.send(SIGTERM)
        #expect(await program.end() == 0)
        let wrong = try Program(["serve", "--config", "\(folder)/absent.json"])
        #expect(await wrong.end() == 64)
        #expect(await becomesTrue { wrong.errorText.contains("absent.json cannot be read") })
    }
}
