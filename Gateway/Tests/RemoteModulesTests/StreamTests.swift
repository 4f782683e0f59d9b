import Foundation
import PluginABI
import PluginHost
import RemoteModules
import Synchronization
import Testing

/// Cursors and callbacks across hosts.
@Suite struct StreamTests {
    @Test func `a cursor is an object with next`() async throws {
        let gateway = try await TestGateway([bModule().build()])
        let mount = try await TestMount(of: gateway)
        let cursor = try #require(try await mount.perform("items", ["count": 3]).object)
        let values = try await onThread { try (0..<5).map { _ in try cursor.perform("next") } }
        // The declared type of the elements is double.
        #expect(values == [.double(3), .double(2), .double(1), nil, nil])
        let later = try #require(try await mount.perform("laters", ["count": 2]).object)
        #expect(try await onThread { try? later.perform("next") } == nil)
        var elements: [Value] = []
        for _ in 0..<3 { elements.append(try await later.call("next")) }
        #expect(elements == [2, 1, nil])
        let empty = try #require(try await mount.perform("items", ["count": 0]).object)
        #expect(try await onThread { try empty.perform("next") } == nil)
        // An error before the first element is the error of the call.
        #expect(await mount.error("items", ["count": -1])?.code == "broken")
        #expect(await becomesTrue { mount.remote.status.callsInFlight == 0 })
        try await mount.end()
        try await gateway.end()
    }

    @Test func `a cursor that nobody reads or holds does not fill the memory, and frees its place`() async throws {
        let gateway = try await TestGateway([bModule().build()]) { configuration, _ in
            configuration.cursorLimit = 10_000_000
        }
        let mount = try await TestMount(of: gateway) { $0.callLimit = 1 }
        var cursor = try await mount.perform("items", ["count": 10_000_000]).object
        #expect(await mount.error("greet", ["name": "x"])?.code == .overloaded)
        let first = try await onThread { [cursor] in try cursor?.perform("next") }
        #expect(first == .double(10_000_000))
        cursor = nil
        #expect(await becomesTrue { mount.remote.status.callsInFlight == 0 })
        #expect(try await mount.perform("greet", ["name": "x"]) == "x")
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains("gateway_calls_in_flight 0") })
        try await mount.end()
        try await gateway.end()
    }

    @Test(arguments: [
        ("1\n{\"error\":{\"code\":\"gone\",\"message\":\"No.\"}}\n", "gone"), ("1\n{\"a\":", "moduleUnavailable"),
        ("1\nno JSON\n", "moduleUnavailable"), ("1\n{\"error\":{\"code\":\"x\"}}\n2\n", nil),
        ("1\n{\"error\":7}\n", nil),
    ])
    func `errors within a cursor are those of next`(lines: String, code: String?) async throws {
        let balancer = try FakeBalancer { _, _ in .last(FakeBalancer.ok(lines, type: "application/jsonl")) }
        let mount = try TestMount(balancer.url)
        #expect(await mount.isServed())
        let cursor = try #require(try await mount.perform("items").object)
        let result = try await onThread { () -> (values: [Value], error: PluginError?) in
            var values: [Value] = []
            do throws(PluginError) {
                while values.count < 9, case let value = try cursor.perform("next"), !value.isNull {
                    values.append(value)
                }
                return (values, nil)
            } catch {
                return (values, error)
            }
        }
        #expect(result.values.first == 1)
        #expect(result.error?.code.rawValue == code)
        if code == nil { #expect(result.values.count == lines.split(separator: "\n").count) }
        try await mount.end()
        balancer.end()
    }

    @Test func `an element that does not come ends the cursor at the deadline`() async throws {
        let balancer = try FakeBalancer { _, _ in
            .text(
                "HTTP/1.1 200 OK\r\nContent-Type: application/jsonl\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n1\n\r\n")
        }
        let mount = try TestMount(balancer.url)
        #expect(await mount.isServed())
        let cursor = try #require(try await mount.perform("items").object)
        #expect(try await onThread { try cursor.perform("next") } == 1)
        let late = await #expect(throws: PluginError.self) {
            try await onThread { try cursor.perform("next", timeout: .milliseconds(200)) }
        }
        #expect(late?.code == .deadlineExceeded)
        #expect(await becomesTrue { mount.remote.status.callsInFlight == 0 })
        try await mount.end()
        balancer.end()
    }

    @Test func `callbacks are called in order, and the result comes after them`() async throws {
        let gateway = try await TestGateway([bModule().build()])
        let mount = try await TestMount(of: gateway)
        let arguments = Mutex<[[Value]]>([])
        let callback = mount.host.callback { values in
            arguments.withLock { $0.append(values) }
            return .null
        }
        #expect(try await mount.perform("count", ["times": 20, "then": callback]) == 20)
        #expect(arguments.withLock(\.self) == (0..<20).map { [.int($0)] })
        #expect(try await mount.perform("count", ["times": 0, "then": callback]) == 0)
        // Its errors do not reach the other side.
        let failing = mount.host.callback { _ in throw PluginError("no", "No.") }
        #expect(try await mount.perform("count", ["times": 2, "then": failing]) == 2)
        try await mount.end()
        try await gateway.end()
    }

    @Test(arguments: [
        ("event: c0\ndata: [1]\n\nevent: result\ndata: 5\n\n", nil), ("event: c0\ndata: [1]\n\n", "moduleUnavailable"),
        ("event: c0\ndata: [\n\nevent: result\ndata: 5\n\n", "moduleUnavailable"),
        ("event: error\ndata: {\"code\":\"gone\"}\n\n", "gone"), ("event: error\ndata: 7\n\n", "moduleUnavailable"),
        (":\n\nevent: unknown\ndata: x\n\nevent: result\r\ndata: 5\r\n\r\n", nil), ("", "moduleUnavailable"),
    ])
    func `events that are not complete are errors`(events: String, code: String?) async throws {
        let offers = FakeBalancer.offers.replacing(
            "\"name\": \"once\"",
            with:
                "\"name\": \"once\", \"idempotent\": true, \"parameters\": [{\"name\": \"then\", \"type\": \"object\"}]"
        )
        let balancer = try FakeBalancer(offers: offers) { _, _ in
            .last(FakeBalancer.ok(events, type: "text/event-stream"))
        }
        let mount = try TestMount(balancer.url)
        #expect(await mount.isServed())
        let callback = mount.host.callback { _ in .null }
        let error = await mount.error("once", ["then": callback])
        #expect(error?.code.rawValue == code)
        // An action whose callbacks were called is not called again.
        #expect(balancer.calls.count == (events.isEmpty ? 2 : 1))
        try await mount.end()
        balancer.end()
    }

    @Test func `what is left of half an answer does not get into the second one`() async throws {
        let offers = FakeBalancer.offers.replacing(
            "\"name\": \"again\"",
            with: "\"name\": \"again\", \"parameters\": [{\"name\": \"then\", \"type\": \"object\"}]")
        // Half an event, with a line and the beginning of another one.
        let half = "event: result\ndata: 4"
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\n"
        let second = FakeBalancer.ok("event: result\ndata: 2\n\n", type: "text/event-stream")
        for half in [half, half + "\n"] {
            let balancer = try FakeBalancer(offers: offers) { _, number in
                number == 1 ? .last(head + half) : .text(second)
            }
            let mount = try TestMount(balancer.url)
            #expect(await mount.isServed())
            let callback = mount.host.callback { _ in .null }
            #expect(try await mount.perform("again", ["then": callback]) == 2)
            #expect(balancer.calls.count == 2)
            try await mount.end()
            balancer.end()
        }
    }
}
