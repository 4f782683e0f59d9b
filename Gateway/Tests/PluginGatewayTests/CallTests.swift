import Foundation
import PluginABI
import PluginGateway
import PluginHost
import Testing

@Suite struct CallTests {
    @Test func `remote actions are called with JSON`() async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        let sum = try await gateway.call("C/add", "{\"a\": 40, \"b\": 2}")
        #expect(sum.status == 200)
        #expect(sum.text == "42")
        #expect(sum.header("Content-Type") == "application/json")
        #expect(try await gateway.call("C/add", "[40]").text == "41")
        let detail = try await gateway.call("A/fetchDetail", "{\"key\": \"é\"}")
        #expect(try detail.json == ["title": "Detail of é", "page": 1])
        #expect(try await gateway.call("C/add?b=5", "{\"a\": 1}").text == "6")
        try await gateway.end()
    }

    @Test func `what is not declared remote does not exist for HTTP`() async throws {
        let gateway = try await TestGateway(TestGateway.samples + [labModule.build()])
        let paths = ["A/nativeSecret", "A/nothing", "Nobody/nothing", "Lab/secret", "C/measure"]
        var answers: [TestGateway.Answer] = []
        for path in paths { answers.append(try await gateway.call(path, "{}")) }
        for (path, answer) in zip(paths, answers) {
            #expect(answer.status == 404, "\(path)")
            #expect(answer.code == "noRoute", "\(path)")
            #expect(answer.header("Content-Type") == "application/problem+json")
        }
        try await gateway.end()
    }

    @Test(arguments: [
        ("C/add", "{}", 400, "missingParameter"), ("C/add", "{\"a\": \"x\"}", 400, "mistypedParameter"),
        ("C/add", "{\"a\": 1.5}", 400, "mistypedParameter"), ("C/add", "{\"a\": 1, \"c\": 1}", 400, "unknownParameter"),
        ("C/add", "{\"a\": 9223372036854775808}", 400, "mistypedParameter"),
        ("C/add", "{\"a\": -9223372036854775809}", 400, "invalidValue"),
        ("C/add", "{\"a\": 1, \"a\": 2}", 400, "invalidValue"), ("C/add", "{\"a\": 1", 400, "invalidValue"),
        ("C/add", "7", 400, "invalidValue"), ("C/add", "", 400, "invalidValue"),
        ("C/add?b=99999999999999999999", "{\"a\": 1}", 400, "mistypedParameter"),
        ("C/add?b=%zz", "{\"a\": 1}", 400, "invalidURL"),
        ("Lab/fail", "{}", 422, "outOfStock"), ("Lab/demanding", "{}", 403, "refused"),
        ("Lab/number", "{\"n\": 1e300}", 400, "mistypedParameter"), ("Lab/real", "{\"n\": 1e999}", 400, "invalidValue"),
        ("A", "{}", 404, "noRoute"), ("A/b/c", "{}", 404, "noRoute"), ("../healthz", "{}", 404, "noRoute"),
        ("A/fetch%44etail", "{}", 404, "noRoute"), ("C/%2e%2e", "{}", 404, "noRoute"),
    ])
    func `errors have their code and status`(path: String, body: String, status: Int, code: String) async throws {
        let gateway = try await ErrorGateway.shared()
        let raw = try await gateway.raw(
            "POST /call/\(path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        #expect(raw.hasPrefix("HTTP/1.1 \(status) "), "\(raw)")
        #expect(raw.contains("\"code\":\"\(code)\""), "\(raw)")
    }

    @Test func `deep nesting and 64-bit numbers`() async throws {
        let gateway = try await TestGateway([labModule.build()])
        let deep = String(repeating: "[", count: 100_000)
        #expect(try await gateway.call("Lab/echo", "{\"value\": \(deep)").code == "invalidValue")
        #expect(
            try await gateway.call("Lab/echo", "{\"value\": [9223372036854775807, -9223372036854775808]}").text
                == "[9223372036854775807,-9223372036854775808]")
        #expect(try await gateway.call("Lab/number", "{\"n\": 3.0}").text == "3")
        try await gateway.end()
    }

    @Test func `bytes go in and out as they are`() async throws {
        let gateway = try await TestGateway([labModule.build()])
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let octets = [("Content-Type", "application/octet-stream")]
        let answer = try await gateway.ask("POST", "/call/Lab/bytes", headers: octets, body: bytes)
        #expect(answer.body == bytes)
        #expect(answer.header("Content-Type") == "application/octet-stream")
        #expect(try await gateway.call("Lab/bytes", "{\"data\": \"AAEC\"}").body == [0, 1, 2])
        #expect(try await gateway.call("Lab/bytes", "[\"AAEC\"]").body == [0, 1, 2])
        for text in ["AAE", "====", "AA=A", "AAAA====", "AAF=", "AA EC", "AA-_"] {
            for json in ["{\"data\": \"\(text)\"}", "[\"\(text)\"]"] {
                #expect(try await gateway.call("Lab/bytes", json).code == "mistypedParameter", "\(json)")
            }
        }
        let number = try await gateway.ask("POST", "/call/Lab/number", headers: octets, body: bytes)
        #expect(number.status == 415)
        try await gateway.end()
    }

    @Test func `methods, types and sizes that do not fit are refused`() async throws {
        let gateway = try await TestGateway(TestGateway.samples) { configuration, _ in configuration.bodyLimit = 1000 }
        let wrong = try await gateway.get("/call/C/add")
        #expect(wrong.status == 405)
        #expect(wrong.header("Allow") == "POST")
        #expect(try await gateway.ask("DELETE", "/events").header("Allow") == "GET, HEAD")
        let text = try await gateway.ask("POST", "/call/C/add", headers: [("Content-Type", "text/plain")], body: [49])
        #expect(text.status == 415)
        let large = try await gateway.call("C/add", String(repeating: " ", count: 1001))
        #expect(large.status == 413)
        #expect(large.code == "bodyTooLarge")
        let coded = try await gateway.call("C/add", "{}", [("Content-Encoding", "gzip")])
        #expect(coded.status == 415)
        let long = try await gateway.get("/" + String(repeating: "x", count: 20_000))
        #expect(long.status == 414)
        try await gateway.end()
    }

    @Test func `a timeout ends the request, even if the action continues`() async throws {
        let folder = try makeFolder()
        let gateway = try await TestGateway([labModule.build()])
        let late = try await gateway.call("Lab/sleep", "{\"file\": \"\(folder)/a\"}", [("Timeout", "50ms")])
        #expect(late.status == 504)
        #expect(late.code == "deadlineExceeded")
        #expect(FileManager.default.createFile(atPath: "\(folder)/a.go", contents: nil))
        for text in ["x", "-1", "0", "1e3", "5m", "1.", "99999999999999", "1.5ms", ""] {
            #expect(try await gateway.call("Lab/fail", "{}", [("Timeout", text)]).code == "invalidHeader", "\(text)")
        }
        #expect(try await gateway.call("Lab/number", "{\"n\": 1}", [("Timeout", "2.5")]).text == "1")
        try await gateway.end()
    }

    @Test func `a client that leaves cancels its call`() async throws {
        let gateway = try await TestGateway([waitingModule.build()]) { _, host in
            host.shutdownTimeout = .milliseconds(200)
        }
        let socket = try RawSocket(port: gateway.port)
        try socket.send("POST /call/Later/wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        #expect(await becomesTrue { gateway.gateway.host.generations.contains { !$0.calls.isEmpty } })
        socket.close()
        // The host ends the call, which frees its slot, although the action never replies.
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains("gateway_calls_in_flight 0.0") })
        #expect(try await gateway.get("/metrics").text.contains("code=\"cancelled\"} 1"))
        try await gateway.end()
    }

    @Test func `an object that is no cursor cannot leave the program`() async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        let answer = try await gateway.call("A/article", "{\"key\": \"apple\"}")
        #expect(answer.status == 406)
        #expect(answer.code == "notRepresentable")
        try await gateway.end()
    }

    @Test func `actions that block hold up no other requests`() async throws {
        let folder = try makeFolder()
        let lab = try labModule.build()
        let gateway = try await TestGateway([lab] + TestGateway.samples)
        let files = FileManager.default
        // More than the machine has processors, so they would take all threads that serve requests.
        let names = (0..<40).map { "\(folder)/\($0)" }
        let port = gateway.port
        let sockets = try await onThread {
            try names.map { name in
                let (socket, body) = (try RawSocket(port: port), "{\"file\": \"\(name)\"}")
                try socket.send(
                    "POST /call/Lab/sleep HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        + "Connection: close\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
                return socket
            }
        }
        #expect(await becomesTrue { names.allSatisfy { files.fileExists(atPath: $0) } })
        #expect(try await gateway.call("C/add", "{\"a\": 1}").text == "2")
        #expect(try await gateway.get("/readyz").status == 200)
        for name in names { #expect(files.createFile(atPath: "\(name).go", contents: nil)) }
        let answers = try await onThread { sockets.map { $0.readAll() } }
        #expect(answers.allSatisfy { $0.hasSuffix("\"slept\"") }, "\(answers)")
        try await gateway.end()
    }
}

/// A module whose action never replies.
private let waitingModule: CModule = {
    var module = CModule(name: "Later")
    module.targets = [
        .init(name: "Later", actions: [.init(name: "wait", manifest: "\"remote\": true, \"async\": true, ", body: "")])
    ]
    return module
}()

/// The gateway that the tests of errors share.
private actor ErrorGateway {
    private static let one = ErrorGateway()
    private var gateway: Task<TestGateway, any Error>?

    static func shared() async throws -> TestGateway { try await one.get() }

    private func get() async throws -> TestGateway {
        let gateway = gateway ?? Task { try await TestGateway(TestGateway.samples + [labModule.build()]) }
        self.gateway = gateway
        return try await gateway.value
    }
}
