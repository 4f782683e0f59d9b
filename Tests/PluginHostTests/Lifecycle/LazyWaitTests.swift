import Dispatch
import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

/// Calls that wait for the start of a registered module: calls from hooks, and several calls at once.
@Suite(.timeLimit(.minutes(30))) struct LazyWaitTests {
    private let lazy: LazyModules

    init() throws { lazy = try LazyModules() }

    // MARK: - Calls from hooks

    @Test(arguments: ["setUp", "init"]) func `Code of a start calls modules that are not started`(hook: String) throws {
        let host = try lazy.makeHost([lazy.caller("A", of: "B", in: hook), lazy.module("B")])
        #expect(host.answer("A") == "A")
        #expect(host.states == ["A.so": "active", "B.so": "active"])
        #expect(lazy.notes.contains("open:B B =B "))
    }

    @Test(arguments: ["init", "didStart"])
    func `Code of a module that starts with the host calls modules that are not started`(hook: String) throws {
        var first = lazy.module("A")
        first.isSealed = false
        first.code = LazyModules.taking
        first.hooks = hook == "init" ? ["init": lazy.calling("B")] : ["didStart": lazy.calling("B")]
        let host = try lazy.makeHost([first, lazy.module("B"), lazy.module("C")])
        #expect(host.states == ["A.so": "active", "B.so": "active", "C.so": "registered"])
        #expect(lazy.notes == "open:A A open:B B =B ")
        #expect(host.answer("C") == "C")
    }

    @Test func `Modules whose setUp call each other get an error, and start`() throws {
        let host = try lazy.makeHost([lazy.caller("A", of: "B", in: "setUp"), lazy.caller("B", of: "A", in: "setUp")])
        #expect(host.answer("A") == "A")
        #expect(host.answer("B") == "B")
        #expect(lazy.notes == "open:A A open:B B !circularWait =B ")
    }

    @Test func `Modules whose init call each other reach each other`() throws {
        var (first, second) = (lazy.caller("A", of: "B", in: "init"), lazy.caller("B", of: "A", in: "init"))
        first.moreManifest = "\"start\": \"lazy\","
        second.moreManifest = "\"start\": \"lazy\","
        let host = try lazy.makeHost([first, second])
        #expect(host.states == ["A.so": "registered", "B.so": "registered"])
        #expect(host.answer("A") == "A")
        #expect(lazy.notes == "open:A A open:B B =A =B ")
    }

    @Test func `Code of a start calls modules whose code calls others`() throws {
        let callers = (1...3).map { lazy.caller("M\($0)", of: "M\($0 + 1)", in: "setUp") }
        let host = try lazy.makeHost(callers + [lazy.module("M4")])
        #expect(host.answer("M1") == "M1")
        #expect(host.states.values.allSatisfy { $0 == "active" })
        #expect(lazy.setUps == ["M1", "M2", "M3", "M4"])
        #expect(lazy.notes.hasSuffix("M4 =M4 =M3 =M2 "))
    }

    @Test func `A module does not start before the one that it requires and that calls it`() throws {
        let requiring = lazy.module("Y", more: "\"requires\": [{\"module\": \"X\"}],")
        let host = try lazy.makeHost([lazy.caller("X", of: "Y", in: "setUp"), requiring])
        #expect(host.answer("X") == "X")
        #expect(lazy.notes == "open:X X !circularWait ")
        #expect(host.states["Y.so"] == "registered")
        #expect(host.answer("Y") == "Y")
    }

    // MARK: - Several calls at once

    @Test func `Many threads start many modules once each`() async throws {
        let names = (0..<40).map { "M\($0)" }
        let host = try lazy.makeHost(names.map { lazy.module($0) })
        let answers = try await onThreads(40) { number in host.answer("M\(number)") }
        #expect(Set(answers) == Set(names))
        #expect(lazy.setUps.sorted() == names.sorted())
    }

    private static let waiting = "while (access(\"%@.go\", F_OK)) usleep(1000);"

    @Test(arguments: [600_000, 10])
    func `Calls that need a module that is starting wait for it`(patience: Int) async throws {
        let slow = lazy.module(
            "X", setUp: String(format: Self.waiting, lazy.path) + "note(\"\(lazy.path)\", \"Ready \");")
        let requiring = lazy.module("Y", more: "\"requires\": [{\"module\": \"X\"}],")
        let host = try lazy.makeHost([slow, requiring, lazy.module("Z")]) { $0.hookPatience = .milliseconds(patience) }
        async let first = onThread { host.answer("X") }
        #expect(await becomesTrue { lazy.setUps == ["X"] })
        async let second = onThread { host.answer("Y") }
        async let third = onThread { host.answer("X") }
        if patience == 10 { #expect(host.answer("Z") == "Z") }
        try Data().write(to: URL(filePath: "\(lazy.path).go"))
        #expect(try await [first, second, third] == ["X", "Y", "X"])
        #expect(lazy.setUps.filter { $0 != "Z" } == ["X", "Ready", "Y"])
    }

    @Test func `Calls that wait for a slow start end when its file goes`() async throws {
        let slow = lazy.module("X", setUp: String(format: Self.waiting, lazy.path))
        let host = try lazy.makeHost([slow]) { $0.hookPatience = .milliseconds(10) }
        async let first = onThread { host.failure("X")?.code }
        #expect(await becomesTrue { host.states["X.so"] == "starting" })
        try FileManager.default.removeItem(atPath: "\(host.plugins)/X.so")
        try host.host.lifecycle.update()
        #expect(try await first == .moduleUnavailable)
        try Data().write(to: URL(filePath: "\(lazy.path).go"))
    }

    @Test func `If no call may wait, the one that needs a module starts it and is refused`() throws {
        let slow = lazy.module("X", setUp: String(format: Self.waiting, lazy.path))
        let host = try lazy.makeHost([slow]) { $0.waitingCallsLimit = 0 }
        #expect(host.failure("X")?.code == .overloaded)
        try Data().write(to: URL(filePath: "\(lazy.path).go"))
        #expect(eventually { host.states["X.so"] == "active" })
        #expect(host.answer("X") == "X")
    }

    @Test func `Calls over the limit of calls that wait for a start are refused`() async throws {
        let slow = lazy.module("X", setUp: String(format: Self.waiting, lazy.path))
        let host = try lazy.makeHost([slow]) { $0.waitingCallsLimit = 0 }
        let go = URL(filePath: "\(lazy.path).go")
        // The host cannot end before the start does.
        defer { withExtendedLifetime(host) { try? Data().write(to: go) } }
        let patience = Duration.seconds(30)
        let error = try await onThread {
            #expect(throws: PluginError.self) { try host.host.perform("X", "answer", timeout: patience) }
        }
        try #require(error?.code == .overloaded)
        #expect(error?.message.contains("X is being started") == true)
        let asynchronous = await #expect(throws: PluginError.self) {
            try await host.host.call("X", "answer", timeout: patience)
        }
        try #require(asynchronous?.code == .overloaded)
        let module = try #require(host.host.calls.registry.table.contents.known.modules.first)
        let inTask = await #expect(throws: PluginError.self) {
            try await host.host.calls.startInTask(module, parent: 0)
        }
        #expect(inTask?.code == .overloaded)
        try Data().write(to: go)
        #expect(await becomesTrue { host.answer("X") == "X" })
        #expect(lazy.setUps == ["X"])
    }

    @Test func `Starts that wait for each other have a bound`() {
        let queue = SerialThread("test")
        let depth = Mutex(0)
        let (waits, starter) = (ChangeWaits(queue), ModuleStarter(limit: 10))
        starter.set { start, _ in waits.add(start) }
        waits.set { _ in
            true
        } _: { start, isTooDeep in
            guard !isTooDeep else { return starter.end(start, PluginError(.recursionLimit, "")) }
            let count = depth.withLock { depth in
                depth += 1
                return depth
            }
            let next = starter.start("M\(count)")
            _ = waits.wait(for: DispatchSemaphore(value: 0), until: .distantFuture) { next.isOver }
            starter.end(start, next.error)
        }
        let first = starter.start("M")
        queue.sync { _ = waits.wait(for: DispatchSemaphore(value: 0), until: .distantFuture) { first.isOver } }
        #expect(depth.withLock(\.self) == 32)
        #expect(first.error?.code == .recursionLimit)
    }

    @Test func `A registered module is not restarted`() throws {
        let host = try lazy.makeHost([lazy.module("A")])
        let error = #expect(throws: PluginError.self) { try host.host.restart("A") }
        #expect(error?.message == "A is registered and has not started. The first call starts it.")
    }
}
