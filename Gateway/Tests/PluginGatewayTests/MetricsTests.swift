import Foundation
import PluginABI
import PluginGateway
import PluginHost
import Testing

@Suite struct MetricsTests {
    private static let readMe = URL(filePath: #filePath).appending(path: "../../../README.md").standardized

    /// The text behind a metric with its labels.
    private func value(_ name: String, _ text: String) -> String? {
        text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }?.split(separator: " ").last.map(String.init)
    }

    @Test func `the durations of calls are counted in cumulative buckets`() async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        for _ in 1...3 { _ = try await gateway.call("C/add", "{\"a\": 1}") }
        let text = try await gateway.get("/metrics").text
        let labels = "{module=\"ModuleC\",action=\"C/add\","
        let buckets = text.split(separator: "\n").filter { $0.hasPrefix("gateway_call_seconds_bucket\(labels)") }
        let bounds = buckets.map { $0.split(separator: "\"")[5] }
        #expect(
            bounds == [
                "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5",
                "5.0", "10.0", "30.0", "+Inf",
            ])
        let counts = try buckets.map { try #require(Int($0.split(separator: " ").last ?? "")) }
        #expect(counts == counts.sorted() && counts.last == 3, "\(counts)")
        #expect(text.contains("# TYPE gateway_call_seconds histogram\n"))
        try await gateway.end()
    }

    @Test func `the table in the README has the names of all metrics`() async throws {
        let gateway = try await TestGateway([labModule.build()])
        _ = try await gateway.call("Lab/number", "{\"n\": 1}")
        _ = try await gateway.call("Lab/absent", "{}")
        try CModule(name: "Spare").build(into: gateway.plugins, as: "spare.so")
        #expect(
            await becomesTrue {
                try await gateway.get("/metrics").text.contains("plugin_changes_total{event=\"added\"} 1")
            }
        )
        let text = try await gateway.get("/metrics").text
        let names = text.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }.map { $0.split(separator: " ")[2] }
        let readMe = try String(contentsOf: Self.readMe, encoding: .utf8)
        let section = try #require(readMe.components(separatedBy: "\n## ").first { $0.hasPrefix("Metrics\n") })
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("| `") }
        let listed = rows.flatMap { row in
            row.split(separator: "|")[0].split(separator: "`").filter { $0.contains("_") }
        }
        #expect(listed.sorted() == names.sorted())
        try await gateway.end()
    }

    @Test func `replacements, generations, modules and held objects of modules are counted`() async throws {
        let gateway = try await TestGateway([labModule.build()])
        func metrics() async throws -> String { try await gateway.get("/metrics").text }
        #expect(value("plugin_modules{state=\"active\"}", try await metrics()) == "1.0")
        #expect(value("plugin_objects_held", try await metrics()) == "0.0")
        #expect(value("plugin_restarts", try await metrics()) == "0.0")
        let file = try makeFolder() + "/end"
        async let lines = gateway.call("Lab/slowCursor", "{\"file\": \"\(file)\"}")
        #expect(await becomesTrue { value("plugin_objects_held", try await metrics()) == "1.0" })
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        #expect(try await lines.text == "1\n")
        #expect(await becomesTrue { value("plugin_objects_held", try await metrics()) == "0.0" })

        for version in ["1.0.0", "1.1.0"] {
            try CModule(name: "Spare", version: version).build(into: gateway.plugins, as: "spare.so")
            let event = version == "1.0.0" ? "added" : "replaced"
            #expect(await becomesTrue { value("plugin_changes_total{event=\"\(event)\"}", try await metrics()) == "1" })
        }
        #expect(value("plugin_generations{state=\"active\"}", try await metrics()) == "2.0")
        try await gateway.end()
    }

    @Test func `crashes and restarts of isolated modules are counted`() async throws {
        var module = CModule(name: "Crashing")
        module.targets = [
            .init(
                name: "Crashing", actions: [.init(name: "crash", manifest: "\"remote\": true, ", body: "abort();")])
        ]
        let gateway = try await TestGateway([module.build()]) { _, host in
            host.isolation.modules = .all
            host.isolation.workerPath = "\(buildFolder)/pluginhost-gateway"
        }
        #expect(try await gateway.call("Crashing/crash", "{}").status == 502)
        #expect(await becomesTrue { value("plugin_restarts", try await gateway.get("/metrics").text) == "1.0" })
        for event in ["crashed", "restarted"] {
            let name = "plugin_changes_total{event=\"\(event)\"}"
            #expect(await becomesTrue { value(name, try await gateway.get("/metrics").text) == "1" }, "\(event)")
        }
        try await gateway.end()
    }
}
