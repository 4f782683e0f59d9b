import Foundation
import HTTPTypes
import Hummingbird
import Testing

@testable import PluginGateway
@testable import PluginGatewayFleet

/// What a host sees of the calls of a new version.
@Suite(.enabled(if: hasEtcd, "The tests of fleets need etcd."))
struct ObservationTests {
    /// Calls the module of a member by HTTP, without a network.
    private static func call(_ gateway: PluginGateway) async -> Int {
        let request = Request(
            head: HTTPRequest(method: .post, scheme: "http", authority: "a", path: "/call/Good/hang"),
            body: RequestBody(buffer: ByteBuffer()))
        return await gateway.respond(to: request).status.code
    }

    @Test func `latencies are compared with those of the version before only`() async throws {
        let fleet = try await TestFleet()
        try copyFile(TestMember.file("2.0.0"), to: "\(fleet.folder)/store/Good-2.0.0.so")
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        let tally = try #require(member.gateway.tallies.module("Good"))
        func call(_ duration: Duration) {
            for _ in 0..<20 { tally.end(tally.begin(.now), nil, duration.nanoseconds) }
        }
        // Of the version before that one.
        call(.seconds(1))
        _ = try await fleet.rollOut(try fleet.release("1.1.0"))
        #expect(try await fleet.end()?.state == .done)
        call(.milliseconds(2))
        var limits = RolloutRecord.Limits()
        limits.maximumLatencyRatio = 4
        _ = try await fleet.control.rollOut("Good", try fleet.release("2.0.0"), drain: 0, soak: 30, limits: limits)
        #expect(await becomesTrue { try await fleet.control.snapshot().rollout?.steps["host1"]?.state == .observing })
        // The observation begins a moment after it is announced.
        #expect(
            await becomesTrue {
                call(.milliseconds(100))
                return try await fleet.control.snapshot().rollout?.state != .running
            })
        let end = try #require(try await fleet.end())
        #expect(end.state == .rolledBack, "\(end)")
        #expect(end.reason?.contains("the limit is 4.0 times as long") == true, "\(end)")
        #expect(member.version == "1.1.0")
        try await member.end()
    }

    @Test func `a version whose calls hang is rolled back`() async throws {
        let fleet = try await TestFleet()
        // A call hangs until the test ends or writes the file.
        var module = CModule(version: "2.0.0")
        let gate = "\(fleet.folder)/open"
        module.isSealed = true
        module.targets = [
            .init(
                name: "Good",
                actions: [
                    .init(
                        name: "hang", manifest: "\"remote\": true, ", parameters: [:],
                        body: "while (access(\"\(gate)\", F_OK)) usleep(10000); reply(call, \"yes\");")
                ])
        ]
        try copyFile(module.build(), to: "\(fleet.folder)/store/Good-2.0.0.so")
        let member = try await fleet.start("host1")
        #expect(await becomesTrue { try await fleet.control.snapshot().hosts.count == 1 })
        let gateway = member.gateway
        _ = try await fleet.control.rollOut("Good", try fleet.release("2.0.0"), drain: 0, soak: 10, limits: .init())
        #expect(await becomesTrue { try await fleet.control.snapshot().rollout?.steps["host1"]?.state == .observing })
        // The observation begins a moment after it is announced, and only calls that begin later count.
        var calls: [Task<Int, Never>] = []
        for _ in 0..<12 {
            calls += (0..<5).map { _ in Task { await Self.call(gateway) } }
            try await Task.sleep(for: .milliseconds(250))
            guard try await fleet.control.snapshot().rollout?.state == .running else { break }
        }
        let end = try #require(try await fleet.end(.rollingBack))
        #expect(end.reason?.contains(" calls ") == true, "\(end)")
        try Data().write(to: URL(filePath: gate))
        for call in calls { #expect(await call.value == 200) }
        #expect(try await fleet.end()?.state == .rolledBack)
        #expect(member.version == "1.0.0")
        try await member.end()
    }
}
