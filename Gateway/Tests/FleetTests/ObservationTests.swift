import Foundation
import HTTPTypes
import Hummingbird
import PluginGateway
import Testing

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

    @Test func `a version whose calls hang goes back`() async throws {
        let fleet = try await TestFleet()
        // Until the test ends, or somebody writes the file.
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
        _ = try await fleet.control.rollOut("Good", try fleet.release("2.0.0"), drain: 0, soak: 1, limits: .init())
        #expect(await becomesTrue { try await fleet.control.snapshot().rollout?.steps["host1"]?.state == .observing })
        let calls = (0..<25).map { _ in Task { await Self.call(gateway) } }
        let end = try #require(try await fleet.end(.goingBack))
        #expect(end.reason?.contains("of 25 calls") == true, "\(end)")
        try Data().write(to: URL(filePath: gate))
        for call in calls { #expect(await call.value == 200) }
        #expect(try await fleet.end()?.state == .wentBack)
        #expect(member.version == "1.0.0")
        try await member.end()
    }
}
