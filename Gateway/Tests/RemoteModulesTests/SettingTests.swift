import Foundation
import Logging
import PluginABI
import PluginHost
import RemoteModules
import Testing

@testable import GatewayProgram

/// The setting `remote` of `pluginhost-gateway serve`.
@Suite struct SettingTests {
    private func write(_ text: String) throws -> String {
        let file = "\(try makeFolder())/gateway.json"
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        return file
    }

    @Test func `all settings are read`() throws {
        let file = try write(
            """
            {"remote": [
                {"url": "https://a.example:8443/shop/", "targets": ["B", "C"], "token": "token", "timeout": 1.5,
                 "connectTimeout": 2, "interval": 3, "calls": 4, "connections": 5, "answer": 6, "hops": 7, "reexport": true,
                 "tls": {"authorities": "ca.pem", "certificate": "c.pem", "key": "k.pem"},
                 "breaker": {"failures": 8, "share": 0.25, "window": 9, "pause": 10}},
                {"url": "http://127.0.0.1:1", "targets": ["D"]}]}
            """)
        let remote = try ServeSettings(file: file).remote
        #expect(remote.map(\.targets) == [["B", "C"], ["D"]])
        let read = remote[0].configuration
        #expect(read.tokenFile == URL(filePath: file).deletingLastPathComponent().path + "/token")
        #expect(read.callTimeout == .seconds(1.5) && read.connectTimeout == .seconds(2) && read.interval == .seconds(3))
        #expect(read.callLimit == 4 && read.connectionLimit == 5 && read.answerLimit == 6 && read.hopLimit == 7)
        #expect(read.isReexported && !remote[1].configuration.isReexported)
        #expect(read.breaker.failures == 8 && read.breaker.share == 0.25 && read.breaker.window == 9)
        #expect(read.breaker.pause == .seconds(10))
    }

    @Test(arguments: [
        ("7", ":1:2: “remote” must be a list of objects"), ("[7]", ":1:13: This must be an object"),
        ("[{}]", "A mount must have a “url”"), ("[{\"url\": \"https://x\"}]", "A mount must have “targets”"),
        ("[{\"url\": \"x\",\n\"targets\": [\"B\"]}]", ":1:14: “x” does not begin with https://"),
        ("[{\"url\": \"https://u:p@x\", \"targets\": [\"B\"]}]", "is not a URL of a host without a user"),
        ("[{\"url\": \"https://x\", \"targets\": [\"B\",\n\"a/b\"]}]", ":2:1: “a/b” is not a name of a target"),
        ("[{\"url\": \"https://x\", \"targets\": [\"B\", \"B\"]}]", "The target “B” is listed twice"),
        (
            "[{\"url\": \"https://x\", \"targets\": [\"B\"]}, {\"url\": \"https://y\", \"targets\": [\"B\"]}]",
            "The target “B” is mounted twice"
        ),
        (
            "[{\"url\": \"https://x\", \"targets\": [\"B\"], \"tokn\": \"t\"}]",
            "There is no setting “tokn” in “remote.0”. Did you mean “token”?"
        ),
        (
            "[{\"url\": \"https://x\", \"targets\": [\"B\"], \"hops\": 17}]",
            "“hops” must be a whole number from 1 to 16"
        ),
        ("[{\"url\": \"https://x\", \"targets\": [\"B\"], \"tls\": {\"key\": \"k\"}}]", "“tls” must have both"),
        (
            "[{\"url\": \"https://x\", \"targets\": [\"B\"], \"breaker\": {\"share\": 0}}]",
            "“share” must be a number more than 0"
        ),
    ])
    func `mistakes are errors with their place`(remote: String, message: String) throws {
        let file = try write("{\"remote\": \(remote)}")
        let error = #expect(throws: (any Error).self) { try ServeSettings(file: file) }
        let found = error.map { "\($0)" } ?? ""
        #expect(found.contains(file) && found.contains(message), "\(found)")
    }

    @Test func `the program serves what its modules call on another host`() async throws {
        let gateway = try await TestGateway([bModule().build()])
        let folder = try makeFolder()
        try FileManager.default.createDirectory(atPath: "\(folder)/modules", withIntermediateDirectories: false)
        try Data(
            """
            {"plugins": ["modules"], "listen": "127.0.0.1:0",
             "remote": [{"url": "http://127.0.0.1:\(gateway.port)", "targets": ["B"], "interval": 0.05, "reexport": true}]}
            """.utf8
        ).write(to: URL(filePath: "\(folder)/gateway.json"))
        let program = try Program(["serve", "--config", "\(folder)/gateway.json"])
        let client = TestClient(port: try #require(await program.port(), "\(program.errorText)"))
        #expect(
            await becomesTrue {
                let answer = try await client.ask(
                    "POST", "/call/B/greet", headers: [("Content-Type", "application/json")],
                    body: Array("{\"name\": \"Ada\"}".utf8))
                return answer.text == "\"Ada\""
            })
        let metrics = try await client.ask("GET", "/metrics").text
        #expect(metrics.contains("remote_calls_total{"), "\(metrics)")
        program.send(SIGTERM)
        #expect(await program.end() == 0, "\(program.errorText)")
        try await gateway.end()

        let absent = try Program(["serve", "--config", "\(folder)/gateway.json", "--plugins", "\(folder)/modules"])
        // The program starts although the other host cannot be reached.
        let other = TestClient(port: try #require(await absent.port(), "\(absent.errorText)"))
        #expect(await becomesTrue { try await other.ask("GET", "/readyz").status == 200 })
        #expect(await becomesTrue { absent.errorText.contains("cannot be reached") })
        absent.send(SIGTERM)
        #expect(await absent.end() == 0)
    }

    private func makeCertificate(_ folder: String, _ name: String) async throws {
        let made = try await Program.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "2", "-subj", "/CN=\(name)", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
            "\(folder)/\(name)-key.pem", "-out", "\(folder)/\(name).pem",
        ])
        #expect(made.status == 0, "\(made.output)")
    }

    @Test func `certificates are verified on both sides`() async throws {
        let folder = try makeFolder()
        for name in ["server", "client"] { try await makeCertificate(folder, name) }
        try FileManager.default.createDirectory(atPath: "\(folder)/modules", withIntermediateDirectories: false)
        try bModule().build(into: "\(folder)/modules", as: "b.so")
        let program = try Program([
            "serve", "--plugins", "\(folder)/modules", "--listen", "127.0.0.1:0", "--certificate",
            "\(folder)/server.pem", "--key", "\(folder)/server-key.pem", "--client-certificates",
            "\(folder)/client.pem",
        ])
        let port = try #require(await program.port(), "\(program.errorText)")
        let host = PluginHost(HostConfiguration(folders: []))
        let both =
            "\"authorities\": \"\(folder)/server.pem\", \"certificate\": \"\(folder)/client.pem\", "
            + "\"key\": \"\(folder)/client-key.pem\""
        for (tls, isServed) in [
            ("", false), ("\"authorities\": \"\(folder)/client.pem\"", false),
            ("\"authorities\": \"\(folder)/server.pem\"", false), (both, true),
        ] {
            let file = try write(
                """
                {"remote": [{"url": "https://127.0.0.1:\(port)", "targets": ["B"], "interval": 0.05, "tls": {\(tls)}}]}
                """)
            let remote = try ServeSettings(file: file).remote[0].mount(in: host, Logger(label: "test"))
            let running = Task { try await remote.run() }
            if isServed {
                #expect(await becomesTrue { remote.status.targets[0].problem == nil }, "\(remote.status)")
                #expect(try await onThread { try host.perform("B", "greet", ["name": "x"]) } == "x")
            } else {
                #expect(await becomesTrue { remote.status.problem != nil })
                #expect(remote.status.targets[0].module == nil)
                #expect(remote.status.problem?.contains("TLS: ") == true, "\(remote.status)")
            }
            running.cancel()
            try await running.value
        }
        let file = try write(
            "{\"remote\": [{\"url\": \"https://x\", \"targets\": [\"B\"], \"tls\": {\"authorities\": \"absent.pem\"}}]}"
        )
        let settings = try ServeSettings(file: file)
        let error = #expect(throws: (any Error).self) {
            try settings.remote[0].mount(in: host, Logger(label: "test"))
        }
        #expect(error.map { "\($0)" }?.contains("absent.pem") == true)
        try await onThread { host.shutdown() }
        program.send(SIGTERM)
        #expect(await program.end() == 0, "\(program.errorText)")
    }
}
