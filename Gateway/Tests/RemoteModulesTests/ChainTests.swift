import Foundation
import PluginABI
import PluginGateway
import PluginHost
import RemoteModules
import Testing
import Tracing

/// Calls that pass several hosts.
@Suite struct ChainTests {
    /// A module whose action calls another one.
    private func caller(_ target: String, calling other: String) -> CModule {
        var module = CModule(name: "Mod\(target)")
        module.targets = [
            .init(
                name: target,
                actions: [
                    .init(
                        name: "ping", manifest: "\"remote\": true, ",
                        body: """
                            plugin_request request = ask("\(other)", "ping");
                            host->perform(host, call->token, &request, pass_on, (void *)call->token);
                            """)
                ])
        ]
        return module
    }

    @Test func `a call passes two mounts, with its trace and its deadline`() async throws {
        let last = try await TestGateway([bModule().build()])
        let middle = try await TestGateway([])
        let second = try await TestMount(of: last, in: middle.gateway.host) { $0.isReexported = true }
        let first = try await TestMount(of: middle)
        #expect(try await first.perform("greet", ["name": "x"]) == "x")
        let left = try await first.perform("left", timeout: .seconds(100)).int ?? 0
        #expect(left > 1000 && left < 100_100, "\(left)")

        let trace = TraceContext(isSampled: true, tracestate: "vendor=1")
        let seen = try await onThread {
            try first.host.withCallContext(CallContext(trace: trace)) { try $0.perform("B", "trace") }
        }
        let parts = seen.string?.split(separator: " ").map(String.init) ?? []
        #expect(parts.first == trace.traceparent)
        // Both mounts are in the chain.
        #expect(parts.last?.hasSuffix(",vendor=1") == true)
        #expect(parts.last?.prefix { $0 != "," }.utf8.count == "pluginhost=".utf8.count + 2 * 16)
        // Without a trace, one begins.
        #expect(try await first.perform("trace").string?.hasPrefix("00-") == true)
        try await first.end()
        try await second.end()
        try await middle.end()
        try await last.end()
    }

    @Test func `a call passes no more mounts than the limit`() async throws {
        let last = try await TestGateway([bModule().build()])
        let middle = try await TestGateway([])
        let second = try await TestMount(of: last, in: middle.gateway.host) {
            ($0.isReexported, $0.hopLimit) = (true, 1)
        }
        let first = try await TestMount(of: middle)
        #expect(await first.error("greet", ["name": "x"])?.code == .recursionLimit)
        #expect(second.remote.status.sent == 0)
        try await first.end()
        try await second.end()
        try await middle.end()
        try await last.end()
    }

    @Test func `hosts that mount a target from each other are a circle, which is found`() async throws {
        let a = try await TestGateway([])
        let b = try await TestGateway([bModule().build()])
        let ofB = try await TestMount(of: b, in: a.gateway.host) { $0.isReexported = true }
        try FileManager.default.removeItem(atPath: "\(b.plugins)/0.so")
        #expect(await becomesTrue { !b.gateway.host.modules.contains { $0.name == "ModB" } })
        let ofA = try await TestMount(of: a, in: b.gateway.host) { $0.isReexported = true }
        // Each has it from the other one.
        #expect(await ofB.isServed())
        let error = await ofB.error("greet", ["name": "x"])
        #expect(error?.code == .circularCall, "\(error.map { "\($0)" } ?? "")")
        #expect(error?.message.contains("2 mounts") == true)
        #expect(ofA.remote.status.sent == 1 && ofB.remote.status.sent == 1)
        try await ofA.end()
        try await ofB.end()
        try await a.end()
        try await b.end()
    }

    @Test(arguments: [false, true], [false, true])
    func `modules that call each other across hosts are a circle, also with tracers and processes`(
        hasTracer: Bool, isIsolated: Bool
    ) async throws {
        // This tracer does not hand on the state of traces.
        func gateway(_ module: CModule) async throws -> TestGateway {
            try await TestGateway([module.build()], tracer: hasTracer ? W3CTracer() : NoOpTracer()) { _, host in
                guard isIsolated else { return }
                host.isolation.modules = .named(["ModX", "ModY"])
                host.isolation.workerPath = "\(buildFolder)/pluginhost-gateway"
            }
        }
        let a = try await gateway(caller("X", calling: "Y"))
        let b = try await gateway(caller("Y", calling: "X"))
        let ofB = try await TestMount(of: b, ["Y"], in: a.gateway.host)
        let ofA = try await TestMount(of: a, ["X"], in: b.gateway.host)
        #expect(await ofB.isServed())
        let answer = try await a.call("X/ping", "{}")
        #expect(answer.code == "circularCall", "\(answer.text)")
        #expect(ofA.remote.status.sent == 1 && ofB.remote.status.sent == 1)
        // The next call is not affected.
        #expect(try await a.call("X/ping", "{}").code == "circularCall")
        #expect(ofA.remote.status.sent == 2 && ofB.remote.status.sent == 2)
        try await ofA.end()
        try await ofB.end()
        try await a.end()
        try await b.end()
    }
}
