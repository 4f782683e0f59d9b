import Foundation
import PluginABI
import PluginGateway
import PluginHost
import Testing

@Suite struct HostileTests {
    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        "POST /call/C/add HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
        "GET / HTTP/9.9\r\n\r\n", "\u{0}\u{1}\u{2}\r\n\r\n", "GET /\r\n\r\n",
        "G@T / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nBad Header\r\n\r\n",
        "POST /call/C/add HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + String(repeating: "x", count: 200_000) + "\r\n\r\n",
    ])
    func `what is not HTTP ends the connection, and nothing else`(text: String) async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        let answer = try await gateway.raw(text)
        #expect(!answer.hasPrefix("HTTP/1.1 2"), "\(answer)")
        #expect(try await gateway.call("C/add", "{\"a\": 1}").text == "2")
        try await gateway.end()
    }

    @Test func `a body beyond the limit is not read to its end`() async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        let answer = try await gateway.raw(
            "POST /call/C/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "Content-Length: 1073741824\r\n\r\n" + String(repeating: " ", count: 100_000))
        #expect(answer.hasPrefix("HTTP/1.1 413 "))
        let chunk = "10000\r\n" + String(repeating: " ", count: 0x10000) + "\r\n"
        let chunked = try await gateway.raw(
            "POST /call/C/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n" + String(repeating: chunk, count: 40))
        #expect(chunked.hasPrefix("HTTP/1.1 413 "))
        try await gateway.end()
    }

    @Test func `a client that sends its body too slowly is refused`() async throws {
        let gateway = try await TestGateway(TestGateway.samples) { configuration, _ in
            configuration.bodyTimeout = .milliseconds(100)
        }
        let answer = try await gateway.raw(
            "POST /call/C/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        )
        #expect(answer.hasPrefix("HTTP/1.1 408 "), "\(answer)")
        #expect(answer.contains("bodyTimeout"))
        // After a request of the same connection that has arrived to its end.
        let whole =
            "POST /call/C/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + "Content-Length: 8\r\n\r\n{\"a\": 1}"
        let second = try await gateway.raw(whole + whole.dropLast(4))
        #expect(second.hasPrefix("HTTP/1.1 200 "), "\(second)")
        #expect(second.contains("bodyTimeout"), "\(second)")
        try await gateway.end()
    }

    @Test(arguments: [
        "GET /healthz", "GET /events", "POST /nothing", "POST /call/C/add", "GET /metrics", "PUT /readyz",
    ])
    func `a body that nobody reads ends the connection`(line: String) async throws {
        let file = try makeFolder() + "/tokens"
        try Data("0123456789abcdef".utf8).write(to: URL(filePath: file))
        chmod(file, 0o600)
        let access = GatewayConfiguration.Access.tokens(try BearerTokens(file: file))
        let gateway = try await TestGateway(TestGateway.samples) { configuration, _ in configuration.access = access }
        // The client continues to send, and does not ask the gateway to close the connection.
        let answer = try await gateway.raw("\(line) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx")
        #expect(answer.hasPrefix("HTTP/1.1 4"), "\(answer)")
        #expect(answer.lowercased().contains("connection: close\r\n"), "\(answer)")
        try await gateway.end()
    }

    @Test func `half a body makes no call`() async throws {
        let gateway = try await TestGateway([labModule.build()])
        let socket = try RawSocket(port: gateway.port)
        try socket.send(
            "POST /call/Lab/number HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
                + "{\"n\": 1}")
        socket.close()
        #expect(
            await becomesTrue {
                try await gateway.get("/metrics").text.contains("gateway_errors_total{status=\"400\"} 1\n")
            })
        #expect(gateway.gateway.host.statistics.allSatisfy { $0.action != "Lab/number" })
        try await gateway.end()
    }

    @Test func `invalid UTF-8 in a body is refused`() async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        let json = [("Content-Type", "application/json")]
        let body = Array("{\"key\": \"".utf8) + [0xC3, 0x28] + Array("\"}".utf8)
        let answer = try await gateway.ask("POST", "/call/A/fetchDetail", headers: json, body: body)
        #expect(answer.status == 400)
        #expect(answer.code == "invalidValue")
        let utf16 = [("Content-Type", "application/json; charset=utf-16")]
        #expect(try await gateway.ask("POST", "/call/C/add", headers: utf16, body: body).status == 415)
        try await gateway.end()
    }

    @Test func `a module that vanishes during a call lets it finish, and is then gone`() async throws {
        let folder = try makeFolder()
        let gateway = try await TestGateway([try EndTests.waiting(folder).build()])
        async let answer = gateway.call("Slow/wait", "{}")
        #expect(await becomesTrue { FileManager.default.fileExists(atPath: "\(folder)/begun") })
        func isDescribed() async throws -> Bool { try await gateway.get("/openapi.json").text.contains("Slow/wait") }
        #expect(try await isDescribed())
        try FileManager.default.removeItem(atPath: "\(gateway.plugins)/0.so")
        // Not by a call: one that is made before the host has seen the removal waits, too.
        #expect(await becomesTrue { try await !isDescribed() })
        #expect(try await gateway.call("Slow/wait", "{}").status == 404)
        #expect(FileManager.default.createFile(atPath: "\(folder)/go", contents: nil))
        #expect(try await answer.text == "\"done\"")
        try await gateway.end()
    }

    @Test func `an answer of a megabyte reaches a slow reader whole`() async throws {
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in configuration.bodyLimit = 4 << 20
        }
        let text = String(repeating: "x", count: 2 << 20)
        #expect(try await gateway.call("Lab/echo", "{\"value\": \"\(text)\"}").body.count == text.utf8.count + 2)
        try await gateway.end()
    }

    @Test func `the connection of a client that does not read is closed`() async throws {
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in
            (configuration.bodyLimit, configuration.writeTimeout) = (64 << 20, .milliseconds(300))
        }
        let text = String(repeating: "x", count: 16 << 20)
        let port = gateway.port
        let socket = try await onThread {
            let socket = try RawSocket(port: port)
            try socket.send(
                "POST /call/Lab/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Content-Length: \(text.utf8.count + 12)\r\n\r\n{\"value\":\"\(text)\"}")
            return socket
        }
        let ended = "gateway_calls_total{module=\"Lab\",action=\"Lab/echo\",code=\"ok\"} 1\n"
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains(ended) })
        // An open connection would hold up the end.
        try await gateway.end()
        #expect(try await onThread { socket.readAll().utf8.count } < text.utf8.count)
    }

    @Test func `a client that reads slowly, but steadily, gets all of its answer`() async throws {
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in
            (configuration.bodyLimit, configuration.writeTimeout) = (64 << 20, .milliseconds(1500))
        }
        let (text, port) = (String(repeating: "x", count: 16 << 20), gateway.port)
        let count = try await onThread {
            let socket = try RawSocket(port: port, receiveBuffer: 65_536)
            try socket.send(
                "POST /call/Lab/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Connection: close\r\nContent-Length: \(text.utf8.count + 12)\r\n\r\n{\"value\":\"\(text)\"}")
            var count = 0
            while let part = socket.read() {
                count += part.count
                usleep(15_000)
            }
            return count
        }
        #expect(count > text.utf8.count)
        try await gateway.end()
    }

    @Test func `a client that reads a small part of what its system holds is seen to read`() async throws {
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in
            (configuration.bodyLimit, configuration.writeTimeout) = (64 << 20, .milliseconds(1500))
        }
        let (text, port) = (String(repeating: "x", count: 16 << 20), gateway.port)
        let count = try await onThread {
            let socket = try RawSocket(port: port)
            try socket.send(
                "POST /call/Lab/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Connection: close\r\nContent-Length: \(text.utf8.count + 12)\r\n\r\n{\"value\":\"\(text)\"}")
            let end = ContinuousClock.now + .seconds(6)
            var count = 0
            while let part = socket.read(atMost: .now < end ? 16_384 : 65_536) {
                count += part.count
                if .now < end { usleep(50_000) }
            }
            return count
        }
        #expect(count > text.utf8.count)
        try await gateway.end()
    }

    @Test(arguments: ["application/json", "text/event-stream"])
    func `answers that nobody reads are bounded in all`(accept: String) async throws {
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in
            (configuration.bodyLimit, configuration.unsentLimit) = (64 << 20, 1 << 20)
            (configuration.drainTimeout, configuration.writeTimeout) = (.milliseconds(200), .seconds(600))
        }
        try gateway.gateway.host.addRoutes((0..<2000).map { ("app://shop/\($0)/:id", "Lab/item") })
        let (text, port) = (String(repeating: "x", count: 16 << 20), gateway.port)
        // A single answer may be larger.
        var socket: RawSocket? = try await onThread {
            let socket = try RawSocket(port: port, receiveBuffer: 65_536)
            try socket.send(
                "POST /call/Lab/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: \(accept)\r\n"
                    + "Content-Length: \(text.utf8.count + 12)\r\n\r\n{\"value\":\"\(text)\"}")
            return socket
        }
        var metrics = ""
        let isHeld = await becomesTrue {
            metrics = try await gateway.get("/metrics").text
            return metrics.contains("gateway_unsent_bytes \(accept == "application/json" ? 16_777_218 : 16_777_240).0")
        }
        #expect(isHeld, "\(metrics)")
        let large = try await gateway.call("Lab/echo", "{\"value\": \"\(text.prefix(100_000))\"}")
        #expect(large.status == 503)
        #expect(large.code == "overloaded")
        let events = try await gateway.call(
            "Lab/echo", "{\"value\": \"\(text.prefix(100_000))\"}", [("Accept", "text/event-stream")])
        #expect(events.text.hasPrefix("event: error\n") && events.text.contains("overloaded"))
        #expect(try await gateway.get("/page/routes").code == "overloaded")
        #expect(try await gateway.call("Lab/echo", "{\"value\": 1}").text == "1")
        // The socket is closed with unread data, which resets the connection.
        withExtendedLifetime(socket) {}
        socket = nil
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains("gateway_unsent_bytes 0.0") })
        #expect(try await gateway.call("Lab/echo", "{\"value\": \"\(text.prefix(100_000))\"}").status == 200)
        try await gateway.end()
    }

    @Test(arguments: [
        ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: other.example\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        ("GET http://other.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 400),
        ("GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 400),
        ("OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 400),
        ("POST /call/C/add HTTP/1.1\r\nHost: localhost\r\nExpect: 200-ok\r\nContent-Length: 9\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 200),
    ])
    func `targets and headers that could mean two things are refused`(text: String, status: Int) async throws {
        let gateway = try await TestGateway([])
        let answer = try await gateway.raw(text)
        #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
        try await gateway.end()
    }

    @Test func `a client that waits before it sends its body is told to go on, unless it is too large`() async throws {
        let gateway = try await TestGateway(TestGateway.samples) { configuration, _ in configuration.bodyLimit = 1000 }
        let port = gateway.port
        func head(_ length: Int) -> String {
            "POST /call/C/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
                + "Expect: 100-continue\r\nContent-Length: \(length)\r\n\r\n"
        }
        let small = head(8)
        let answer = try await onThread {
            let socket = try RawSocket(port: port)
            try socket.send(small)
            let first = String(decoding: socket.read() ?? [], as: UTF8.self)
            try socket.send("{\"a\": 1}")
            return [first, socket.readAll()]
        }
        #expect(answer[0] == "HTTP/1.1 100 Continue\r\n\r\n")
        #expect(answer[1].hasPrefix("HTTP/1.1 200 ") && answer[1].hasSuffix("\r\n2"), "\(answer)")
        let large = try await gateway.raw(head(1001))
        #expect(large.hasPrefix("HTTP/1.1 413 "), "\(large)")
        try await gateway.end()
    }

    @Test func `many connections at once`() async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        // Each connection takes two descriptors of this process.
        var limits = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits)
        let idle = try (0..<min(1000, Int(limits.rlim_cur) / 4)).map { _ in try RawSocket(port: gateway.port) }
        #expect(try await gateway.call("C/add", "{\"a\": 1}").text == "2")
        for socket in idle { socket.close() }
        try await gateway.end()
    }
}
