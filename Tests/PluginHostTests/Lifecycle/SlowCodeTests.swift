import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Module code that is slow or does not return when modules start or end: it is named, and other modules continue.
@Suite(.timeLimit(.minutes(30)), .serialized) struct SlowCodeTests {
    /// C code that waits until a test lets it continue.
    private static func waiting(_ test: TestHost) -> String {
        "while (access(\"\(test.folder.path)/gate\", F_OK) != 0) usleep(1000);"
    }

    private static func hanging(in place: String, _ test: TestHost) -> CModule {
        var module = CModule(name: "Slow")
        switch place {
        case "constructor":
            module.code = "__attribute__((constructor)) static void begin(void) { \(waiting(test)) }"
        case "entry": module.entry = waiting(test)
        case "activate": module.activate = waiting(test)
        default:
            module.hooks = ["init": waiting(test)]
            if place == "asynchronous init" { module.asyncHooks = ["init"] }
        }
        return module
    }

    @Test(arguments: [
        ("constructor", "A constructor"), ("entry", "The entry function"), ("activate", "activate"), ("init", "init"),
        ("asynchronous init", "init"),
    ])
    func `A module whose code does not return fails to start at the deadline, and the others serve`(
        place: String, name: String
    ) async {
        // A constructor that hangs keeps all hosts in its process from opening libraries.
        await #expect(processExitsWith: .success) { [place = place as String, name = name as String] in
            let test = try TestHost { configuration, _ in configuration.hookTimeout = .milliseconds(300) }
            defer { _ = try? test.folder.file("gate") }
            // This module is the first of the batch: the others wait for it.
            try CModule(name: "Before").build(into: test.plugins, as: "a.so")
            try SlowCodeTests.hanging(in: place, test).build(into: test.plugins, as: "b.so")
            try test.start()
            let error = test.status("b.so")?.error
            #expect(
                error?.message.contains(name) == true && error?.message.contains("within 0.3 seconds") == true,
                "\(error?.message ?? "")")
            #expect(test.answer("Before") == "yes")
        }
    }

    @Test func `A subscriber that does not return from a sticky event keeps no other module from starting`() throws {
        let test = try TestHost { configuration, _ in configuration.hookTimeout = .milliseconds(300) }
        defer { _ = try? test.folder.file("gate") }
        try test.start()
        try test.host.post("shop.sold", sticky: true)
        var module = CModule(name: "Slow")
        module.events = [("shop.sold", "", Self.waiting(test))]
        try module.build(into: test.plugins, as: "b.so")
        #expect(eventually { test.messages.contains { $0.contains("a subscriber to a sticky event of Slow") } })
        try CModule(name: "After").build(into: test.plugins, as: "c.so")
        #expect(eventually { test.answer("After") == "yes" })
    }

    @Test(arguments: ["module.added", "module.removed", "module.failed", "host.willTerminate"])
    func `A subscriber that does not return from an event of the host delays neither changes nor the end`(
        event: String
    ) throws {
        let test = try TestHost { configuration, _ in
            (configuration.hookTimeout, configuration.shutdownTimeout) = (.milliseconds(300), .milliseconds(300))
        }
        defer { _ = try? test.folder.file("gate") }
        var module = CModule(name: "Slow")
        module.events = [(event, "", Self.waiting(test))]
        try module.build(into: test.plugins, as: "a.so")
        try test.folder.file("plugins/broken.so", Data("no library".utf8))
        try CModule(name: "Before").build(into: test.plugins, as: "b.so")
        try test.start()
        #expect(test.answer("Before") == "yes")
        unlink("\(test.plugins)/b.so")
        #expect(eventually { test.status("b.so") == nil })
        try CModule(name: "After").build(into: test.plugins, as: "c.so")
        #expect(eventually { test.answer("After") == "yes" })
        test.host.shutdown()
        #expect(test.messages.contains { $0.contains("the event “\(event)” did not return within 0.3 seconds") })
    }

    @Test func `A subscriber that does not return is waited for once, however many modules are added`() throws {
        let test = try TestHost { configuration, _ in configuration.hookTimeout = .seconds(1) }
        defer { _ = try? test.folder.file("gate") }
        var module = CModule(name: "Slow")
        module.events = [("module.added", "", Self.waiting(test))]
        try module.build(into: test.plugins, as: "a.so")
        for name in ["B", "C", "D"] { try CModule(name: name).build(into: test.plugins, as: "\(name).so") }
        try test.start()
        let waits = test.messages.filter { $0.contains("“module.added” did not return within") }
        #expect(waits.count { $0.contains("within 1.0 seconds") } == 1)
        #expect(waits.count { $0.contains("within 0.1 seconds") } == 3)
    }

    @Test func `While a constructor hangs, calls continue, and files that cannot be opened wait until it returns`()
        async
    {
        await #expect(processExitsWith: .success) {
            let test = try TestHost { configuration, _ in configuration.hookTimeout = .milliseconds(300) }
            try CModule(name: "Before").build(into: test.plugins, as: "a.so")
            try SlowCodeTests.hanging(in: "constructor", test).build(into: test.plugins, as: "b.so")
            try CModule(name: "After").build(into: test.plugins, as: "c.so")
            try test.start()
            #expect(test.answer("Before") == "yes")
            let refusal = test.status("c.so")?.error?.message ?? ""
            #expect(refusal.contains("a constructor of \(test.plugins)/b.so has been running"), "\(refusal)")
            test.host.on("shop.sold") { _ in }.cancel()
            #expect(throws: PluginError.self) { try test.host.perform("Before", "missing") }
            try test.folder.file("gate")
            #expect(eventually { test.answer("After") == "yes" })
        }
    }

    @Test(arguments: ["constructor", "entry", "activate", "init", "asynchronous init"])
    func `Code that takes longer than two seconds is named in the log while the host waits for it`(place: String) throws
    {
        let test = try TestHost()
        try Self.hanging(in: place, test).build(into: test.plugins, as: "b.so")
        let starting = Thread { try? test.start() }
        starting.start()
        #expect(
            eventually {
                test.messages.contains { $0.contains("\(test.plugins)/b.so") && $0.contains("has been running for 2") }
            }, "\(test.messages)")
        try test.folder.file("gate")
        #expect(eventually { place == "asynchronous init" || test.answer("Slow") == "yes" })
    }

    @Test func `A deactivate that does not return is named, and the end of the host continues`() throws {
        let test = try TestHost { configuration, _ in configuration.shutdownTimeout = .milliseconds(300) }
        defer { _ = try? test.folder.file("gate") }
        var module = CModule(name: "Slow")
        module.code = "static void end(void *data) { (void)data; \(Self.waiting(test)) }"
        module.entry = "module.deactivate = end;"
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        test.host.shutdown()
        #expect(test.messages.contains { $0.contains("deactivate of Slow") && $0.contains("did not return within") })
    }
}
