import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Modules whose hooks do not return in time: the others start without them, and the late modules join them later.
@Suite(.timeLimit(.minutes(30)), .serialized) struct SlowStartTests {
    private let test: TestHost

    init() throws {
        test = try TestHost { configuration, _ in configuration.hookPatience = .milliseconds(600) }
    }

    /// C code that waits until a test opens a gate.
    private func waiting(for gate: String = "gate") -> String {
        "while (access(\"\(test.folder.path)/\(gate)\", F_OK) != 0) usleep(1000);"
    }

    private func openGate() throws { try test.folder.file("gate") }

    private func note(_ text: String) -> String { "note(\"\(test.noteFile)\", \"\(text) \");" }

    /// A module that notes its hooks, one of which waits for the gate.
    private func slow(_ hook: String = "init", version: String = "1.0.0") -> CModule {
        var module = CModule(name: "Slow", version: version, answer: version)
        module.setUp = note("setUp")
        module.tearDown = note("tearDown")
        var hooks = [("init", note("init")), ("didStart", note("didStart"))]
        switch hook {
        case "activate": module.activate = waiting()
        case "setUp": module.setUp = waiting() + note("setUp")
        case "async init":
            module.asyncHooks = ["init"]
            module.code = """
                static void *reply_at_gate(void *token) {
                    \(waiting())
                    plugin_value nothing = {0};
                    host->resolve(host, (plugin_token)token, &nothing);
                    return NULL;
                }
                """
            hooks[0].1 = note("init") + "start(reply_at_gate, (void *)call->token);"
        default: hooks[0].1 = waiting() + note("init")
        }
        module.hooks = KeyValuePairs(dictionaryLiteral: hooks[0], hooks[1])
        return module
    }

    private func requiring(_ module: String) -> CModule {
        var user = CModule(name: "User", setUp: note("User.setUp"), tearDown: note("User.tearDown"))
        user.moreManifest = "\"requires\": [{\"module\": \"\(module)\", \"version\": \"*\"}], "
        return user
    }

    @Test(arguments: ["activate", "setUp", "init", "async init"])
    func `The others start without a module whose hook does not return, and it joins them when it does`(
        hook: String
    ) throws {
        try slow(hook).build(into: test.plugins, as: "a.so")
        var other = CModule(name: "Other")
        other.hooks = ["init": note("Other.init"), "didStart": note("Other.didStart")]
        try other.build(into: test.plugins, as: "b.so")
        try test.start()
        #expect(eventually { test.states == ["a.so": "starting", "b.so": "active"] })
        #expect(eventually { test.answer("Other") == "yes" && test.notes.contains("Other.didStart ") })
        let name = hook == "async init" ? "init" : hook
        #expect(eventually { test.status("a.so")?.note?.contains("\(name) has been running for") == true })
        #expect(test.status("a.so")?.name == "Slow")
        let failure = try #require(test.failure("Slow"))
        #expect(failure.code == .moduleUnavailable && failure.message.contains("its \(name) has not returned"))
        #expect(
            eventually {
                test.log.contains {
                    $0.module == "Slow" && $0.message.contains("\(name) of Slow 1.0.0")
                        && $0.message.contains("has been running for 0.6 seconds")
                }
            })
        #expect(test.messages.contains { $0.contains("its \(name) has not returned within 0.6 seconds") })
        try openGate()
        #expect(eventually { test.answer("Slow") == "1.0.0" })
        #expect(eventually { test.notes.hasSuffix("didStart ") && test.changes.contains { $0.isAdded("Slow") } })
        #expect(test.status("a.so")?.state == .active && test.status("a.so")?.note == nil)
        #expect(test.notes.components(separatedBy: "setUp").count == 2)
    }

    @Test func `What requires a slow module starts with it, and is set up once`() throws {
        try slow("init").build(into: test.plugins, as: "a.so")
        try requiring("Slow").build(into: test.plugins, as: "b.so")
        try CModule(name: "Other").build(into: test.plugins, as: "c.so")
        try test.start()
        #expect(eventually { test.states == ["a.so": "starting", "b.so": "starting", "c.so": "active"] })
        #expect(test.status("b.so")?.error?.message.contains("which is starting") == true, "\(test.status("b.so")!)")
        try openGate()
        #expect(eventually { test.answer("User") == "yes" })
        #expect(test.states.values.allSatisfy { $0 == "active" })
        #expect(test.notes.components(separatedBy: "User.setUp").count == 2 && !test.notes.contains("tearDown"))
    }

    @Test func `A slow module that appears while the host runs is reported, and others are added meanwhile`() throws {
        try test.start()
        try slow().build(into: test.plugins, as: "a.so")
        #expect(eventually { test.changes.contains { "\($0)".hasPrefix("starting Slow 1.0.0: ") } })
        try CModule(name: "Other").build(into: test.plugins, as: "b.so")
        #expect(eventually { test.answer("Other") == "yes" })
        #expect(test.status("a.so")?.state == .starting)
        try openGate()
        #expect(eventually { test.answer("Slow") == "1.0.0" })
    }

    @Test func `A slow module that is removed does not join, and is torn down when its hook returns`() throws {
        try slow().build(into: test.plugins, as: "a.so")
        try test.start()
        unlink("\(test.plugins)/a.so")
        #expect(eventually { test.status("a.so") == nil })
        #expect(eventually { test.messages.contains { $0.contains("was removed while its init was running") } })
        try openGate()
        #expect(eventually { test.notes.contains("tearDown") || modulesAreIsolated })
        #expect(test.answer("Slow") == nil && !test.notes.contains("didStart"))
    }

    @Test func `A slow module can be removed by name`() throws {
        try slow().build(into: test.plugins, as: "a.so")
        try test.start()
        try test.host.remove("Slow")
        #expect(test.status("a.so") == nil)
        try openGate()
    }

    @Test func `What serves stays until a slow build of its file has started, whatever else could start`() throws {
        try CModule(name: "Slow", version: "1.0.0", answer: "1.0.0").build(into: test.plugins, as: "a1.so")
        try CModule(name: "Slow", version: "2.0.0", answer: "old").build(into: test.plugins, as: "a2.so")
        try test.start()
        #expect(test.states == ["a1.so": "superseded", "a2.so": "active"] && test.answer("Slow") == "old")
        try slow("setUp", version: "2.0.0").build(into: test.plugins, as: "a2.so")
        #expect(eventually { test.changes.contains { "\($0)".hasPrefix("starting Slow 2.0.0: ") } })
        try CModule(name: "Other").build(into: test.plugins, as: "b.so")
        #expect(eventually { test.answer("Other") == "yes" })
        #expect(test.answer("Slow") == "old")
        try openGate()
        #expect(eventually { test.answer("Slow") == "2.0.0" })
        #expect(!test.changes.contains { "\($0)".hasPrefix("replaced Slow 2.0.0 with 1.0.0") })
    }

    @Test func `Another version of a slow module starts at once`() throws {
        try slow().build(into: test.plugins, as: "a.so")
        try test.start()
        try CModule(name: "Slow", version: "2.0.0", answer: "2.0.0").build(into: test.plugins, as: "a.so")
        #expect(eventually { test.answer("Slow") == "2.0.0" })
        try openGate()
        #expect(eventually { test.notes.contains("tearDown") || modulesAreIsolated })
        #expect(test.answer("Slow") == "2.0.0" && !test.notes.contains("didStart"))
    }

    @Test func `The previous version serves until the init of its slow successor returns`() throws {
        try CModule(name: "Slow", answer: "old").build(into: test.plugins, as: "a.so")
        try test.start()
        try slow("init", version: "2.0.0").build(into: test.plugins, as: "a.so")
        #expect(eventually { test.status("a.so")?.note?.contains("2.0.0 is starting: init has been") == true })
        #expect(test.answer("Slow") == "old" && test.status("a.so")?.state == .active)
        try openGate()
        #expect(eventually { test.answer("Slow") == "2.0.0" })
    }

    @Test func `A slow successor that has received the state is waited for, and calls go to it`() throws {
        var old = CModule(name: "Slow", answer: "old")
        old.hooks = ["suspend": note("suspend"), "unsuspend": note("unsuspend")]
        try old.build(into: test.plugins, as: "a-1.so")
        try test.start()
        var next = CModule(name: "Slow", version: "2.0.0", answer: "new")
        next.hooks = ["resume": note("resume"), "init": note("init") + waiting()]
        try next.build(into: test.plugins, as: "a-2.so")
        // The patience has long been over.
        #expect(
            eventually { test.messages.contains { $0.contains("init of Slow 2.0.0") && $0.contains("1.2 seconds") } })
        try openGate()
        #expect(test.answer("Slow") == "new")
        #expect(test.notes == "suspend resume init ")
        #expect(!test.messages.contains { $0.contains("is still starting") })
    }

    @Test func `A slow init finds the actions of its own module, and others do not`() throws {
        var module = slow()
        module.code = """
            static void note_outcome(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)value;
                if (error) { \(note("refused")) }
                \(note("asked"))
            }
            static void ask_for_answer(const char *target) {
                plugin_request request = ask(target, "answer");
                host->perform(host, 0, &request, note_outcome, 0);
            }
            """
        let calls = ["Slow", "User", "Other"].map { "ask_for_answer(\"\($0)\");" }.joined()
        module.hooks = ["init": waiting() + calls + waiting(for: "end")]
        try module.build(into: test.plugins, as: "a.so")
        try requiring("Slow").build(into: test.plugins, as: "b.so")
        try test.start()
        // Tables that are published in the meantime keep the actions of the late module.
        try CModule(name: "Other").build(into: test.plugins, as: "c.so")
        #expect(eventually { test.answer("Other") == "yes" })
        try openGate()
        #expect(eventually { test.notes.hasSuffix("asked asked asked ") })
        #expect(!test.notes.contains("refused"))
        #expect(test.failure("Slow")?.code == .moduleUnavailable)
        try test.folder.file("end")
        #expect(eventually { test.answer("Slow") == "1.0.0" && test.answer("User") == "yes" })
    }

    @Test func `A module is initialised only after the slow init of what it requires`() throws {
        try slow("init").build(into: test.plugins, as: "a.so")
        var user = requiring("Slow")
        user.hooks = ["init": note("User.init")]
        try user.build(into: test.plugins, as: "b.so")
        var other = CModule(name: "Zoo")
        other.hooks = ["init": note("Zoo.init")]
        try other.build(into: test.plugins, as: "c.so")
        try test.start()
        #expect(eventually { test.states == ["a.so": "starting", "b.so": "starting", "c.so": "active"] })
        #expect(eventually { test.notes == "setUp User.setUp Zoo.init " })
        try openGate()
        #expect(eventually { test.answer("User") == "yes" })
        #expect(test.notes.hasPrefix("setUp User.setUp Zoo.init init User.init "), "\(test.notes)")
    }

    @Test func `A late failure is reported like any other`() throws {
        var module = CModule(name: "Slow")
        module.hooks = ["init": waiting() + "refuse(call, \"no money\"); return;"]
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(eventually { test.states == ["a.so": "starting"] })
        try openGate()
        #expect(eventually { test.changes.contains { $0.isFailure && $0.file == "a.so" } })
        #expect(test.status("a.so")?.error?.message.contains("no money") == true)
    }

    @Test func `A hook that exceeds its timeout is no longer waited for`() throws {
        let test = try TestHost { configuration, _ in
            (configuration.hookPatience, configuration.hookTimeout) = (.milliseconds(100), .milliseconds(300))
        }
        defer { _ = try? test.folder.file("gate") }
        var module = CModule(name: "Slow")
        module.hooks = ["init": "while (access(\"\(test.folder.path)/gate\", F_OK) != 0) usleep(1000);"]
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(eventually { test.states == ["a.so": "failed"] })
        #expect(test.status("a.so")?.error?.message.contains("did not return within 0.3 seconds") == true)
    }

    @Test func `A host that is shut down does not wait for slow modules, and names them`() throws {
        defer { _ = try? openGate() }
        try slow().build(into: test.plugins, as: "a.so")
        try requiring("Slow").build(into: test.plugins, as: "b.so")
        var other = CModule(name: "Other")
        other.events = [("host.willTerminate", "", note("willTerminate"))]
        other.hooks = ["willStop": note("willStop")]
        try other.build(into: test.plugins, as: "c.so")
        try test.start()
        #expect(
            eventually {
                test.status("a.so")?.note?.contains("init has been") == true && test.answer("Other") == "yes"
            })
        // `User` is not set up if the patience ended before its init, on a busy machine.
        let isSetUp = test.notes.contains("User.setUp")
        test.host.shutdown()
        #expect(test.messages.contains { $0.contains("was still starting when the host stopped (init has been") })
        // A module that never served ends before the others learn of the end.
        #expect(test.notes.hasSuffix((isSetUp ? "User.tearDown " : "") + "willTerminate willStop "), "\(test.notes)")
    }

    @Test func `A didStart that does not return keeps no other module from its own`() throws {
        defer { _ = try? openGate() }
        var module = CModule(name: "Slow")
        module.hooks = ["didStart": waiting()]
        try module.build(into: test.plugins, as: "a.so")
        var other = CModule(name: "Other")
        other.hooks = ["didStart": note("Other.didStart")]
        try other.build(into: test.plugins, as: "b.so")
        try test.start()
        #expect(eventually { test.notes == "Other.didStart " && test.answer("Slow") == "yes" })
    }

    @Test func `A module that is put back by a rollback is waited for`() throws {
        var old = CModule(name: "Slow", answer: "old")
        old.hooks = ["init": "usleep(900000);"]
        try old.build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(eventually { test.answer("Slow") == "old" })
        try CModule(name: "Slow", version: "2.0.0", answer: "new").build(into: test.plugins, as: "a.so")
        #expect(eventually { test.answer("Slow") == "new" })
        try test.host.rollback("Slow")
        #expect(test.answer("Slow") == "old")
    }

    @Test func `A version in the folder to which a rollback returns is waited for`() throws {
        var old = CModule(name: "Slow", answer: "old")
        old.hooks = ["init": "usleep(900000);"]
        try old.build(into: test.plugins, as: "a-1.so")
        try CModule(name: "Slow", version: "2.0.0", answer: "new").build(into: test.plugins, as: "a-2.so")
        try test.start()
        #expect(test.answer("Slow") == "new")
        try test.host.rollback("Slow")
        #expect(test.answer("Slow") == "old")
    }

    @Test func `The patience does not add up`() throws {
        defer { _ = try? openGate() }
        for name in ["A", "B"] {
            var module = CModule(name: name)
            module.hooks = ["init": waiting()]
            try module.build(into: test.plugins, as: "\(name).so")
        }
        try test.start()
        #expect(test.messages.count { $0.contains("has not returned within 0.6 seconds") } == 1)
        #expect(test.messages.count { $0.contains("has not returned within 0.1 seconds") } == 1)
    }

    @Test func `A start that is no longer wanted does not continue when its activate returns`() throws {
        try slow("activate").build(into: test.plugins, as: "a.so")
        try test.start()
        try test.host.remove("Slow")
        try openGate()
        #expect(eventually { test.changes.contains(where: \.isRetirement) })
        #expect(test.notes == "")
    }
}
