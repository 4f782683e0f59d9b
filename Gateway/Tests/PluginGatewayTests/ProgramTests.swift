import AsyncHTTPClient
import Foundation
import NIOCore
import NIOSSL
import Testing

@Suite struct ProgramTests {
    private func plugins(_ modules: [String]) throws -> String {
        let folder = try makeFolder()
        for (number, module) in modules.enumerated() { try copyFile(module, to: "\(folder)/\(number).so") }
        return folder
    }

    private func post(_ url: String, _ body: String, _ client: HTTPClient = .shared) async throws -> String {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(string: body))
        let response = try await client.execute(request, timeout: .seconds(120))
        return String(buffer: try await response.body.collect(upTo: 1 << 20))
    }

    @Test func `it serves a folder, prints its address, and ends at SIGTERM with its streams closed`() async throws {
        let program = try Program(
            ["serve", "--plugins", try plugins(TestGateway.samples), "--listen", "127.0.0.1:0"])
        let port = try #require(await program.port(), "\(program.errorText)")
        #expect(program.text.hasPrefix("Listening on 127.0.0.1:"))
        let base = "http://127.0.0.1:\(port)"
        #expect(await becomesTrue { try await post("\(base)/call/C/add", "{\"a\": 41}") == "42" })
        let stream = try await HTTPClient.shared.execute(
            HTTPClientRequest(url: "\(base)/events"), timeout: .seconds(120))
        var parts = stream.body.makeAsyncIterator()
        #expect(try await parts.next().map { String(buffer: $0) } == ": open\n\n")
        program.send(SIGTERM)
        #expect(await program.end() == 0)
        while let part = try await parts.next() { #expect(!String(buffer: part).isEmpty) }
        #expect(await becomesTrue { program.errorText.contains("The shop is closed.") })
    }

    @Test func `it ends at SIGHUP as at SIGTERM`() async throws {
        let program = try Program(
            ["serve", "--plugins", try plugins(TestGateway.samples), "--listen", "127.0.0.1:0"])
        let port = try #require(await program.port(), "\(program.errorText)")
        #expect(await becomesTrue { try await TestClient(port: port).ask("GET", "/readyz").status == 200 })
        program.send(SIGHUP)
        #expect(await program.end() == 0)
        #expect(await becomesTrue { program.errorText.contains("The shop is closed.") })
    }

    @Test func `an address that cannot be used is named`() async throws {
        let program = try Program(["serve", "--plugins", try plugins([]), "--listen", "127.0.0.1:0"])
        let port = try #require(await program.port(), "\(program.errorText)")
        let second = try Program(["serve", "--plugins", try plugins([]), "--listen", "127.0.0.1:\(port)"])
        #expect(await second.end() == 1)
        let message = "The program cannot listen on 127.0.0.1:\(port): Address already in use."
        #expect(await becomesTrue { second.errorText.contains(message) }, "\(second.errorText)")
        program.send(SIGTERM)
        #expect(await program.end() == 0)
    }

    @Test func `a second SIGTERM ends the program at once, even if a call hangs`() async throws {
        let folder = try makeFolder()
        let module = try EndTests.waiting(folder).build()
        let program = try Program([
            "serve", "--plugins", try plugins([module]), "--listen", "127.0.0.1:0", "--drain-timeout", "600",
        ])
        let port = try #require(await program.port(), "\(program.errorText)")
        #expect(
            await becomesTrue { try await TestClient(port: port).ask("GET", "/readyz").status == 200 })
        let call = Task { try? await post("http://127.0.0.1:\(port)/call/Slow/wait", "{}") }
        #expect(await becomesTrue { FileManager.default.fileExists(atPath: "\(folder)/begun") })
        program.send(SIGTERM)
        #expect(await becomesTrue { (try? await TestClient(port: port).ask("GET", "/readyz").status) != 200 })
        #expect(!program.hasEnded)
        program.send(SIGTERM)
        #expect(await program.end() == 143)
        #expect(await becomesTrue { program.errorText.contains("A second signal ends the gateway immediately.") })
        #expect(!FileManager.default.fileExists(atPath: "\(folder)/down"))
        _ = await call.value
    }

    @Test func `other machines are refused without tokens`() async throws {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.org:80", "127.evil.example:80", "127.0:80"] {
            let program = try Program(["serve", "--plugins", "/nowhere", "--listen", address])
            #expect(await program.end() == 64)
            #expect(await becomesTrue { program.errorText.contains("Give --tokens FILE") })
        }
        let program = try Program(["serve", "--plugins", "/nowhere", "--listen", "127.0.0.1"])
        #expect(await program.end() == 64)
        #expect(await becomesTrue { program.errorText.contains("is not an address with a port") })
    }

    @Test func `it serves HTTPS with a certificate and a key`() async throws {
        let folder = try makeFolder()
        let (certificate, key) = try await makeCertificate(folder, "server")
        let program = try Program([
            "serve", "--plugins", try plugins(TestGateway.samples), "--listen", "127.0.0.1:0", "--certificate",
            certificate, "--key", key,
        ])
        let port = try #require(await program.port(), "\(program.errorText)")
        var configuration = HTTPClient.Configuration()
        configuration.tlsConfiguration = .makeClientConfiguration()
        configuration.tlsConfiguration?.certificateVerification = .none
        let client = HTTPClient(configuration: configuration)
        let url = "https://127.0.0.1:\(port)/call/C/add"
        #expect(await becomesTrue { try await post(url, "{\"a\": 41}", client) == "42" })
        try await client.shutdown()
        configuration.tlsConfiguration?.minimumTLSVersion = .tlsv1
        configuration.tlsConfiguration?.maximumTLSVersion = .tlsv11
        let old = HTTPClient(configuration: configuration)
        await #expect(throws: (any Error).self) { try await post(url, "{\"a\": 41}", old) }
        try await old.shutdown()
        program.send(SIGINT)
        #expect(await program.end() == 0)
        let alone = try Program(["serve", "--plugins", folder, "--key", key])
        #expect(await alone.end() == 64)
    }

    @Test func `files that cannot be used are named before the host starts`() async throws {
        let folder = try makeFolder()
        let (plugins, junk) = (try plugins(TestGateway.samples), "\(folder)/junk.pem")
        try Data("junk".utf8).write(to: URL(filePath: junk))
        let (server, other) = (try await makeCertificate(folder, "server"), try await makeCertificate(folder, "other"))
        let pair = ["--certificate", server.certificate, "--key", server.key]
        for (folder, options, file) in [
            ("\(folder)/absent", [], "\(folder)/absent"), (junk, [], junk),
            (plugins, ["--certificate", junk, "--key", server.key], junk),
            (plugins, ["--certificate", server.certificate, "--key", junk], junk),
            (plugins, ["--certificate", server.certificate, "--key", other.key], other.key),
            (plugins, pair + ["--client-certificates", junk], junk),
            (plugins, pair + ["--client-certificates", "\(folder)/absent.pem"], "\(folder)/absent.pem"),
            (plugins, ["--tokens", "\(folder)/absent.tokens"], "\(folder)/absent.tokens"),
        ] {
            let program = try Program(["serve", "--plugins", folder, "--listen", "127.0.0.1:0"] + options)
            #expect(await program.end() == 64)
            #expect(await becomesTrue { program.errorText.contains(file) }, "\(program.errorText)")
            #expect(program.text.isEmpty && !program.errorText.contains("The shop is open."))
        }
    }

    @Test func `with client certificates, only clients that have one are served`() async throws {
        let folder = try makeFolder()
        let server = try await makeCertificate(folder, "server")
        let program = try Program([
            "serve", "--plugins", try plugins(TestGateway.samples), "--listen", "127.0.0.1:0", "--certificate",
            server.certificate, "--key", server.key, "--client-certificates",
            try await makeCertificate(folder, "known").certificate,
        ])
        let port = try #require(await program.port(), "\(program.errorText)")
        let url = "https://127.0.0.1:\(port)/call/C/add"
        _ = try await makeCertificate(folder, "unknown")
        for (name, isServed) in [("known", true), ("unknown", false), (nil, false)] {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.certificateVerification = .none
            if let name {
                let certificates = try NIOSSLCertificate.fromPEMFile("\(folder)/\(name).pem")
                tls.certificateChain = certificates.map(NIOSSLCertificateSource.certificate)
                tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: "\(folder)/\(name)-key.pem", format: .pem))
            }
            let client = HTTPClient(configuration: HTTPClient.Configuration(tlsConfiguration: tls))
            if isServed {
                #expect(await becomesTrue { try await post(url, "{\"a\": 41}", client) == "42" })
            } else {
                await #expect(throws: (any Error).self) { try await post(url, "{\"a\": 41}", client) }
            }
            try await client.shutdown()
        }
        program.send(SIGTERM)
        #expect(await program.end() == 0)
    }

    @Test func `the number and the size of header fields are limited`() async throws {
        let program = try Program(["serve", "--plugins", try plugins([]), "--listen", "127.0.0.1:0"])
        let port = try #require(await program.port(), "\(program.errorText)")
        /// Sends a request with fields besides two that it always has.
        func status(_ count: Int, size: Int) async throws -> Substring {
            let fields = (0..<count).map { "X-\($0): \(String(repeating: "x", count: size))\r\n" }.joined()
            return try await onThread {
                let socket = try RawSocket(port: port)
                try socket.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(fields)\r\n")
                return socket.readAll().dropFirst(9).prefix(3)
            }
        }
        #expect(try await status(98, size: 1) == "200")
        #expect(try await status(99, size: 1) == "431")
        #expect(try await status(1, size: 31 << 10) == "200")
        #expect(try await status(1, size: 33 << 10) == "431")
        #expect(try await status(3, size: 20 << 10) == "200")
        #expect(try await status(4, size: 20 << 10) == "431")
        #expect(try await status(0, size: 0) == "200")
        program.send(SIGTERM)
        #expect(await program.end() == 0)
    }

    @Test func `idle connections are closed, also with half a request, and the number of connections is limited`()
        async throws
    {
        let program = try Program([
            "serve", "--plugins", try plugins(TestGateway.samples), "--listen", "127.0.0.1:0", "--idle-timeout", "1",
            "--connection-limit", "2",
        ])
        let port = try #require(await program.port(), "\(program.errorText)")
        let silent = try RawSocket(port: port)
        let slow = try RawSocket(port: port)
        try slow.send("GET /healthz HTTP/1.1\r\nHost: local")
        // The connection is accepted once there is room for it.
        let third = try RawSocket(port: port)
        try third.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        let (first, second, last) = try await onThread { (silent.readAll(), slow.readAll(), third.readAll()) }
        #expect(first == "")
        #expect(!second.hasPrefix("HTTP/1.1 2"))
        #expect(last.hasPrefix("HTTP/1.1 200 "))
        program.send(SIGTERM)
        #expect(await program.end() == 0)
    }
}
