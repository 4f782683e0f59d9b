import AsyncHTTPClient
import Foundation
import NIOCore
import PluginABI
import PluginGateway
import PluginHost
import Synchronization
import Testing

/// An event stream, and the events that it has delivered.
private final class EventReader: Sendable {
    private let received = Mutex("")
    private let reading = Mutex<Task<Void, Never>?>(nil)

    init(_ gateway: TestGateway, after id: String? = nil) {
        let request = gateway.request("GET", "/events", id.map { [("Last-Event-ID", $0)] } ?? [])
        let task = Task { [weak self] in
            do {
                let response = try await HTTPClient.shared.execute(request, timeout: .seconds(300))
                if response.status != .ok { self?.add("status \(response.status.code)") }
                for try await part in response.body { self?.add(String(buffer: part)) }
            } catch { self?.add("") }
        }
        reading.withLock { $0 = task }
    }

    deinit { close() }

    private func add(_ text: String) { received.withLock { $0 += text } }
    func close() { reading.withLock { $0 }?.cancel() }
    var text: String { received.withLock { $0 } }
}

@Suite struct OperationTests {
    private func ids(_ text: String) -> [String] {
        text.split(separator: "\n").filter { $0.hasPrefix("id: ") }.map { String($0.dropFirst(4)) }
    }

    @Test func `what happens to modules is sent, and resumed after the last event`() async throws {
        let gateway = try await TestGateway([])
        let stream = EventReader(gateway)
        #expect(await becomesTrue { stream.text == ": open\n\n" })
        for name in ["One", "Two"] {
            try CModule(name: name).build(into: gateway.plugins, as: "\(name).so")
            #expect(await becomesTrue { stream.text.contains("\"module\":\"\(name)\"") })
        }
        #expect(stream.text.contains("event: added\ndata: {") && stream.text.contains("\"time\":1"))
        try FileManager.default.removeItem(atPath: "\(gateway.plugins)/Two.so")
        #expect(await becomesTrue { stream.text.contains("event: removed\ndata: {") })
        #expect(!stream.text.contains(gateway.folder) && !stream.text.contains("Two.so"))
        let known = ids(stream.text)
        #expect(known.count >= 2)
        let again = EventReader(gateway, after: known[0])
        #expect(await becomesTrue { ids(again.text).starts(with: known.dropFirst()) })
        // The id is of another run: all events that are kept are sent.
        let all = EventReader(gateway, after: "other-7")
        #expect(await becomesTrue { ids(all.text).starts(with: known) })
        #expect(try await gateway.get("/events", [("Last-Event-ID", "x")]).code == "invalidHeader")
        try await gateway.end()
    }

    @Test func `streams have heartbeats and a limit, and tell what was missed`() async throws {
        let gateway = try await TestGateway([]) { configuration, _ in
            (configuration.heartbeat, configuration.streamLimit) = (.milliseconds(50), 1)
            configuration.keptEvents = 2
        }
        let stream = EventReader(gateway)
        #expect(await becomesTrue { stream.text.hasPrefix(": open\n\n:\n\n:\n\n") })
        let refused = try await gateway.get("/events")
        #expect(refused.status == 503)
        #expect(refused.header("Retry-After") == "10")
        for number in 1...5 {
            gateway.gateway.host.updateConfiguration(["M": .int(number)])
            #expect(
                await becomesTrue { stream.text.components(separatedBy: "configurationChanged").count == number + 1 })
        }
        stream.close()
        // The slot of the first stream is free once the gateway has noticed its end.
        #expect(
            await becomesTrue {
                let late = EventReader(gateway, after: "other-0")
                defer { late.close() }
                _ = await becomesTrue { !late.text.isEmpty }
                return late.text.contains("event: missed\ndata: {\"count\":3}")
            })
        try await gateway.end()
    }

    @Test func `a client that leaves its event stream frees the place at once`() async throws {
        let gateway = try await TestGateway([]) { configuration, _ in
            (configuration.heartbeat, configuration.streamLimit) = (.seconds(600), 1)
        }
        let stream = EventReader(gateway)
        #expect(await becomesTrue { stream.text == ": open\n\n" })
        #expect(try await gateway.get("/events").status == 503)
        stream.close()
        #expect(await becomesTrue { try await gateway.get("/metrics").text.contains("gateway_event_streams 0.0") })
        try await gateway.end()
    }

    @Test func `metrics count calls by module and action, and have a bound`() async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        for _ in 1...3 { _ = try await gateway.call("C/add", "{\"a\": 1}") }
        _ = try await gateway.call("C/add", "{}")
        for number in 1...50 { _ = try await gateway.call("Nobody/action\(number)", "{}") }
        let text = try await gateway.get("/metrics").text
        #expect(text.contains("# TYPE gateway_calls_total counter\n"))
        #expect(text.contains("gateway_calls_total{module=\"ModuleC\",action=\"C/add\",code=\"ok\"} 3\n"))
        #expect(text.contains("gateway_calls_total{module=\"ModuleC\",action=\"C/add\",code=\"missingParameter\"} 1\n"))
        #expect(text.contains("gateway_errors_total{status=\"404\"} 50\n"))
        #expect(text.contains("gateway_call_seconds_count{module=\"ModuleC\",action=\"C/add\"} 4\n"))
        #expect(text.contains("plugin_generations{state=\"active\"} 3.0\n"))
        #expect(!text.contains("action1\""))
        try await gateway.end()
    }

    @Test func `the registry drops further series and counts them`() {
        let metrics = PrometheusMetrics(limit: 2)
        for number in 1...5 {
            metrics.makeCounter(label: "a.b", dimensions: [("n\"", "x\"\n\(number)")]).increment(by: 2)
        }
        metrics.makeTimer(label: "a.b", dimensions: []).recordNanoseconds(1)
        #expect(
            metrics.text == """
                # TYPE a_b counter
                a_b{n_="x\\"\\n1"} 2
                a_b{n_="x\\"\\n2"} 2
                # TYPE metrics_series_dropped_total counter
                metrics_series_dropped_total 4

                """)
    }

    @Test func `the description changes with the modules`() async throws {
        let gateway = try await TestGateway([labModule.build()])
        let document = try await gateway.get("/openapi.json").json
        #expect(document["openapi"] == "3.1.0")
        let paths = document["paths"]?.map ?? [:]
        #expect(paths["/call/Lab/number"]?["post"]?["requestBody"]?["required"] == true)
        #expect(paths["/call/Lab/secret"] == nil)
        #expect(paths["/call/Lab/cursor"]?["post"]?["responses"]?["200"]?["content"] == ["application/jsonl": [:]])
        try CModule(name: "Late", moreManifest: "").build(into: gateway.plugins, as: "late.so")
        try copyFile(TestGateway.samples[2], to: "\(gateway.plugins)/c.so")
        #expect(
            await becomesTrue { try await gateway.get("/openapi.json").json["paths"]?["/call/C/add"] != nil })
        try await gateway.end()
    }
}
