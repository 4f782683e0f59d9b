import Foundation
import PluginABI
import PluginGateway
import PluginHost
import Testing
import Tracing

@testable import RemoteModules

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

    @Test func `a chain is one entry, whatever the others are`() throws {
        func extended(_ state: String, limit: Int = 16) throws -> String {
            try CallChain.extend(TraceContext(tracestate: state), through: 7, "B/greet", limit: limit).tracestate
        }
        let own = try extended("")
        #expect(own.utf8.count == "pluginhost=".utf8.count + 16)
        #expect(try CallChain.extend(nil, through: 7, "B/greet", limit: 1).tracestate == own)
        let other = "pluginhost=0123456789abcdef"
        #expect(try extended(" a=1 , \(other),b=2") == "\(other)\(own.dropFirst(11)),a=1,b=2")
        // An invalid chain is replaced by a new one.
        for state in [
            "pluginhost=", "pluginhost=012", "pluginhost=0123456789ABCDEF", "pluginhost",
            "pluginhost=" + String(repeating: "0", count: 17 * 16),
        ] { #expect(try extended(state) == own, "\(state)") }
        #expect(throws: PluginError.self) { try extended(own) }
        #expect(throws: PluginError.self) { try extended("a=1,\(other)\(own.dropFirst(11)),b=2") }
        #expect(throws: PluginError.self) { try extended(other, limit: 1) }
        let full = "pluginhost=" + (0..<16).map { "000000000000000" + String($0, radix: 16) }.joined()
        let error = #expect(throws: PluginError.self) { try extended(full, limit: 100) }
        #expect(error?.code == .recursionLimit)
        // Whatever others have added, the result stays within the bounds of a trace.
        let long = (0..<40).map { "vendor\($0)=xxxxxxxxxxxxxxxx" }.joined(separator: ",")
        #expect(try extended(long).hasPrefix(own + ","))
    }

    @Test func `a call passes two mounts, with its trace and its deadline`() async throws {
        let last = try await TestGateway([bModule().build()])
        let middle = try await TestGateway([])
        let second = try await TestMount(of: last, in: middle.gateway.host) { $0.isReexported = true }
        let first = try await TestMount(of: middle)
        #expect(try await first.perform("greet", ["name": "x"]) == "x")
        // The gateways have a different timeout, of 60 seconds.
        let left = try await first.perform("left", timeout: .seconds(100)).int ?? 0
        #expect(left > 70_000 && left < 100_100, "\(left)")

        let trace = TraceContext(isSampled: true, tracestate: "vendor=1")
        let seen = try await onThread {
            try first.host.withCallContext(CallContext(trace: trace)) { try $0.perform("B", "trace") }
        }
        let parts = seen.string?.split(separator: " ").map(String.init) ?? []
        #expect(parts.first == trace.traceparent)
        // Both mounts are in the chain.
        #expect(parts.last?.hasSuffix(",vendor=1") == true)
        #expect(parts.last?.prefix { $0 != "," }.utf8.count == "pluginhost=".utf8.count + 2 * 16)
        // A call without a trace begins one.
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

    @Test func `hosts that mount a target from each other form a cycle, which is detected`() async throws {
        let a = try await TestGateway([])
        let b = try await TestGateway([bModule().build()])
        // This mount does not notice that the module is removed, and returns from the other side.
        let ofB = try await TestMount(of: b, in: a.gateway.host) {
            ($0.isReexported, $0.interval) = (true, .seconds(600))
        }
        #expect(await ofB.isServed())
        try FileManager.default.removeItem(atPath: "\(b.plugins)/0.so")
        #expect(await becomesTrue { !b.gateway.host.modules.contains { $0.name == "ModB" } })
        let ofA = try await TestMount(of: a, in: b.gateway.host) { $0.isReexported = true }
        // Each host has the target from the other one.
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
    func `modules that call each other across hosts form a cycle, also with tracers and processes`(
        hasTracer: Bool, isIsolated: Bool
    ) async throws {
        // This tracer does not propagate the state of traces.
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
