import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

/// Modules that are registered, and start when they are first needed.
@Suite(.timeLimit(.minutes(30))) struct LazyStartTests {
    private let lazy: LazyModules

    init() throws { lazy = try LazyModules() }

    // MARK: - What starts a module

    @Test func `A sealed module is registered, and its first call starts it`() throws {
        let host = try lazy.makeHost([lazy.module("A"), lazy.module("B")])
        #expect(host.states == ["A.so": "registered", "B.so": "registered"])
        #expect(host.status("A.so")?.version == "1.0.0")
        #expect(host.status("A.so")?.targets == ["A"])
        #expect(host.code("B", "nothing") == .unknownAction)
        #expect(host.code("C", "answer") == .unknownTarget)
        #expect(lazy.notes == "")
        #expect(host.answer("A") == "A")
        #expect(host.states == ["A.so": "active", "B.so": "registered"])
        #expect(lazy.notes == "open:A A ")
    }

    @Test func `Many threads start a module once`() async throws {
        let host = try lazy.makeHost([lazy.module("A", setUp: "usleep(20000);")])
        let answers = try await onThreads(64) { _ in host.answer("A") }
        #expect(answers.allSatisfy { $0 == "A" })
        #expect(lazy.notes == "open:A A ")
    }

    @Test func `Calls of tasks wait without a thread, and bound actions start modules, too`() async throws {
        let host = try lazy.makeHost([lazy.module("A", setUp: "usleep(20000);"), lazy.module("B")])
        let answers = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<32 { group.addTask { try await host.host.call("A", "answer").string } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers == Array(repeating: "A", count: 32))
        #expect(try host.host.bind("B", "answer").perform().string == "B")
        #expect(lazy.notes == "open:A A open:B B ")
    }

    @Test func `A host that is not lazy starts sealed modules at once`() throws {
        let host = try lazy.makeHost([lazy.module("A")]) { $0.start = .eager }
        #expect(host.states == ["A.so": "active"])
    }

    @Test func `URLs start the modules that they lead to`() async throws {
        let route = "\"routes\": [{\"pattern\": \"app://fruit/:name\", \"action\": \"A/answer\"}],"
        let rest = "{\"name\": \"A\", \"actions\": [{\"name\": \"answer\", \"rest\": true, \"remote\": true}]}"
        var first = lazy.module("A")
        first.manifest = """
            {"name": "A", "version": "1.0.0", \(route) "hooks": ["setUp"], "targets": [\(rest)]}
            """
        let host = try lazy.makeHost([first, lazy.module("B"), lazy.module("C")])
        #expect(host.host.routes.map(\.pattern) == ["app://fruit/:name"])
        #expect(host.host.problems.isEmpty)
        #expect(!host.host.canOpen("app://D/answer"))
        #expect(lazy.notes == "")
        #expect(try await host.host.open("app://fruit/apple", origin: .remote).string == "A")
        #expect(try await host.host.open("app://B/answer").string == "B")
        #expect(host.host.resolve("app://C/answer").module == "C")
        #expect(lazy.notes == "open:A A open:B B open:C C ")
    }

    @Test func `Requests of a service start the modules that offer it`() async throws {
        func offering(_ name: String, _ version: String) -> CModule {
            let service = "{\"name\": \"S\", \"version\": \"\(version)\", \"target\": \"\(name)\"}"
            return lazy.module(name, more: "\"services\": [\(service)],")
        }
        let host = try lazy.makeHost([offering("A", "1.0.0"), offering("B", "1.1.0"), offering("C", "1.2.0")])
        #expect(host.host.services.map { "\($0.module) \($0.version)" } == ["C 1.2.0", "B 1.1.0", "A 1.0.0"])
        #expect(lazy.notes == "")
        #expect(host.answer("A") == "A")
        // The best service of all modules is chosen.
        #expect(try host.host.serviceInfo("S").module == "C")
        #expect(host.states.values.allSatisfy { $0 == "active" })
    }

    @Test func `Waiting for a service starts its module`() async throws {
        let more = "\"services\": [{\"name\": \"S\", \"version\": \"1.0.0\", \"target\": \"A\"}],"
        let host = try lazy.makeHost([lazy.module("A", more: more)])
        #expect(try await host.host.waitForService("S", timeout: .seconds(300)).module == "A")
    }

    @Test func `Events start their subscribers`() throws {
        var (first, second) = (lazy.module("A"), lazy.module("B"))
        first.events = [("shop.opened", "", "note(\"\(lazy.path)\", \"told \");")]
        second.events = [("shop.closed", "", "note(\"\(lazy.path)\", \"closed \");")]
        let host = try lazy.makeHost([first, second])
        try host.host.post("shop.empty")
        #expect(lazy.notes == "")
        try host.host.post("shop.opened")
        try host.host.post("shop.opened")
        #expect(lazy.notes == "open:A A told told ")
        #expect(host.states["B.so"] == "registered")
    }

    @Test func `An event that is awaited starts its subscribers without blocking a thread`() async throws {
        var subscriber = lazy.module("A", setUp: "usleep(20000);")
        subscriber.events = [("shop.opened", "", "note(\"\(lazy.path)\", \"told \");")]
        let host = try lazy.makeHost([subscriber])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { try await host.host.post("shop.opened") } }
            try await group.waitForAll()
        }
        #expect(lazy.notes == "open:A A " + String(repeating: "told ", count: 8))
    }

    // MARK: - Errors

    @Test func `The error of a start is kept until the file changes`() throws {
        var broken = lazy.module("A")
        broken.setUp! += "refuse(call, \"No.\"); return;"
        let host = try lazy.makeHost([broken])
        for _ in 0..<2 {
            let error = try #require(host.failure("A"))
            #expect(error.code == .moduleUnavailable)
            #expect(error.message.contains("No."))
        }
        #expect(lazy.notes == "open:A A ")
        #expect(host.states["A.so"] == "failed")
        try lazy.module("A").build(into: host.plugins, as: "A.so")
        try host.host.lifecycle.update()
        #expect(host.states["A.so"] == "registered")
        #expect(host.answer("A") == "A")
    }

    @Test func `A seal that lies is found by the first call`() throws {
        var lying = lazy.module("A")
        lying.sealedManifest = """
            {"name": "A", "version": "1.0.0", "hooks": ["setUp"], "targets": [{"name": "B", "actions": [{"name": "x"}]}]}
            """
        let host = try lazy.makeHost([lying])
        #expect(host.states["A.so"] == "registered")
        let error = try host.failure("B", "x")
        #expect(error.code == .moduleUnavailable)
        #expect(host.status("A.so")?.error?.code == .sealMismatch)
    }

    @Test func `A file that changes before the first call is read again`() throws {
        let host = try lazy.makeHost([lazy.module("A"), lazy.module("B")])
        var newer = lazy.module("A")
        newer.answer = "new"
        try newer.build(into: host.plugins, as: "A.so")
        #expect(host.answer("A") == "new")
        try FileManager.default.removeItem(atPath: "\(host.plugins)/B.so")
        #expect(host.failure("B")?.code == .moduleUnavailable)
    }

    @Test func `A call waits for a start no longer than its timeout`() async throws {
        let host = try lazy.makeHost([
            lazy.module("A", setUp: "while (access(\"\(lazy.path).go\", F_OK)) usleep(1000);")
        ])
        let error = #expect(throws: PluginError.self) {
            try host.host.perform("A", "answer", timeout: .milliseconds(20))
        }
        #expect(error?.code == .deadlineExceeded)
        try Data().write(to: URL(filePath: "\(lazy.path).go"))
        #expect(host.answer("A") == "A")
        #expect(lazy.notes == "open:A A ")
    }

    @Test func `A host that ends refuses calls that wait for a start`() async throws {
        let host = try lazy.makeHost([
            lazy.module("A", setUp: "while (access(\"\(lazy.path).go\", F_OK)) usleep(1000);"), lazy.module("B"),
        ])
        async let first = onThread { host.failure("A") }
        #expect(await becomesTrue { lazy.notes.contains("A ") && !lazy.notes.hasSuffix(":A ") })
        async let end: Void = onThread { host.host.shutdown() }
        try Data().write(to: URL(filePath: "\(lazy.path).go"))
        try await end
        _ = try await first
        #expect(host.failure("B")?.code == .hostStopped)
    }

    // MARK: - Other programs

    @Test func `The guard decides about a remote call before it starts a module`() async throws {
        var guarded = lazy.module("A")
        let answer = "{\"name\": \"answer\", \"remote\": true, \"demands\": [\"login\"]}"
        guarded.manifest = """
            {"name": "A", "version": "1.0.0", "hooks": ["setUp"], "targets": [{"name": "A", "actions": [\(answer)]}]}
            """
        let host = try lazy.makeHost([guarded])
        let calls = Mutex<[RemoteCall]>([])
        let refuses = Mutex(true)
        await #expect(throws: PluginError.self) { try await host.host.open("app://A/answer", origin: .remote) }
        host.host.onRemoteCall { call in
            calls.withLock { $0.append(call) }
            return refuses.withLock(\.self) ? .refuse("No.") : .pass
        }
        await #expect(throws: PluginError.self) { try await host.host.open("app://A/answer", origin: .remote) }
        #expect(!host.host.canOpen("app://A/answer", origin: .remote))
        let found = host.host.resolve("app://A/answer", origin: .remote)
        #expect(found.module == "A" && found.action == "A/answer" && found.error == nil)
        #expect(lazy.notes == "")
        #expect(calls.withLock(\.self).allSatisfy { $0.demands == ["login"] && $0.target == "A" })
        let before = calls.withLock(\.count)
        refuses.withLock { $0 = false }
        #expect(try await host.host.open("app://A/answer", origin: .remote).string == "A")
        #expect(calls.withLock(\.count) == before + 1)
    }
}
