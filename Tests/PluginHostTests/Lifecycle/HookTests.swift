import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// The hooks of modules: their order, what happens when a hook fails, and how long a hook may take.
@Suite(.timeLimit(.minutes(30)), .serialized) struct HookTests {
    @Test func `Hooks run in order, each kind in all modules before the next, and tearDown in reverse`() throws {
        let test = try TestHost()
        for name in ["B", "A"] { try noting(name, test).build(into: test.plugins, as: "\(name).so") }
        try test.start()
        #expect(test.notes == "A.setUp B.setUp A.init B.init A.didStart B.didStart ")
        test.host.shutdown()
        #expect(test.notes.hasSuffix("didStart A.willStop B.willStop B.tearDown A.tearDown "))
    }

    @Test func `Level comes before priority, and priority before name`() throws {
        let test = try TestHost()
        let places = [
            ("A", ""), ("B", #""priority": 10,"#), ("C", #""level": "basic", "priority": -1,"#),
            ("D", #""level": "basic","#), ("E", #""priority": 10, "level": "normal","#),
        ]
        for (name, manifest) in places {
            var module = noting(name, test)
            module.moreManifest = manifest
            try module.build(into: test.plugins, as: "\(name).so")
        }
        try test.start()
        #expect(test.notes.hasPrefix("D.setUp C.setUp B.setUp E.setUp A.setUp D.init "))
        test.host.shutdown()
        #expect(test.notes.hasSuffix("A.tearDown E.tearDown B.tearDown C.tearDown D.tearDown "))
    }

    @Test func `An asynchronous init overlaps with others, and didStart waits for it`() throws {
        let test = try TestHost()
        var slow = noting("A", test)
        slow.hooks = [
            "init": "note(\"\(test.noteFile)\", \"A.init \"); start_reply(call);",
            "didStart": "note(\"\(test.noteFile)\", \"A.didStart \");",
        ]
        slow.asyncHooks = ["init"]
        try slow.build(into: test.plugins, as: "a.so")
        try noting("B", test).build(into: test.plugins, as: "b.so")
        let clock = ContinuousClock()
        let time = try clock.measure { try test.start() }
        #expect(test.notes == "A.setUp B.setUp A.init B.init A.didStart B.didStart ")
        #expect(time >= .milliseconds(50))
    }

    @Test func `An init that fails removes its whole module, and the others continue`() throws {
        let test = try TestHost()
        var bad = noting("A", test)
        bad.hooks = ["init": "refuse(call, \"no money\"); return;", "didStart": "note(\"\(test.noteFile)\", \"no \");"]
        try bad.build(into: test.plugins, as: "a.so")
        try noting("B", test).build(into: test.plugins, as: "b.so")
        try test.start()
        #expect(test.states == ["a.so": "failed", "b.so": "active"])
        #expect(test.status("a.so")?.error?.code == .activationFailed)
        #expect(test.status("a.so")?.error?.message.contains("no money") == true)
        #expect(test.answer("A") == nil && test.answer("B") == "yes")
        #expect(eventually { test.notes == "A.setUp B.setUp B.init B.didStart A.tearDown " })
    }

    @Test func `When the init of a successor fails, the previous generation continues to serve`() throws {
        let test = try TestHost()
        try CModule(answer: "old").build(into: test.plugins, as: "a-1.so")
        try test.start()
        let generation = test.status("a-1.so")?.generation
        var bad = CModule(version: "2.0.0", answer: "new")
        bad.hooks = ["init": "refuse(call, \"not today\"); return;"]
        try bad.build(into: test.plugins, as: "a-2.so")
        #expect(try test.waitForChanges())
        #expect(test.status("a-2.so")?.state == .failed)
        #expect(test.status("a-1.so")?.state == .active && test.status("a-1.so")?.generation == generation)
        #expect(test.answer() == "old")
    }

    @Test func `When init fails at the start, the next file of the module serves`() throws {
        let test = try TestHost()
        try CModule(answer: "old").build(into: test.plugins, as: "a-1.so")
        var bad = CModule(version: "2.0.0", answer: "new")
        bad.hooks = ["init": "refuse(call, \"not today\"); return;"]
        try bad.build(into: test.plugins, as: "a-2.so")
        try test.start()
        #expect(test.states == ["a-1.so": "active", "a-2.so": "failed"])
        #expect(test.answer() == "old")
    }

    @Test func `A didStart that fails is logged, and its module continues to serve`() throws {
        let test = try TestHost()
        var module = CModule()
        module.hooks = ["didStart": "refuse(call, \"a pity\"); return;"]
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(test.answer() == "yes")
        #expect(test.messages.contains { $0.contains("didStart of Good") && $0.contains("a pity") })
    }

    @Test func `An asynchronous init that never replies fails at its deadline`() throws {
        let test = try TestHost { configuration, _ in configuration.hookTimeout = .milliseconds(50) }
        var module = CModule()
        module.hooks = ["init": ""]
        module.asyncHooks = ["init"]
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(test.status("a.so")?.error?.message.contains("did not reply before its deadline") == true)
        #expect(test.answer() == nil)
    }

    @Test(arguments: ["willStop", "tearDown"])
    func `A hook that exceeds its deadline at the end is named, and does not delay the others`(hook: String) throws {
        let test = try TestHost { configuration, _ in configuration.shutdownTimeout = .seconds(1) }
        var module = CModule(name: "Slow")
        let body = "while (access(\"\(test.folder.path)/gate\", F_OK) != 0) usleep(1000);"
        if hook == "tearDown" { module.tearDown = body } else { module.hooks = ["willStop": body] }
        try module.build(into: test.plugins, as: "a.so")
        try noting("Zebra", test).build(into: test.plugins, as: "b.so")
        try test.start()
        test.host.shutdown()
        #expect(
            test.messages.contains {
                $0.contains("Slow 1.0.0") && $0.contains("\(hook) of Slow") && $0.contains("did not return within")
            })
        #expect(eventually { test.notes.contains("Zebra.willStop") && test.notes.contains("Zebra.tearDown") })
        try test.folder.file("gate")
    }

    @Test func `A module that is added while the host runs gets setUp, init and didStart`() throws {
        let test = try TestHost()
        try test.start()
        try noting("A", test).build(into: test.plugins, as: "a.so")
        #expect(try test.waitForChanges())
        #expect(eventually { test.notes == "A.setUp A.init A.didStart " })
    }

    @Test func `Hosts that have ended keep no threads`() async {
        await #expect(processExitsWith: .success) {
            for _ in 0..<40 {
                let test = try TestHost()
                var module = CModule()
                module.hooks = ["init": ""]
                try module.build(into: test.plugins, as: "a.so")
                try test.start()
                test.host.shutdown()
            }
            #expect(
                eventually {
                    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 1000 < 20
                }
            )
        }
    }

    private func noting(_ name: String, _ test: TestHost) -> CModule {
        func note(_ hook: String) -> String { "note(\"\(test.noteFile)\", \"\(name).\(hook) \");" }
        var module = CModule(name: name, setUp: note("setUp"), tearDown: note("tearDown"))
        module.hooks = ["init": note("init"), "didStart": note("didStart"), "willStop": note("willStop")]
        return module
    }
}

extension TestHost {
    var noteFile: String { "\(folder.path)/notes" }

    /// The notes that the modules have written.
    var notes: String { (try? String(contentsOfFile: noteFile, encoding: .utf8)) ?? "" }
}
