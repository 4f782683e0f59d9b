import Foundation
import PluginTestKit
import Testing

@testable import TestSupport

/// How the kit treats a module that keeps its state, and what it reports about a module that leaves something behind.
@Suite struct TestBenchTests {
    @Test func `Another build continues with the state of the previous one`() async throws {
        let bench = try await TestBench(.product("Visits"))
        #expect(bench.name == "Visits")
        #expect(try bench.host.perform("Visits", "count") == 1)
        #expect(try bench.host.perform("Visits", "count") == 2)
        try await bench.replace()
        #expect(try bench.host.perform("Visits", "count") == 3)
        try await bench.replace(with: .product("Visits"))
        #expect(try bench.host.perform("Visits", "count") == 4)
        #expect(bench.changes.count { if case .replaced = $0 { true } else { false } } == 2)
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    // Modules that are built with a sanitizer need functions that the worker does not export.
    @Test(arguments: isSanitized ? [false] : [false, true])
    func `A module answers, is replaced and is torn down in the process and isolated`(isolated: Bool) async throws {
        let open = Manifest("Open", version: "1.0.0") {
            Target("Open") { Action("take", .rest()) { rest in rest.count } }
        }
        let bench = try await TestBench(.product("Visits"), peers: .fake(open), isolated: isolated)
        #expect(bench.host.modules.contains { $0.process != nil } == isolated)
        #expect(try bench.host.perform("Visits", "count") == 1)
        try await bench.replace()
        #expect(try bench.host.perform("Visits", "count") == 2)
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test func `An isolated bench says what is missing`() async throws {
        let error = await #expect(throws: PluginError.self) {
            try await TestBench(.product("Visits"), isolated: true) { $0.isolation.workerPath = "/nowhere/worker" }
        }
        #expect(error?.message.contains("no program /nowhere/worker") == true)
        #expect(error?.message.contains(".product(name: \"pluginhost-worker\"") == true)
        let fake = Manifest("Fake", version: "1.0.0") { Target("Fake") { Action("answer") { 1 } } }
        let refusal = await #expect(throws: PluginError.self) { try await TestBench(.fake(fake), isolated: true) }
        #expect(refusal?.code == .conflict)
    }

    @Test func `A module that asks for a permission starts on a bench with the rule`() async throws {
        let file = try CModule(moreManifest: "\"permissions\": [{\"connect\": 443}],").build()
        let error = await #expect(throws: PluginError.self) { try await TestBench(.file(file), isolated: true) }
        #expect(error?.code == .permissionMissing)
        #expect(error?.message.contains("isolation.rules") == true)
        let bench = try await TestBench(.file(file), isolated: true) {
            var rule = IsolationRule("Good")
            rule.network = .ports(connect: [443], listen: [])
            $0.isolation.rules = [rule]
        }
        #expect(try bench.host.perform("Good", "answer") == "yes")
        #expect(await bench.finish().isClean)
    }

    @Test func `A replacement that is refused throws in the test, and the previous build continues to serve`()
        async throws
    {
        let bench = try await TestBench(.product("Visits")) { $0.moduleConfiguration["Visits"] = ["forgets": true] }
        try bench.host.perform("Visits", "count")
        let error = await #expect(throws: PluginError.self) { try await bench.replace() }
        #expect(error?.message.contains("How many were there?") == true)
        #expect(try bench.host.perform("Visits", "count") == 2)
    }

    @Test func `A fake whose action has a rest takes any parameters, which a recording lists by name`() async throws {
        let open = Manifest("Open", version: "1.0.0") {
            Target("Open") { Action("take", .required("key", String.self), .rest()) { key, rest in rest.count } }
        }
        let bench = try await TestBench(.product("Visits"), peers: .fake(open))
        let calls = bench.record(.action("Open", "take"))
        #expect(try bench.host.perform("Open", "take", ["key": "a", "color": "red"]) == 1)
        #expect(calls.calls.map(\.parameters) == [["key": "a", "color": "red"]])
    }

    @Test func `An object that is still retained is reported by its type, and its module is not torn down`()
        async throws
    {
        let bench = try await TestBench(.product("Visits"))
        let ticket = try #require(try bench.host.perform("Visits", "ticket").object)
        let report = await bench.finish(within: .milliseconds(50))
        #expect(!report.isClean && report.alive.map(\.state) == [.draining])
        #expect(report.held.map(\.description) == ["1 × Ticket of Visits, held by the test"])
        #expect("\(report)".contains("Ticket of Visits, held by the test. A holder releases an object by"))
        withExtendedLifetime(ticket) {}
    }

    @Test func `A callback that the module keeps is reported`() async throws {
        let bench = try await TestBench(.product("Visits"))
        try bench.host.perform("Visits", "keep", [.object(bench.host.callback { _ throws in .null }.object)])
        let report = await bench.finish(within: .seconds(3))
        #expect(report.alive.isEmpty)
        #expect(report.held.map(\.description) == ["1 × callback of the test, held by Visits"])
    }

    @Test func `A tearDown that fails is a complaint`() async throws {
        let bench = try await TestBench(.product("Visits")) { $0.moduleConfiguration["Visits"] = ["stays": true] }
        let report = await bench.finish()
        #expect(!report.isClean && report.alive.isEmpty)
        #expect(report.complaints.first?.message.contains("Nobody leaves.") == true)
    }

    /// A peer that answers once the gate is open.
    private func slowClock(_ gate: Gate) -> Manifest {
        Manifest("Clocks", version: "1.0.0") {
            Target("Clock") {
                Action("year") {
                    try await gate.pass()
                    return 2026
                }
            }
        }
    }

    @Test func `A slow peer is as slow as the test wants`() async throws {
        let gate = Gate()
        let bench = try await TestBench(.product("Visits"), peers: .fake(slowClock(gate)))
        async let year = bench.host.call("Visits", "year")
        await gate.arrivals(1)
        #expect(bench.host.generations.first { $0.name == "Visits" }?.calls.map(\.action) == ["Visits/year"])
        gate.open()
        #expect(try await year == 2026)
    }

    @Test func `A deadline passes while a peer waits, and the peer is notified`() async throws {
        let gate = Gate()
        let bench = try await TestBench(.product("Visits"), peers: .fake(slowClock(gate)))
        let error = await #expect(throws: PluginError.self) {
            try await bench.host.call("Visits", "year", timeout: .milliseconds(1))
        }
        #expect(error?.code == .deadlineExceeded)
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test func `A call that still runs is reported with its module`() async throws {
        let gate = Gate()
        let bench = try await TestBench(.product("Visits"), peers: .fake(slowClock(gate))) {
            $0.shutdownTimeout = .milliseconds(1)
        }
        async let year = bench.host.call("Visits", "year")
        await gate.arrivals(1)
        let report = await bench.finish(within: .milliseconds(1))
        #expect(report.alive.flatMap(\.calls).map(\.action) == ["Visits/year"])
        #expect("\(report)".contains("was not torn down: still runs Visits/year"))
        gate.open()
        _ = try? await year
    }

    @Test func `A module that the test declares is called like any other, and cannot be replaced`() async throws {
        let bench = try await TestBench(.linked(Greeter.self))
        #expect(try bench.host.perform("Greeter", "greet", ["Ada"]) == "Hello, Ada!")
        let error = await #expect(throws: PluginError.self) { try await bench.replace() }
        #expect(error?.code == .conflict)
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test func `Calls are recorded with their outcomes, those of modules and of the test`() async throws {
        let bench = try await TestBench(.linked(Greeter.self))
        let calls = bench.record()
        try bench.host.perform("Greeter", "greet", ["name": "Ada"])
        _ = try? bench.host.perform("Greeter", "ask")
        #expect(calls.calls.map(\.action) == ["greet", "greet", "ask"])
        #expect(calls.calls[0].parameters == ["name": "Ada"] && calls.calls[0].outcome == .success("Hello, Ada!"))
        #expect(throws: PluginError.self) { try calls.calls[1].outcome.get() }
    }

    @Test func `Files that belong beside the module exist before it`() async throws {
        let folder = try TemporaryFolder()
        let routes = try folder.file("visits.routes.json", #"{"app://visits": "Visits/count"}"#)
        try folder.file("names/first.txt", "Ada")
        let bench = try await TestBench(.product("Visits", beside: [routes, "\(folder.path)/names"]))
        #expect(try await bench.host.open("app://visits") == 1)
        #expect(try String(contentsOfFile: "\(bench.folder)/names/first.txt", encoding: .utf8) == "Ada")
        let missing = await #expect(throws: PluginError.self) {
            try await TestBench(.product("Visits", beside: ["\(folder.path)/nothing"]))
        }
        #expect(missing?.code == .unreadable)
    }

    @Test func `The error for a missing product or file says what to do`() async throws {
        let product = await #expect(throws: PluginError.self) { try await TestBench(.product("Nothing")) }
        #expect(product?.message.contains("libNothing.so") == true && product?.message.contains(".dynamic") == true)
        let file = await #expect(throws: PluginError.self) { try await TestBench(.file("/nowhere/libNothing.so")) }
        #expect(file?.code == .unreadable)
    }

    @Test func `A module that lacks a peer is not loaded, and the error names the peer`() async throws {
        let error = await #expect(throws: PluginError.self) {
            try await TestBench(
                .fake(
                    Manifest("Needy", version: "1.0.0") {
                        Target("Needy") { Action("call") { 1 } }
                        On(.setUp) { context in try context.perform("Clock", "year") }
                    }))
        }
        #expect(error?.message.contains("Clock") == true)
    }
}

private struct Greeter: Module {
    static let manifest = Manifest("Greeter", version: "1.0.0") {
        Target("Greeter") {
            Action("greet", .required("name", String.self)) { name in
                guard !name.isEmpty else { throw PluginError("nobody", "Who?") }
                return "Hello, \(name)!"
            }
            Action("ask", .context()) { context in try context.perform("Greeter", "greet", [""]) }
        }
    }
}
