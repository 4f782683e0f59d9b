import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Hooks that still run when a change has gone on without them: which file is suspected, and what awaits `didStart`.
@Suite(.timeLimit(.minutes(30)), .serialized) struct LateHookTests {
    private let test: TestHost

    init() throws {
        test = try TestHost { configuration, _ in configuration.hookPatience = .milliseconds(600) }
    }

    /// C code that waits until a test opens the gate.
    private func waiting() -> String { "while (access(\"\(test.folder.path)/gate\", F_OK) != 0) usleep(1000);" }

    private func openGate() throws { try test.folder.file("gate") }

    private func note(_ text: String) -> String { "note(\"\(test.noteFile)\", \"\(text) \");" }

    @Test func `A suspect whose hook has not returned remains one until it returns`() async throws {
        let mark = try test.folder.file("kills")
        var module = CModule(name: "Slow")
        module.hooks = ["init": "if (access(\"\(mark)\", F_OK) == 0) kill(getpid(), SIGKILL);" + waiting()]
        try module.build(into: test.plugins, as: "a.so")
        await #expect(processExitsWith: .signal(SIGKILL)) { [folder = test.folder.path as String] in
            var configuration = PluginHost.Configuration(folders: ["\(folder)/plugins"])
            (configuration.stagingFolder, configuration.stateFolder) = ("\(folder)/staging", "\(folder)/state")
            try PluginHost(configuration).start()
        }
        unlink(mark)
        var suspects: [Bool?] { Journal(stateFolder: "\(test.folder.path)/state").quarantinedFiles.map(\.isSuspected) }
        try test.start()
        #expect(eventually { test.states == ["a.so": "starting"] && suspects == [true] })
        try openGate()
        #expect(await becomesTrue { test.answer("Slow") == "yes" })
        #expect(await becomesTrue { suspects == [] })
    }

    @Test(arguments: ["init", "didStart", "removed"])
    func `A suspect remains one as long as code of its start runs, whatever becomes of the module`(
        hook: String
    ) async throws {
        let test = try TestHost { configuration, _ in
            configuration.hookPatience = .milliseconds(100)
            if hook == "init" { configuration.hookTimeout = .milliseconds(300) }
        }
        let (mark, gate) = (try test.folder.file("kills"), "\(test.folder.path)/gate")
        defer { _ = try? test.folder.file("gate") }
        let body =
            "if (access(\"\(mark)\", F_OK) == 0) kill(getpid(), SIGKILL);"
            + "while (access(\"\(gate)\", F_OK) != 0) usleep(1000);"
        var module = CModule(name: "Slow")
        module.hooks = hook == "didStart" ? ["didStart": body] : ["init": body]
        try module.build(into: test.plugins, as: "a.so")
        await #expect(processExitsWith: .signal(SIGKILL)) { [folder = test.folder.path as String] in
            var configuration = PluginHost.Configuration(folders: ["\(folder)/plugins"])
            (configuration.stagingFolder, configuration.stateFolder) = ("\(folder)/staging", "\(folder)/state")
            try PluginHost(configuration).start()
        }
        unlink(mark)
        var suspects: [Bool?] { Journal(stateFolder: "\(test.folder.path)/state").quarantinedFiles.map(\.isSuspected) }
        try test.start()
        let state = ["init": "failed", "didStart": "active", "removed": "starting"][hook]!
        #expect(await becomesTrue { test.states == ["a.so": state] })
        if hook == "removed" {
            unlink("\(test.plugins)/a.so")
            #expect(await becomesTrue { test.states.isEmpty })
        }
        // Another change releases the suspected files that were tried.
        try CModule(name: "Other").build(into: test.plugins, as: "b.so")
        #expect(await becomesTrue { test.answer("Other") == "yes" })
        #expect(try test.waitForChanges())
        #expect(suspects == [true])
        try test.folder.file("gate")
        #expect(await becomesTrue { suspects == [] })
    }

    @Test(.disabled(if: isSanitized, "Threads begin in the sanitizer's code, which hides whose they are."))
    func `A crash in an asynchronous init that has exceeded its timeout is that of its module`() async throws {
        let test = try TestHost()
        var module = CModule(name: "Slow")
        module.asyncHooks = ["init"]
        module.hooks = ["init": "start(crash_at_gate, 0);"]
        module.code = """
            static void *crash_at_gate(void *data) {
                (void)data;
                while (access("\(test.folder.path)/gate", F_OK) != 0) usleep(1000);
                abort();
            }
            """
        try module.build(into: test.plugins, as: "a.so")
        await #expect(processExitsWith: .signal(SIGABRT)) { [folder = test.folder.path as String] in
            PluginHost.installFatalSignalReport()
            var configuration = PluginHost.Configuration(folders: ["\(folder)/plugins"])
            (configuration.stagingFolder, configuration.stateFolder) = ("\(folder)/staging", "\(folder)/state")
            configuration.hookTimeout = .milliseconds(200)
            let host = PluginHost(configuration)
            try host.start()
            while host.modules.first?.state != .failed { usleep(1000) }
            try host.updateFolders()
            _ = FileManager.default.createFile(atPath: "\(folder)/gate", contents: nil)
            sleep(600)
        }
        let entries = Journal(stateFolder: "\(test.folder.path)/state").quarantinedFiles
        #expect(entries.map(\.isSuspected) == [nil] && entries.first?.step == .activation, "\(entries)")
    }

    // MARK: Slow didStart

    private func slowAfterStart() -> CModule {
        var module = CModule(name: "Slow", answer: "old", tearDown: note("tearDown"))
        module.hooks = [
            "didStart": note("begin") + waiting() + note("end"), "willStop": note("willStop"),
        ]
        return module
    }

    @Test func `A hand-over waits for a slow didStart, whatever its own timeout`() throws {
        let test = try TestHost { configuration, _ in
            (configuration.hookPatience, configuration.handOverTimeout) = (.milliseconds(100), .milliseconds(100))
        }
        var old = CModule(name: "Slow", answer: "old")
        let gate = "\(test.folder.path)/gate"
        old.hooks = ["didStart": "while (access(\"\(gate)\", F_OK) != 0) usleep(1000);", "suspend": ""]
        try old.build(into: test.plugins, as: "a-1.so")
        try test.start()
        var next = CModule(name: "Slow", version: "2.0.0", answer: "new")
        next.hooks = ["resume": ""]
        try next.build(into: test.plugins, as: "a-2.so")
        #expect(eventually { test.status("a-2.so")?.state == .starting })
        // The pause is longer than the timeout of the hand-over.
        usleep(300_000)
        #expect(test.answer("Slow") == "old")
        try test.folder.file("gate")
        #expect(eventually { test.answer("Slow") == "new" })
        #expect(!test.changes.contains { $0.isFailure })
    }

    @Test(arguments: [true, false])
    func `Hooks wait for a slow didStart, and do not overlap it`(isShutDown: Bool) async throws {
        try slowAfterStart().build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(eventually { test.notes == "begin " })
        async let end: Void = onThread { [test] in
            if isShutDown { test.host.shutdown() } else { try test.host.remove("Slow") }
        }
        usleep(100_000)
        #expect(test.notes == "begin ")
        try openGate()
        try await end
        #expect(await becomesTrue { test.notes == "begin end willStop tearDown " }, "\(test.notes)")
    }

    @Test func `A slow didStart keeps no other change waiting when its module is removed`() throws {
        try slowAfterStart().build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(eventually { test.notes == "begin " })
        unlink("\(test.plugins)/a.so")
        #expect(eventually { test.answer("Slow") == nil })
        try CModule(name: "Other").build(into: test.plugins, as: "b.so")
        #expect(eventually { test.answer("Other") == "yes" })
        #expect(test.notes == "begin ")
        try openGate()
        #expect(eventually { test.notes == "begin end willStop tearDown " }, "\(test.notes)")
    }

    @Test func `A slow didStart keeps no other change waiting when its module hands over its state`() throws {
        var old = slowAfterStart()
        old.hooks = ["didStart": note("begin") + waiting() + note("end"), "suspend": note("suspend")]
        try old.build(into: test.plugins, as: "a-1.so")
        try test.start()
        var next = CModule(name: "Slow", version: "2.0.0", answer: "new")
        next.hooks = ["resume": note("resume")]
        try next.build(into: test.plugins, as: "a-2.so")
        #expect(eventually { test.changes.contains { "\($0)".hasPrefix("starting Slow 2.0.0: ") } })
        #expect(eventually { test.status("a-2.so")?.error?.message.contains("predecessor's didStart") == true })
        #expect(test.messages.contains { $0.contains("predecessor's didStart has not returned within 0.6 seconds") })
        try CModule(name: "Other").build(into: test.plugins, as: "b.so")
        #expect(eventually { test.answer("Other") == "yes" })
        #expect(test.answer("Slow") == "old" && test.notes == "begin ")
        try openGate()
        #expect(eventually { test.answer("Slow") == "new" })
        #expect(eventually { test.notes == "begin end suspend resume tearDown " }, "\(test.notes)")
    }

    @Test func `A module whose didStart does not return is not stopped`() throws {
        let test = try TestHost { configuration, _ in
            (configuration.hookPatience, configuration.shutdownTimeout) = (.milliseconds(100), .milliseconds(100))
        }
        defer { _ = try? test.folder.file("gate") }
        var module = CModule(name: "Slow")
        module.hooks = [
            "didStart": "while (access(\"\(test.folder.path)/gate\", F_OK) != 0) usleep(1000);",
            "willStop": "note(\"\(test.noteFile)\", \"willStop \");",
        ]
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        test.host.shutdown()
        #expect(
            test.messages.contains { $0.contains("willStop of Slow") && $0.contains("is not called: its didStart") })
        #expect(test.notes == "")
    }
}
