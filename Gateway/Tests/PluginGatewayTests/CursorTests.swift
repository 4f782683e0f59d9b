import Foundation
import PluginABI
import PluginGateway
import PluginHost
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

    @Test func `an element that takes too long ends a cursor, whose place is taken until it is there`() async throws {
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
}
