import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOEmbedded
import PluginABI
import PluginGateway
import PluginHost
import Synchronization
import Testing

@Suite struct AccessTests {
    private func tokens(_ text: String) throws -> String {
        let file = try makeFolder() + "/tokens"
        try Data(text.utf8).write(to: URL(filePath: file))
        chmod(file, 0o600)
        return file
    }

    @Test func `a token is needed, and the file is read again`() async throws {
        let file = try tokens("# Of the shop\n0123456789abcdef\n\nfedcba9876543210\n")
        let access = GatewayConfiguration.Access.tokens(try BearerTokens(file: file))
        let gateway = try await TestGateway(TestGateway.samples) { configuration, _ in configuration.access = access }
        for header in [nil, "Bearer", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "Basic 0123456789abcdef"] {
            let answer = try await gateway.call("C/add", "{\"a\": 1}", header.map { [("Authorization", $0)] } ?? [])
            #expect(answer.status == 401, "\(header ?? "none")")
            #expect(answer.header("WWW-Authenticate") == "Bearer")
        }
        for token in ["0123456789abcdef", "fedcba9876543210"] {
            #expect(try await gateway.call("C/add", "{\"a\": 1}", [("Authorization", "Bearer \(token)")]).text == "2")
        }
        #expect(try await gateway.get("/metrics").status == 401)
        #expect(try await gateway.get("/readyz").status == 200)
        try Data("another-token-of-today\n".utf8).write(to: URL(filePath: file))
        let new = [("Authorization", "Bearer another-token-of-today")]
        #expect(await becomesTrue { try await gateway.call("C/add", "{\"a\": 1}", new).status == 200 })
        #expect(try await gateway.call("C/add", "{}", [("Authorization", "Bearer 0123456789abcdef")]).status == 401)
        try await gateway.end()
    }

    @Test(arguments: ["missing", "empty", "open", "short"])
    func `without a usable file of tokens, nobody gets in`(change: String) async throws {
        let file = try tokens("0123456789abcdef\n")
        let lines = Lines()
        let log = Logger(label: "tokens") { _ in LineHandler(lines: lines) }
        let access = GatewayConfiguration.Access.tokens(try BearerTokens(file: file, logger: log))
        let gateway = try await TestGateway(TestGateway.samples) { configuration, _ in configuration.access = access }
        let token = [("Authorization", "Bearer 0123456789abcdef")]
        #expect(try await gateway.call("C/add", "{\"a\": 1}", token).status == 200)
        switch change {
        case "missing": try FileManager.default.removeItem(atPath: file)
        case "open": chmod(file, 0o644)
        default: try Data((change == "empty" ? "" : "short\n").utf8).write(to: URL(filePath: file))
        }
        #expect(await becomesTrue { try await gateway.call("C/add", "{\"a\": 1}", token).status == 401 })
        #expect(lines.all.map(\.level) == [.error])
        #expect(lines.all.first?.message.contains(file) == true)
        try Data("0123456789abcdef\n# again\n".utf8).write(to: URL(filePath: file))
        chmod(file, 0o600)
        #expect(await becomesTrue { try await gateway.call("C/add", "{\"a\": 1}", token).status == 200 })
        try await gateway.end()
    }

    @Test func `the file of tokens can be a link, which is followed again when it changes`() async throws {
        let folder = try makeFolder()
        let (link, files) = ("\(folder)/tokens", FileManager.default)
        for (name, token) in [("a", "0123456789abcdef"), ("b", "fedcba9876543210")] {
            try Data("\(token)\r\n".utf8).write(to: URL(filePath: "\(folder)/\(name)"))
            chmod("\(folder)/\(name)", 0o600)
        }
        try files.createSymbolicLink(atPath: link, withDestinationPath: "a")
        let access = GatewayConfiguration.Access.tokens(try BearerTokens(file: link))
        let gateway = try await TestGateway([]) { configuration, _ in configuration.access = access }
        func status(_ token: String) async throws -> Int {
            try await gateway.get("/metrics", [("Authorization", "Bearer \(token)")]).status
        }
        #expect(try await status("0123456789abcdef") == 200)
        try files.createSymbolicLink(atPath: "\(folder)/new", withDestinationPath: "b")
        #expect(rename("\(folder)/new", link) == 0)
        #expect(await becomesTrue { try await status("fedcba9876543210") == 200 })
        #expect(try await status("0123456789abcdef") == 401)
        try await gateway.end()
    }

    @Test func `a file of tokens that is not usable is refused`() throws {
        for text in ["", "# nothing\n", "short\n", "ada\t0123456789abcdef\n", "\u{FEFF}0123456789abcdef\n"] {
            let file = try tokens(text)
            #expect(throws: PluginError.self) { try BearerTokens(file: file) }
        }
        let open = try tokens("0123456789abcdef\n")
        chmod(open, 0o644)
        let error = #expect(throws: PluginError.self) { try BearerTokens(file: open) }
        #expect(error?.message.contains("chmod 600") == true)
        #expect(throws: PluginError.self) { try BearerTokens(file: "/nowhere/tokens") }
        #expect(throws: PluginError.self) { try BearerTokens(file: "/dev/zero") }
        let link = try makeFolder() + "/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: open)
        #expect(throws: PluginError.self) { try BearerTokens(file: link) }
        let pipe = try makeFolder() + "/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        #expect(throws: PluginError.self) { try BearerTokens(file: pipe) }
        let foreign = try tokens("0123456789abcdef\n")
        if chown(foreign, 12345, 0) == 0 {
            let error = #expect(throws: PluginError.self) { try BearerTokens(file: foreign) }
            #expect(error?.message.contains("another user") == true)
        }
    }

    @Test func `web pages of other origins are kept out`() async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        #expect(try await gateway.call("C/add", "{\"a\": 1}", [("Host", "evil.example")]).status == 421)
        #expect(try await gateway.call("C/add", "{\"a\": 1}", [("Origin", "http://evil.example")]).status == 403)
        #expect(try await gateway.call("C/add", "{\"a\": 1}", [("Origin", "null")]).status == 403)
        for site in ["cross-site", "same-site"] {
            #expect(try await gateway.get("/openapi.json", [("Sec-Fetch-Site", site)]).status == 403)
        }
        #expect(try await gateway.get("/openapi.json", [("Sec-Fetch-Site", "none")]).status == 200)
        let own = [("Origin", "http://127.0.0.1:\(gateway.port)"), ("Sec-Fetch-Site", "same-origin")]
        #expect(try await gateway.ask("POST", "/call/C/add?a=1", headers: own).status == 415)
        #expect(try await gateway.ask("POST", "/call/C/add?a=1").text == "2")
        let answer = try await gateway.call("C/add", "{\"a\": 1}", own)
        #expect(answer.status == 200)
        #expect(answer.header("Access-Control-Allow-Origin") == nil)
        try await gateway.end()
        let everyone = try await TestGateway(TestGateway.samples) { configuration, _ in configuration.access = .everyone
        }
        #expect(try await everyone.call("C/add", "{\"a\": 1}", [("Origin", "http://evil.example")]).status == 403)
        #expect(try await everyone.call("C/add", "{\"a\": 1}", [("Host", "shop.example")]).text == "2")
        try await everyone.end()
        let named = try await TestGateway(TestGateway.samples) { configuration, _ in
            (configuration.access, configuration.hosts) = (.everyone, ["shop.example"])
        }
        #expect(try await named.call("C/add", "{\"a\": 1}", [("Host", "evil.example")]).status == 421)
        #expect(try await named.call("C/add", "{\"a\": 1}", [("Host", "shop.example")]).text == "2")
        try await named.end()
    }

    @Test func `a browser that does not state an origin reaches only routes that state GET`() async throws {
        var module = CModule(name: "Ways")
        module.targets = [
            .init(
                name: "Ways",
                actions: [.init(name: "go", manifest: "\"remote\": true, ", body: "reply(call, \"gone\");")])
        ]
        module.moreManifest = """
            "routes": [
                {"pattern": "http://*/any", "action": "Ways/go"},
                {"pattern": "http://*/stated", "action": "Ways/go", "method": "GET"}
            ],
            """
        let library = try module.build()
        let file = try tokens("0123456789abcdef\n")
        let tokens = GatewayConfiguration.Access.tokens(try BearerTokens(file: file))
        for access in [.loopback, .everyone, tokens] as [GatewayConfiguration.Access] {
            let gateway = try await TestGateway([library]) { configuration, _ in configuration.access = access }
            var own: [(String, String)] = []
            if case .tokens = access { own = [("Authorization", "Bearer 0123456789abcdef")] }
            for browser in [("User-Agent", "Mozilla/5.0 (old)"), ("Accept-Language", "de")] {
                for method in ["GET", "HEAD"] {
                    let answer = try await gateway.ask(method, "/any", headers: own + [browser])
                    #expect(answer.status == (own.isEmpty ? 403 : 200), "\(access) \(browser) \(method)")
                }
                #expect(try await gateway.get("/stated", own + [browser]).text == "\"gone\"")
                for site in ["same-origin", "none"] {
                    let known = own + [browser, ("Sec-Fetch-Site", site)]
                    #expect(try await gateway.get("/any", known).text == "\"gone\"", "\(site)")
                }
                // Such a browser does not state the origin of a POST without a body, either.
                let posted = try await gateway.ask("POST", "/any", headers: own + [browser])
                #expect(posted.status == (own.isEmpty ? 415 : 200))
            }
            // Web pages cannot make other programs send requests.
            for program in [("User-Agent", "curl/8"), ("Accept-Language", "*"), ("Accept", "*/*")] {
                #expect(try await gateway.get("/any", own + [program]).text == "\"gone\"", "\(program)")
            }
            try await gateway.end()
        }
    }

    @Test func `calls in flight are limited for a module and in all`() async throws {
        let folder = try makeFolder()
        let lab = try labModule.build()
        let gateway = try await TestGateway([lab] + TestGateway.samples) { configuration, _ in
            (configuration.callLimit, configuration.moduleCallLimit) = (3, 2)
        }
        async let first = gateway.call("Lab/sleep", "{\"file\": \"\(folder)/a\"}")
        async let second = gateway.call("Lab/sleep", "{\"file\": \"\(folder)/b\"}")
        let files = FileManager.default
        #expect(
            await becomesTrue { files.fileExists(atPath: "\(folder)/a") && files.fileExists(atPath: "\(folder)/b") })
        let busy = try await gateway.call("Lab/number", "{\"n\": 1}")
        #expect(busy.status == 429)
        #expect(busy.header("Retry-After") == "1")
        // Calls of one module that hang do not affect the others.
        #expect(try await gateway.call("C/add", "{\"a\": 1}").text == "2")
        for name in ["a", "b"] { #expect(files.createFile(atPath: "\(folder)/\(name).go", contents: nil)) }
        #expect(try await first.text == "\"slept\"")
        #expect(try await second.text == "\"slept\"")
        #expect(await becomesTrue { try await gateway.call("Lab/number", "{\"n\": 1}").text == "1" })
        try await gateway.end()
    }

    @Test func `a busy module does not show what is not remote`() async throws {
        let folder = try makeFolder()
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in
            configuration.moduleCallLimit = 1
        }
        async let first = gateway.call("Lab/sleep", "{\"file\": \"\(folder)/a\"}")
        #expect(await becomesTrue { FileManager.default.fileExists(atPath: "\(folder)/a") })
        #expect(try await gateway.call("Lab/number", "{\"n\": 1}").status == 429)
        for name in ["secret", "absent"] { #expect(try await gateway.call("Lab/\(name)", "{}").status == 404) }
        let octets = [("Content-Type", "application/octet-stream")]
        let secret = try await gateway.ask("POST", "/call/Lab/hidden", headers: octets, body: [1])
        let absent = try await gateway.ask("POST", "/call/Lab/absent", headers: octets, body: [1])
        #expect(secret.status == absent.status)
        #expect(FileManager.default.createFile(atPath: "\(folder)/a.go", contents: nil))
        #expect(try await first.text == "\"slept\"")
        #expect(try await !gateway.get("/metrics").text.contains("Lab/secret"))
        try await gateway.end()
    }

    @Test func `the limit in all is 503`() async throws {
        let folder = try makeFolder()
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in configuration.callLimit = 1 }
        async let first = gateway.call("Lab/sleep", "{\"file\": \"\(folder)/a\"}")
        #expect(await becomesTrue { FileManager.default.fileExists(atPath: "\(folder)/a") })
        let busy = try await gateway.call("Lab/number", "{\"n\": 1}")
        #expect(busy.status == 503)
        #expect(busy.code == "overloaded")
        #expect(busy.header("Retry-After") == "1")
        #expect(FileManager.default.createFile(atPath: "\(folder)/a.go", contents: nil))
        #expect(try await first.text == "\"slept\"")
        try await gateway.end()
    }

    @Test func `without tokens, requests of other machines and of unknown connections are refused`() async throws {
        let gateway = PluginGateway(PluginHost(HostConfiguration(folders: [])))
        /// Returns the status for a client with this address; `nil` for a connection that is not known.
        func status(_ address: String?) async throws -> Int {
            var connection: Connection?
            if let address {
                let channel = NIOAsyncTestingChannel()
                try await channel.connect(to: SocketAddress(ipAddress: address, port: 5000))
                connection = Connection(channel)
            }
            let head = HTTPRequest(method: .get, scheme: "http", authority: "localhost", path: "/metrics")
            let request = Request(head: head, body: RequestBody(buffer: ByteBuffer()))
            return await gateway.respond(to: request, connection: connection).status.code
        }
        for own in ["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1"] {
            #expect(try await status(own) == 200, "\(own)")
        }
        for other in ["126.255.255.255", "128.0.0.1", "192.0.2.7", "2001:db8::1", "::2", "::ffff:192.0.2.7", nil] {
            #expect(try await status(other) == 403, "\(other ?? "unknown")")
        }
    }

    @Test func `a router whose context does not know the connection serves nobody without tokens`() async throws {
        let gateway = PluginGateway(PluginHost(HostConfiguration(folders: [])))
        let router = Router(context: BasicRequestContext.self)
        gateway.mount(in: router)
        let port = Mutex<Int?>(nil)
        let application = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in port.withLock { $0 = channel.localAddress?.port } })
        let running = Task { try await application.run() }
        #expect(await becomesTrue { port.withLock { $0 } != nil })
        let client = TestClient(port: port.withLock { $0 } ?? 0)
        let answer = try await client.ask("GET", "/metrics")
        #expect(answer.status == 403 && answer.code == "forbidden", "\(answer.text)")
        #expect(try await client.ask("GET", "/healthz").status == 200)
        running.cancel()
        try? await running.value
    }
}
