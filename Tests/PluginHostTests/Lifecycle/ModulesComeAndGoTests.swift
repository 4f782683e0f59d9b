import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

private let visits = Atomic(0)

/// The examples of “Modules come and go”.
@Suite(.timeLimit(.minutes(30)), .serialized) struct ModulesComeAndGoTests {
    private let test: TestHost
    private var host: PluginHost { test.host }

    init() throws { test = try TestHost() }

    private func put(_ version: String) throws {
        try CModule(name: "Accounts", version: version, answer: version)
            .build(into: test.plugins, as: "Accounts.so")
        try #require(eventually { test.answer("Accounts") == version })
    }

    @Test func `A module declares that it hands over its state`() throws {
        try host.register(
            Manifest("Visits", version: "1.1.0") {
                Target("Visits") {
                    Action("count") { visits.add(1, ordering: .relaxed).newValue }
                }
                On(.suspend) { _ in visits.load(ordering: .relaxed) }
                On(.resume, Int.self) { _, count, version in visits.store(count, ordering: .relaxed) }
                On(.unsuspend) { _ in }
            })
        #expect(try host.perform("Visits", "count") == 1 && host.perform("Visits", "count") == 2)
    }

    @Test func `A module waits for its requirements`() throws {
        try test.start()
        try host.register(
            Manifest("Login", version: "2.0.0") {
                Target("Login") { Action("name") { "Ada" } }
                Service("Login", version: "2.0.0", target: "Login")
            })
        try CModule(
            name: "Shop",
            moreManifest: """
                "requires": [{"module": "Accounts", "version": "^1.2"}, {"service": "Login", "version": ">=1.0 <3.0"},
                             {"service": "Printing", "optional": true}],
                """
        ).build(into: test.plugins, as: "Shop.so")
        #expect(eventually { test.status("Shop.so")?.error?.code == .missingRequirement })
        try put("1.0.0")
        #expect(eventually { test.status("Shop.so")?.error?.code == .wrongVersion })
        try put("1.2.0")
        #expect(eventually { test.answer("Shop") == "yes" })
        #expect(throws: PluginError.self) { try host.remove("Accounts") }
    }

    @Test func `remove and rollback go back and forth, and say what they do`() throws {
        try test.start()
        try put("1.0.0")
        try put("1.1.0")
        #expect(try host.remove("Accounts", dryRun: true).description.contains("stops Accounts 1.1.0"))
        try host.remove("Accounts")
        #expect(test.failure("Accounts")?.code == .moduleUnavailable)
        #expect(host.keptVersions(of: "Accounts").map(\.version) == ["1.1.0", "1.0.0"])
        try host.rollback("Accounts")
        #expect(test.answer("Accounts") == "1.1.0")
        try host.rollback("Accounts")
        #expect(test.answer("Accounts") == "1.0.0")
        try host.rollback("Accounts", to: "1.1.0")
        #expect(test.answer("Accounts") == "1.1.0")
    }

    @Test func `Changes are a sequence, and generations say why they still exist`() async throws {
        try test.start()
        let changes = host.changes
        try CModule(
            name: "Accounts", version: "1.0.0",
            actions: [
                (
                    "wait",
                    "while (access(\"\(test.folder.path)/go\", F_OK) != 0) usleep(1000); reply(call, \"done\");"
                )
            ]
        ).build(into: test.plugins, as: "Accounts.so")
        #expect(await becomesTrue { test.answer("Accounts") == "yes" })
        async let waiting = onThread { [host = test.host] in try host.perform("Accounts", "wait").string }
        #expect(await becomesTrue { host.generations.first?.calls.map(\.action) == ["Accounts/wait"] })
        // The event is posted while the change is being made: the previous generation is in the list even then.
        let listed = Mutex<[String]>([])
        let subscription = host.on("module.replaced") { [weak host] _ in
            listed.withLock { $0 = (host?.generations ?? []).map { "\($0.version) \($0.state)" } }
        }
        try CModule(name: "Accounts", version: "1.1.0").build(into: test.plugins, as: "Accounts.so")
        for await change in changes {
            guard case .replaced(let module, let before) = change else { continue }
            #expect(module.version == "1.1.0" && before.version == "1.0.0")
            break
        }
        #expect(await becomesTrue { !listed.withLock(\.isEmpty) })
        #expect(listed.withLock(\.self) == ["1.1.0 active", "1.0.0 draining"])
        withExtendedLifetime(subscription) {}
        let draining = host.generations.filter { $0.state == .draining }
        #expect(draining.map(\.version) == ["1.0.0"])
        let before = try #require(draining.first)
        #expect(before.reason == "still runs Accounts/wait.")
        #expect(before.since >= before.created)
        try test.folder.file("go")
        #expect(try await waiting == "done")
        #expect(await becomesTrue { host.retiredTotal.count == 1 })
        #expect(host.retiredTotal.mappedBytes == host.generations.last?.mappedBytes)
    }
}
