import Foundation
import NIOPosix
import PluginABI
import PluginGateway
import PluginHost
import Synchronization
import Testing

@Suite struct CursorTests {
    @Test func `a cursor is sent as lines of JSON`() async throws {
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in configuration.cursorLimit = 5 }
        let answer = try await gateway.call("Lab/cursor", "{\"count\": 3}")
        #expect(answer.header("Content-Type") == "application/jsonl")
        #expect(answer.text == "3\n2\n1\n")
        #expect(try await gateway.call("Lab/cursor", "{\"count\": 0}").text == "")
        let long = try await gateway.call("Lab/cursor", "{\"count\": 100}").text.split(separator: "\n")
        #expect(long.count == 6)
        #expect(try Value(json: String(long[5]))["error"]?["code"] == "overloaded")
        try await gateway.end()
    }

    /// The code in the last line of an answer.
    private func lastCode(_ text: String) throws -> String? {
        try Value(json: String(text.split(separator: "\n").last ?? "null"))["error"]?["code"]?.string
    }

    private func create(_ file: String) { #expect(FileManager.default.createFile(atPath: file, contents: nil)) }

    @Test func `an element that takes too long ends a cursor, whose place is free once it arrives`() async throws {
        let file = try makeFolder() + "/go"
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in configuration.callLimit = 1 }
        let answer = try await gateway.call("Lab/slowCursor", "{\"file\": \"\(file)\"}", [("Timeout", "2")])
        #expect(answer.text.hasPrefix("1\n{"))
        #expect(try lastCode(answer.text) == "deadlineExceeded")
        #expect(try await gateway.call("Lab/number", "{\"n\": 1}").code == "overloaded")
        create(file)
        #expect(await becomesTrue { try await gateway.call("Lab/number", "{\"n\": 1}").text == "1" })
        try await gateway.end()
    }

    @Test func `an open cursor has the place of a call, until its client leaves`() async throws {
        let file = try makeFolder() + "/go"
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in
            configuration.moduleCallLimit = 1
        }
        let (port, body) = (gateway.port, "{\"file\": \"\(file)\"}")
        let socket = try await onThread {
            let socket = try RawSocket(port: port)
            try socket.send(
                "POST /call/Lab/slowCursor HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            var text = ""
            while !text.contains("\r\n1\n"), let part = socket.read() { text += String(decoding: part, as: UTF8.self) }
            return socket
        }
        #expect(try await gateway.call("Lab/number", "{\"n\": 1}").status == 429)
        socket.close()
        create(file)
        #expect(await becomesTrue { try await gateway.call("Lab/number", "{\"n\": 1}").text == "1" })
        try await gateway.end()
    }

    @Test func `an open cursor holds up the end only for a bounded time`() async throws {
        let file = try makeFolder() + "/go"
        let gateway = try await TestGateway([labModule.build()]) { configuration, host in
            (configuration.drainTimeout, host.shutdownTimeout) = (.milliseconds(200), .milliseconds(200))
        }
        async let answer = gateway.call("Lab/slowCursor", "{\"file\": \"\(file)\"}")
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains("gateway_calls_in_flight 1.0") })
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains("slowCursor\",code=\"ok\"} 1") })
        try await gateway.end()
        #expect(try lastCode(try await answer.text) == "hostStopping")
        create(file)
    }

    @Test(arguments: ["application/jsonl", "text/event-stream"])
    func `a long cursor does not keep other connections of its event loop waiting`(type: String) async throws {
        let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let gateway = try await TestGateway([labModule.build()], loops: loops) { configuration, _ in
            (configuration.cursorLimit, configuration.drainTimeout) = (.max, .milliseconds(10))
        }
        let (port, body) = (gateway.port, "{\"count\": 1000000000}")
        let socket = try RawSocket(port: port)
        let parts = Mutex(0)
        let reading = Task {
            try await onThread {
                try socket.send(
                    "POST /call/Lab/cursor HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        + "Accept: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
                while socket.read() != nil { parts.withLock { $0 += 1 } }
            }
        }
        // Elements arrive between the answers, and answers between the elements.
        for _ in 0..<20 {
            let before = parts.withLock(\.self)
            #expect(await becomesTrue { parts.withLock(\.self) > before })
            let answer = try await onThread {
                let other = try RawSocket(port: port)
                try other.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return other.readAll()
            }
            #expect(answer.hasPrefix("HTTP/1.1 200 "))
        }
        socket.close()
        try await reading.value
        try await gateway.end()
        try await loops.shutdownGracefully()
    }

    @Test func `elements are collected, and one that does not come holds none back`() async throws {
        let file = try makeFolder() + "/go"
        let gateway = try await TestGateway([labModule.build()]) { configuration, _ in
            configuration.cursorLimit = 10_000
        }
        // The first element is sent while the second one is awaited.
        let (port, body) = (gateway.port, "{\"file\": \"\(file)\"}")
        let text = try await onThread {
            let socket = try RawSocket(port: port)
            try socket.send(
                "POST /call/Lab/slowCursor HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Connection: close\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            var text = ""
            while !text.contains("\r\n1\n"), let part = socket.read() { text += String(decoding: part, as: UTF8.self) }
            _ = FileManager.default.createFile(atPath: file, contents: nil)
            return text + socket.readAll()
        }
        #expect(text.contains("\r\n1\n\r\n") && text.hasSuffix("0\r\n\r\n"), "\(text)")
        let answer = try await gateway.call("Lab/cursor", "{\"count\": 10000}")
        #expect(answer.text == (1...10_000).reversed().map { "\($0)\n" }.joined())
        try await gateway.end()
    }
}
