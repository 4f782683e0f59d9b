import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

/// The start and the end of a host, and what happens in between.
@Suite(.timeLimit(.minutes(30)), .serialized) struct StartAndEndTests {
    @Test func `Nothing can be called before the start`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "a.so")
        let error = #expect(throws: PluginError.self) { try test.host.perform("Good", "answer") }
        #expect(error?.code == .unknownTarget)
        #expect(test.host.modules.isEmpty && test.host.problems.isEmpty)
    }

    @Test func `A host that was never started can be shut down, and then started`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "a.so")
        test.host.shutdown()
        try test.start()
        #expect(test.answer() == "yes")
    }

    @Test func `Starting twice does nothing`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "a.so")
        try test.start()
        let generation = test.status("a.so")?.generation
        try test.host.start()
        #expect(test.status("a.so")?.generation == generation && generation != nil)
        #expect(test.answer() == "yes")
    }

    @Test func `A host that was shut down does not start again, and says so`() throws {
        let test = try TestHost()
        try test.start()
        test.host.shutdown()
        let error = #expect(throws: PluginError.self) { try test.host.start() }
        #expect(error?.code == .hostStopped)
    }

    @Test func `Calls after the end say that the host has been shut down`() async throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "a.so")
        try test.start()
        test.host.shutdown()
        let error = #expect(throws: PluginError.self) { try test.host.perform("Good", "answer") }
        #expect(error?.code == .hostStopped)
        let other = await #expect(throws: PluginError.self) { try await test.host.open("app://Good/answer") }
        #expect(other?.code == .hostStopped)
    }

    @Test func `Shutting down twice tears down once`() throws {
        let test = try TestHost()
        let notes = "\(test.folder.path)/notes"
        try CModule(tearDown: "note(\"\(notes)\", \"x\");").build(into: test.plugins, as: "a.so")
        try test.start()
        test.host.shutdown()
        test.host.shutdown()
        #expect(try String(contentsOfFile: notes, encoding: .utf8) == "x")
    }

    @Test func `Modules are torn down in the reverse of their order`() throws {
        let test = try TestHost()
        let notes = "\(test.folder.path)/notes"
        for name in ["C", "A", "B"] {
            try CModule(
                name: name, setUp: "note(\"\(notes)\", \"+\(name)\");", tearDown: "note(\"\(notes)\", \"-\(name)\");"
            ).build(into: test.plugins, as: "\(name).so")
        }
        try test.start()
        test.host.shutdown()
        #expect(try String(contentsOfFile: notes, encoding: .utf8) == "+A+B+C-C-B-A")
    }

    @Test func `A module can call those that were set up before it while it is torn down`() throws {
        let test = try TestHost()
        let notes = "\(test.folder.path)/notes"
        for name in ["A", "B", "D"] { try CModule(name: name).build(into: test.plugins, as: "\(name).so") }
        let code = """
            static void hear(void *name, const plugin_value *value, const plugin_error *error) {
                (void)value;
                if (error == NULL) note("\(notes)", name);
            }
            """
        let calls = ["A", "B", "D"].map { name in
            "{ plugin_request request = ask(\"\(name)\", \"answer\"); "
                + "host->perform(host, 0, &request, hear, \"\(name)\"); }"
        }
        try CModule(name: "C", code: code, tearDown: calls.joined()).build(into: test.plugins, as: "C.so")
        try test.start()
        test.host.shutdown()
        #expect(try String(contentsOfFile: notes, encoding: .utf8) == "AB")
    }

    @Test func `A module that is told of removals hears of all modules that leave before it`() throws {
        let test = try TestHost()
        let notes = "\(test.folder.path)/notes"
        let body = "note(\"\(notes)\", \"x\");"
        for name in ["A", "C", "D", "E"] { try CModule(name: name).build(into: test.plugins, as: "\(name).so") }
        try CModule(name: "B", events: [("module.removed", "", body)]).build(into: test.plugins, as: "B.so")
        try test.start()
        test.host.shutdown()
        #expect(try String(contentsOfFile: notes, encoding: .utf8) == "xxx")
    }

    @Test func `Modules that run no code at their end leave with few tables`() throws {
        let test = try TestHost()
        for number in 1...12 {
            try CModule(name: "M\(number)").build(into: test.plugins, as: "\(number).so")
        }
        try test.start()
        let tables = Atomic<Int>(0)
        test.host.core.registry.observe(0) { _ in tables.add(1, ordering: .relaxed) }
        test.host.shutdown()
        #expect(tables.load(ordering: .relaxed) <= (modulesAreIsolated ? 14 : 3))
        #expect(test.host.generations.isEmpty || test.host.generations.allSatisfy { $0.state == .retired })
    }

    @Test func `A module is torn down after its last call, which succeeds`() throws {
        let test = try TestHost { configuration, _ in configuration.shutdownTimeout = .seconds(600) }
        let (notes, gate) = ("\(test.folder.path)/notes", "\(test.folder.path)/gate")
        var module = CModule()
        module.body = """
            note("\(notes)", "begin "); while (access("\(gate)", F_OK) != 0) usleep(1000); note("\(notes)", "end ");
            """
        module.tearDown = "note(\"\(notes)\", \"tearDown\");"
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        let answer = Mutex<String?>(nil)
        let ended = DispatchGroup()
        DispatchQueue.global().async(group: ended) {
            let text = test.answer()
            answer.withLock { $0 = text }
        }
        #expect(eventually { access(notes, F_OK) == 0 })
        DispatchQueue.global().async(group: ended) { test.host.shutdown() }
        #expect(eventually { test.isStopping })
        try test.folder.file("gate")
        ended.wait()
        #expect(answer.withLock { $0 } == "yes")
        #expect(try String(contentsOfFile: notes, encoding: .utf8) == "begin end tearDown")
    }

    @Test func `The end does not wait forever for a call, and names its module`() throws {
        let test = try TestHost { configuration, _ in configuration.shutdownTimeout = .milliseconds(50) }
        let (notes, gate) = ("\(test.folder.path)/notes", "\(test.folder.path)/gate")
        var module = CModule()
        module.body = "note(\"\(notes)\", \"x\"); while (access(\"\(gate)\", F_OK) != 0) usleep(1000);"
        module.tearDown = "note(\"\(notes)\", \"tearDown\");"
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        let ended = DispatchGroup()
        DispatchQueue.global().async(group: ended) { _ = test.answer() }
        #expect(eventually { access(notes, F_OK) == 0 })
        test.host.shutdown()
        #expect(test.messages.contains { $0.contains("Good 1.0.0") && $0.contains("still running") })
        #expect(try String(contentsOfFile: notes, encoding: .utf8) == "x")
        try test.folder.file("gate")
        ended.wait()
    }

    @Test func `Each of many calls from many threads while the host ends is answered or refused`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "a.so")
        try test.start()
        let codes = Mutex<Set<String>>([])
        let answered = Atomic<Int>(0)
        let ended = DispatchGroup()
        for _ in 1...4 {
            DispatchQueue.global().async(group: ended) {
                while true {
                    do throws(PluginError) {
                        try test.host.perform("Good", "answer")
                        answered.add(1, ordering: .relaxed)
                    } catch {
                        codes.withLock { _ = $0.insert(error.code.rawValue) }
                        return
                    }
                }
            }
        }
        #expect(eventually { answered.load(ordering: .relaxed) > 100 })
        test.host.shutdown()
        ended.wait()
        #expect(codes.withLock { $0 } == ["hostStopped"])
    }

    @Test func `The stream of changes ends when the host is shut down, also for later subscribers`() async throws {
        let test = try TestHost()
        try test.start()
        let early = test.host.changes
        test.host.shutdown()
        for await _ in early {}
        for await _ in test.host.changes {}
    }

    @Test func `Nothing is left in the staging folder after the end`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(try !FileManager.default.contentsOfDirectory(atPath: "\(test.folder.path)/staging").isEmpty)
        test.host.shutdown()
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(test.folder.path)/staging").isEmpty)
    }

    @Test func `Files that are added after the end are not loaded`() throws {
        let test = try TestHost()
        try test.start()
        test.host.shutdown()
        try CModule().build(into: test.plugins, as: "a.so")
        // Another host with the same folder loads the file.
        let other = try TestHost { [plugins = test.plugins] configuration, _ in configuration.folders = [plugins] }
        try other.start()
        #expect(other.answer() == "yes")
        #expect(test.host.modules.isEmpty)
    }

    @Test func `Two hosts in one process have their own modules`() throws {
        let one = try TestHost()
        let two = try TestHost { [plugins = one.plugins] configuration, _ in configuration.folders = [plugins] }
        let counting = CModule(
            body: "static int calls; static char text[16]; snprintf(text, sizeof text, \"%d\", ++calls);"
                + "reply(call, text); return;")
        try counting.build(into: one.plugins, as: "a.so")
        try one.start()
        try two.start()
        #expect(one.answer() == "1" && one.answer() == "2" && two.answer() == "1")
        #expect(one.status("a.so")?.generation != two.status("a.so")?.generation)
        one.host.shutdown()
        #expect(one.answer() == nil && two.answer() == "2")
    }

    @Test func `A host that is dropped is shut down`() throws {
        let folder = try TemporaryFolder()
        let notes = "\(folder.path)/notes"
        do {
            let test = try TestHost()
            try CModule(tearDown: "note(\"\(notes)\", \"x\");").build(into: test.plugins, as: "a.so")
            let host = PluginHost(test.host.configuration)
            try host.start()
        }
        #expect(eventually { access(notes, F_OK) == 0 })
    }
}

extension TestHost {
    /// Whether calls are refused because the host is stopping.
    fileprivate var isStopping: Bool {
        do throws(PluginError) { try host.perform("Nobody", "answer") } catch { return error.code == .hostStopped }
        return false
    }
}
