import AsyncHTTPClient
import Foundation
import Hummingbird
import HummingbirdCore
import HummingbirdHTTP2
import NIOCore
import NIOSSL
import PluginGateway
import PluginHost
import Testing

/// Connections with TLS and of HTTP/2.
@Suite(.timeLimit(.minutes(10))) struct ConnectionTests {
    private func client() -> HTTPClient {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        return HTTPClient(configuration: HTTPClient.Configuration(tlsConfiguration: tls))
    }

    @Test func `streams of HTTP/2 are served, also if they take longer than a client may take to read`() async throws {
        let folder = try makeFolder()
        let (certificate, key) = try await makeCertificate(folder, "server")
        let tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(certificate).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: key, format: .pem)))
        let server = TestGateway.Server { handler in
            try .http2Upgrade(
                tlsConfiguration: tls,
                configuration: .init(streamConfiguration: .init(additionalChannelHandlers: [handler()])))
        }
        let gateway = try await TestGateway(TestGateway.samples + [labModule.build()], server: server) {
            configuration, _ in configuration.writeTimeout = .milliseconds(400)
        }
        let client = client()
        defer { client.shutdown { _ in } }
        let text = String(repeating: "x", count: 900_000)
        for (path, body, result) in [
            ("B/slowly", "{\"text\": \"ab\", \"milliseconds\": 2000}", "\"ba\""),
            ("Lab/echo", "{\"value\": \"\(text)\"}", "\"\(text)\""),
        ] {
            var request = HTTPClientRequest(url: "https://127.0.0.1:\(gateway.port)/call/\(path)")
            request.method = .POST
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(string: body))
            let response = try await client.execute(request, timeout: .seconds(120))
            #expect(response.version == .http2)
            #expect(String(buffer: try await response.body.collect(upTo: 4 << 20)) == result)
        }
        let isReleased = await becomesTrue {
            let url = "https://127.0.0.1:\(gateway.port)/metrics"
            let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(120))
            return String(buffer: try await response.body.collect(upTo: 4 << 20)).contains("gateway_unsent_bytes 0.0")
        }
        #expect(isReleased)
        try await gateway.end()
    }

    @Test func `a client that ends its half of a connection with TLS cancels its call`() async throws {
        let folder = try makeFolder()
        let (certificate, key) = try await makeCertificate(folder, "server")
        let plugins = "\(folder)/plugins"
        try FileManager.default.createDirectory(atPath: plugins, withIntermediateDirectories: false)
        try copyFile(TestGateway.samples[1], to: "\(plugins)/B.so")
        let program = try Program([
            "serve", "--plugins", plugins, "--listen", "127.0.0.1:0", "--certificate", certificate, "--key", key,
        ])
        let port = try #require(await program.port(), "\(program.errorText)")
        let client = client()
        defer { client.shutdown { _ in } }
        func get(_ path: String) async throws -> (status: UInt, text: String) {
            let request = HTTPClientRequest(url: "https://127.0.0.1:\(port)/\(path)")
            let response = try await client.execute(request, timeout: .seconds(120))
            return (response.status.code, String(buffer: try await response.body.collect(upTo: 4 << 20)))
        }
        #expect(await becomesTrue { try await get("readyz").status == 200 })
        // The connection itself stays open.
        let open = "\(folder)/open"
        try "".write(toFile: open, atomically: false, encoding: .utf8)
        let script = """
            import os, socket, ssl, time
            connection = socket.create_connection(("127.0.0.1", \(port)))
            secure = ssl._create_unverified_context().wrap_socket(connection)
            body = b'{"text": "ab", "milliseconds": 5000}'
            secure.sendall(b"POST /call/B/slowly HTTP/1.1\\r\\nHost: localhost\\r\\n"
                b"Content-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
            time.sleep(0.5)
            secure.settimeout(0.2)
            try: secure.unwrap()
            except OSError: pass
            while os.path.exists("\(open)"): time.sleep(0.05)
            """
        async let ended = Program.run(["python3", "-c", script])
        let isCancelled = await becomesTrue {
            let calls = try await get("metrics").text.split(separator: "\n").filter {
                $0.contains("action=\"B/slowly\"")
            }
            return calls.contains { $0.hasPrefix("gateway_calls_total") && $0.contains("code=\"cancelled\"") }
        }
        #expect(isCancelled)
        try FileManager.default.removeItem(atPath: open)
        let result = try await ended
        #expect(result.status == 0, "\(result.output)")
        program.send(SIGTERM)
        #expect(await program.end() == 0)
    }
}
