import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Generations that were replaced or removed, but are still used.
@Suite(.timeLimit(.minutes(30)), .serialized) struct DrainingTests {
    @Test func `Calls that run past the deadline are reported by name, and continue until they end`() throws {
        let test = try TestHost { configuration, _ in configuration.drainTimeout = .milliseconds(20) }
        let (begun, gate) = ("\(test.folder.path)/begun", "\(test.folder.path)/gate")
        var old = CModule(answer: "old")
        old.body = "note(\"\(begun)\", \"x\"); while (access(\"\(gate)\", F_OK) != 0) usleep(1000);"
        try old.build(into: test.plugins, as: "good.so")
        try test.start()
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            #expect(test.answer() == "old")
            ended.signal()
        }
        #expect(eventually { access(begun, F_OK) == 0 })
        try CModule(version: "2.0.0", answer: "new").build(into: test.plugins, as: "good.so")
        #expect(eventually { test.status("good.so")?.version == "2.0.0" })
        #expect(test.answer() == "new")
        #expect(
            eventually {
                test.changes.contains { change in
                    guard case .drainOverdue(let generation) = change else { return false }
                    return generation.version == "1.0.0" && generation.calls.map(\.action) == ["Good/answer"]
                }
            })
        #expect(test.messages.contains { $0.contains("Good 1.0.0") && $0.contains("still runs Good/answer") })
        let draining = try #require(test.host.generations.first { $0.state == .draining })
        #expect(draining.calls.first?.since ?? .now <= .now)
        try test.folder.file("gate")
        ended.wait()
        #expect(eventually { test.host.generations.map(\.state) == [.active, .retired] })
    }

    @Test func `Objects keep their generation, and continue to answer`() throws {
        let test = try TestHost()
        try test.folder.copy(built("libModuleA.so"), as: "plugins/a.so")
        try test.start()
        let cursor = try #require(test.host.perform("Counter", "search", ["text": "ap"]).object)
        unlink("\(test.plugins)/a.so")
        #expect(eventually { test.changes.contains(where: \.isRemoval) })
        #expect(try cursor.perform("next") == "apple")
        #expect(eventually { test.host.generations.map(\.state) == [.draining] })
        #expect(test.host.generations.map(\.objects) == [1])
    }

    @Test func `Objects of a removed module answer only until their timeout`() throws {
        let test = try TestHost { configuration, _ in configuration.objectTimeout = .milliseconds(1) }
        try test.folder.copy(built("libModuleA.so"), as: "plugins/a.so")
        try test.start()
        let cursor = try #require(test.host.perform("Counter", "search", ["text": "ap"]).object)
        #expect(try cursor.perform("next") == "apple")
        unlink("\(test.plugins)/a.so")
        #expect(eventually { test.host.generations.map(\.state) == [.retired] })
        let error = #expect(throws: PluginError.self) { try cursor.perform("next") }
        #expect(error?.code == .generationRetired)
        #expect(error?.message.contains("Cursor") == true && error?.message.contains("ModuleA") == true)
    }

    @Test func `Modules continue to serve while their folder is not a folder`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "good.so")
        try test.start()
        rename(test.plugins, "\(test.folder.path)/away")
        try test.folder.file("plugins")
        #expect(eventually { test.host.problems.contains { $0.message.contains("is not a folder") } })
        #expect(test.answer() == "yes")
        unlink(test.plugins)
        rename("\(test.folder.path)/away", test.plugins)
        #expect(eventually { test.host.problems.isEmpty })
        #expect(test.answer() == "yes")
    }
}
