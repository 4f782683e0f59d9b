import Foundation
import PluginABI
import Testing

/// What the versions of HTTP differ in, and what is not HTTP.
@Suite struct RequestFormTests {
    private static let post =
        "POST /call/C/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"

    @Test(arguments: [
        ("GET /healthz HTTP/1.1\r\n Host: localhost\r\n\r\n", 400, "invalidRequest"),
        ("GET /healthz HTTP/1.1\nHost: localhost\n\n", 400, "invalidRequest"),
        ("BREW /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "invalidRequest"),
        (post + "Content-Length: 8\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "invalidRequest"),
        (post + "Content-Length: 8\r\nContent-Length: 8\r\n\r\n{\"a\": 1}", 400, "invalidRequest"),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: \(String(repeating: "x", count: 200_000))\r\n\r\n", 431,
            "headerTooLarge"
        ),
        (post + "Content-Length: 9223372036854775808\r\n\r\n", 413, "bodyTooLarge"),
        (
            post + "Transfer-Encoding: gzip, chunked\r\n\r\n8\r\n{\"a\": 1}\r\n0\r\n\r\n", 400,
            "invalidHeader"
        ),
    ])
    func `what is not a request is answered with a problem`(text: String, status: Int, code: String) async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        let answer = try await gateway.raw(text)
        #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
        #expect(answer.contains("Content-Type: application/problem+json\r\n"), "\(answer)")
        #expect(answer.lowercased().contains("\r\nconnection: close\r\n"), "\(answer)")
        #expect(answer.contains("\"code\":\"\(code)\""), "\(answer)")
        // After a request.
        let second = try await gateway.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + text)
        #expect(second.hasPrefix("HTTP/1.1 200 ") && second.contains("\"code\":\"\(code)\""), "\(second)")
        #expect(second.components(separatedBy: "HTTP/1.1 ").count == 3, "\(second)")
        try await gateway.end()
    }

    @Test func `a request whose body is not valid has one response`() async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        for path in ["/nothing", "/call/C/add"] {
            let answer = try await gateway.raw(
                "POST \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"a\": 1}zz\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 40"), "\(answer)")
            #expect(answer.components(separatedBy: "HTTP/1.1 ").count == 2, "\(answer)")
        }
        try await gateway.end()
    }

    @Test func `only a client of HTTP 1.0 may leave out the host`() async throws {
        let gateway = try await TestGateway([])
        let answer = try await gateway.raw("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.contains("The header Host is missing"), "\(answer)")
        #expect(try await gateway.raw("GET /healthz HTTP/1.0\r\n\r\n").hasPrefix("HTTP/1.0 200 "))
        try await gateway.end()
    }

    @Test func `a client of HTTP 1.0 gets answers without chunks, until the connection ends`() async throws {
        let gateway = try await TestGateway([labModule.build()])
        let body = "{\"count\": 3}"
        let answer = try await gateway.raw(
            "POST /call/Lab/cursor HTTP/1.0\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        #expect(answer.hasPrefix("HTTP/1.0 200 "), "\(answer)")
        #expect(!answer.lowercased().contains("transfer-encoding"), "\(answer)")
        #expect(answer.hasSuffix("\r\n\r\n3\n2\n1\n"), "\(answer)")
        let kept = "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
        #expect(try await gateway.raw(kept).hasSuffix("\r\n\r\nok\n"))
        try await gateway.end()
    }

    @Test(arguments: ["Close", "close, TE", "x, close"])
    func `a connection is closed if its client says so`(connection: String) async throws {
        let gateway = try await TestGateway([])
        let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: \(connection)\r\n\r\n"
        // The connection ends after the first answer.
        let answer = try await gateway.raw(request + request)
        #expect(answer.components(separatedBy: "HTTP/1.1 200 ").count == 2, "\(answer)")
        try await gateway.end()
    }

    @Test(arguments: [
        ("application/json;\tcharset=\"UTF-8\"", 200), ("application/json; version=1", 200),
        ("application/json;;", 200),
        ("application/json; version=1; charset=utf-8", 200), ("Application/JSON ;charset=utf-8", 200),
        ("application/json; version=1; charset=latin1", 415), ("application/json, application/json", 415),
    ])
    func `of the parameters of JSON, only the encoding matters`(type: String, status: Int) async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        let headers = [("Content-Type", type)]
        let answer = try await gateway.ask("POST", "/call/C/add", headers: headers, body: Array("{\"a\": 1}".utf8))
        #expect(answer.status == status, "\(answer.text)")
        try await gateway.end()
    }
}
