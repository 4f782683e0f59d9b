import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Modules that require others. Each case is tried with all files present at the start, and added in both orders.
@Suite(.timeLimit(.minutes(30)), .serialized) struct DependencyTests {
    private func module(
        _ name: String, _ version: String = "1.0.0", requires: String..., level: String = "normal", more: String = ""
    ) -> CModule {
        CModule(
            name: name, version: version,
            moreManifest: """
                "level": "\(level)", \(requires.isEmpty ? "" : "\"requires\": [\(requires.joined(separator: ", "))], ")\(more)
                """)
    }

    private static func on(_ name: String, _ range: String, optional: Bool = false) -> String {
        "{\"module\": \"\(name)\", \"version\": \"\(range)\"\(optional ? ", \"optional\": true" : "")}"
    }

    @Test func `A module waits visibly for its requirement, and starts when that is added`() throws {
        let test = try TestHost()
        try module("B", requires: Self.on("A", "^1.0.0")).build(into: test.plugins, as: "b.so")
        try test.start()
        #expect(test.states == ["b.so": "waiting"])
        #expect(test.status("b.so")?.error?.code == .missingRequirement)
        #expect(test.failure("B")?.code == .moduleUnavailable)
        #expect(test.failure("B")?.message.contains("requires the module A ^1.0.0") == true)
        try module("A").build(into: test.plugins, as: "a.so")
        #expect(eventually { test.answer("B") == "yes" })
        #expect(test.states == ["a.so": "active", "b.so": "active"])
    }

    @Test func `A requirement starts first, whatever the level`() throws {
        let test = try TestHost()
        let notes = "\(test.folder.path)/notes"
        for var module in [
            module("A", level: "normal"), module("B", requires: Self.on("A", "*"), level: "basic"),
            module("C", level: "basic"),
        ] {
            module.setUp = "note(\"\(notes)\", \"\(module.name) \");"
            module.tearDown = "note(\"\(notes)\", \"-\(module.name) \");"
            try module.build(into: test.plugins, as: "\(module.name).so")
        }
        try test.start()
        test.host.shutdown()
        #expect(try String(contentsOfFile: notes, encoding: .utf8) == "C A B -B -A -C ")
    }

    @Test func `An unacceptable version has its own error, and an acceptable one is used`() throws {
        let test = try TestHost()
        try module("A", "2.0.0").build(into: test.plugins, as: "a.so")
        try module("B", requires: Self.on("A", "^1.2")).build(into: test.plugins, as: "b.so")
        try test.start()
        #expect(test.status("b.so")?.error?.code == .wrongVersion)
        #expect(test.status("b.so")?.error?.message.contains("only 2.0.0 is available") == true)
        try module("A", "1.3.0").build(into: test.plugins, as: "a.so")
        #expect(eventually { test.answer("B") == "yes" })
    }

    @Test func `A circular requirement is named, and ends when one of its modules is replaced`() throws {
        let test = try TestHost()
        try module("A", requires: Self.on("B", "*")).build(into: test.plugins, as: "a.so")
        try module("B", requires: Self.on("A", "*")).build(into: test.plugins, as: "b.so")
        try module("C", requires: Self.on("A", "*")).build(into: test.plugins, as: "c.so")
        try test.start()
        #expect(test.status("a.so")?.error?.code == .circularRequirement)
        #expect(test.status("a.so")?.error?.message.contains("A requires B requires A") == true)
        #expect(test.status("c.so")?.error?.code == .requirementWaits)
        try module("B", requires: Self.on("A", "*", optional: true)).build(into: test.plugins, as: "b.so")
        #expect(eventually { test.answer("C") == "yes" })
        #expect(test.answer("A") == "yes" && test.answer("B") == "yes")
    }

    @Test func `Dependents wait when their requirement is removed, and start again when it is back`() throws {
        let test = try TestHost()
        try module("A").build(into: test.plugins, as: "a.so")
        try module("B", requires: Self.on("A", "^1.0.0")).build(into: test.plugins, as: "b.so")
        try module("C", requires: Self.on("B", "*")).build(into: test.plugins, as: "c.so")
        try test.start()
        let generation = test.status("b.so")?.generation
        unlink("\(test.plugins)/a.so")
        #expect(eventually { test.states == ["b.so": "waiting", "c.so": "waiting"] })
        #expect(test.failure("C")?.code == .moduleUnavailable)
        try module("A", "1.1.0").build(into: test.plugins, as: "a.so")
        #expect(eventually { test.answer("C") == "yes" })
        #expect(test.status("b.so")?.generation != generation)
    }

    @Test func `Dependents continue to serve when their requirement is replaced by an acceptable version`() throws {
        let test = try TestHost()
        try module("A").build(into: test.plugins, as: "a.so")
        try module("B", requires: Self.on("A", "^1.0.0")).build(into: test.plugins, as: "b.so")
        try test.start()
        let generation = test.status("b.so")?.generation
        try module("A", "1.1.0").build(into: test.plugins, as: "a.so")
        #expect(eventually { test.status("a.so")?.version == "1.1.0" })
        #expect(test.status("b.so")?.generation == generation && test.answer("B") == "yes")
    }

    @Test func `A higher version that waits lets the lower one serve`() throws {
        let test = try TestHost()
        try module("A", "2.0.0", requires: Self.on("Missing", "*")).build(into: test.plugins, as: "a-2.so")
        try module("A").build(into: test.plugins, as: "a-1.so")
        try test.start()
        #expect(test.states == ["a-1.so": "active", "a-2.so": "waiting"])
        try module("Missing").build(into: test.plugins, as: "m.so")
        #expect(eventually { test.states == ["a-1.so": "superseded", "a-2.so": "active", "m.so": "active"] })
    }

    @Test func `A service can be required`() throws {
        let test = try TestHost()
        try module("B", requires: "{\"service\": \"Login\", \"version\": \">=1.2\"}").build(
            into: test.plugins, as: "b.so")
        try test.start()
        #expect(test.status("b.so")?.error?.message.contains("the service Login >=1.2") == true)
        try module("A", more: "\"services\": [{\"name\": \"Login\", \"version\": \"1.2.0\", \"target\": \"A\"}], ")
            .build(into: test.plugins, as: "a.so")
        #expect(eventually { test.answer("B") == "yes" })
    }

    @Test func `A module starts without an optional requirement`() throws {
        let test = try TestHost()
        try module("B", requires: Self.on("A", "*", optional: true)).build(into: test.plugins, as: "b.so")
        try test.start()
        #expect(test.answer("B") == "yes")
        try module("A").build(into: test.plugins, as: "a.so")
        #expect(eventually { test.answer("A") == "yes" })
        #expect(test.answer("B") == "yes")
    }

    @Test func `An init can call another new module, which no other code sees before`() throws {
        let test = try TestHost()
        let (notes, gate) = ("\(test.folder.path)/notes", "\(test.folder.path)/gate")
        try module("A").build(into: test.plugins, as: "a.so")
        var caller = module("B")
        caller.code = """
            static void seen(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)error; note("\(notes)", value ? "seen" : "unseen");
            }
            """
        caller.hooks = [
            "init": """
            plugin_request request = {.size = sizeof request, .target = PLUGIN_STRING("A"),
                .action = PLUGIN_STRING("answer")};
            host->perform(host, call->token, &request, seen, 0);
            while (access("\(gate)", F_OK) != 0) usleep(1000);
            """
        ]
        try caller.build(into: test.plugins, as: "b.so")
        let started = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            #expect(throws: Never.self) { try test.start() }
            started.signal()
        }
        #expect(eventually { access(notes, F_OK) == 0 })
        #expect(test.answer("A") == nil && test.answer("B") == nil)
        try test.folder.file("gate")
        started.wait()
        #expect(try String(contentsOfFile: notes, encoding: .utf8) == "seen")
        #expect(test.answer("A") == "yes" && test.answer("B") == "yes")
    }

    @Test func `Modules start and stop with the modules of the program that they require`() throws {
        let test = try TestHost()
        try module("B", requires: Self.on("Clock", "*")).build(into: test.plugins, as: "b.so")
        try CModule(name: "C", target: "Clock").build(into: test.plugins, as: "c.so")
        try test.start()
        #expect(test.states == ["b.so": "waiting", "c.so": "active"])
        unlink("\(test.plugins)/c.so")
        #expect(eventually { test.states == ["b.so": "waiting"] })
        try test.host.register(
            Manifest("Clock", version: "1.0.0") { Target("Clock") { Action("answer") { "from the program" } } })
        #expect(test.answer("B") == "yes" && test.answer("Clock") == "from the program")
        try CModule(name: "C", target: "Clock").build(into: test.plugins, as: "c.so")
        #expect(eventually { test.status("c.so")?.error?.code == .conflict })
        #expect(try test.host.unregister("Clock"))
        #expect(test.states == ["b.so": "waiting", "c.so": "active"])
        #expect(test.answer("Clock") == "yes")
    }

    @Test func `A module that was refused because of a route of the program starts when the route is removed`() throws {
        let test = try TestHost()
        try test.host.addRoute("app://shop/door", to: "Shop/answer")
        try module(
            "Shop", more: "\"routes\": [{\"pattern\": \"app://shop/door\", \"action\": \"Shop/answer\"}], "
        ).build(into: test.plugins, as: "shop.so")
        try test.start()
        #expect(test.status("shop.so")?.error?.code == .conflict)
        #expect(test.host.removeRoute("app://shop/door"))
        #expect(eventually { test.answer("Shop") == "yes" })
    }
}
