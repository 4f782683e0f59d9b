import Foundation
import Glibc
import PluginABI
import Synchronization
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// Isolated modules that are put to rest when they are idle, and started again.
@Suite(.timeLimit(.minutes(30))) struct RestingModuleTests {
    private let lazy: LazyModules

    init() throws { lazy = try LazyModules() }

    private func makeHost(
        _ modules: [CModule], configure: (inout PluginHost.Configuration) -> Void = { _ in }
    ) throws -> TestHost {
        try lazy.makeHost(modules) { configuration in
            configuration.isolation.modules = .all
            configuration.isolation.restAfter = .seconds(1)
            var rule = IsolationRule("*")
            rule.writablePaths = [lazy.path.parentFolder]
            configuration.isolation.rules = [rule]
            configure(&configuration)
        }
    }

    private func stateless(_ name: String, more: String = "") -> CModule {
        lazy.module(name, more: "\"stateless\": true, \(more)")
    }

    /// Waits until a module with nothing that keeps it from resting is put to rest, which was called after all others.
    private func waitForRest(of name: String = "Idle", in host: TestHost) async -> Bool {
        guard host.answer(name) == name else { return false }
        return await becomesTrue { host.states["\(name).so"] == "registered" }
    }

    // MARK: - Rest

    @Test func `An idle module is put to rest, and its next call starts it`() async throws {
        var module = stateless("A")
        module.hooks = ["willStop": "note(\"\(lazy.path)\", \"stop:A \");"]
        module.tearDown = "note(\"\(lazy.path)\", \"end:A \");"
        module.manifest = """
            {"name": "A", "version": "1.0.0", "stateless": true, "hooks": ["setUp", "willStop", "tearDown"],
             "targets": [{"name": "A", "actions": [{"name": "answer", "rest": true}]}],
             "routes": [{"pattern": "app://fruit/:name", "action": "A/answer"},
                        {"pattern": "app://nuts", "action": "A/answer"}],
             "services": [{"name": "S", "version": "1.0.0", "target": "A"}]}
            """
        let host = try makeHost([module])
        let added = Mutex(0)
        let subscription = host.host.on("module.added") { _ in added.withLock { $0 += 1 } }
        let bound = host.host.bind("A", "answer")
        let service = try host.host.service("S")
        #expect(host.host.removeRoute("app://nuts"))
        var notes = ""
        let starts: [() throws -> Value] = [
            { try bound.perform() }, { try service.perform("answer") }, { try host.host.perform("A", "answer") },
        ]
        for start in starts {
            #expect(try start() == "A")
            #expect(host.states == ["A.so": "active"])
            let process = try #require(host.status("A.so")?.process)
            #expect(await becomesTrue { host.states == ["A.so": "registered"] })
            #expect(await becomesTrue { kill(process, 0) != 0 })
            notes += "open:A A stop:A end:A "
            #expect(await becomesTrue { lazy.notes == notes })
        }
        #expect(host.host.routes.map(\.pattern) == ["app://fruit/:name"])
        #expect(try await host.host.open("app://fruit/apple").string == "A")
        let changes = ["started A 1.0.0", "put to rest A 1.0.0", "retired A 1.0.0"]
        #expect(
            await becomesTrue {
                let texts = host.changes.map(\.description)
                return changes.allSatisfy { change in texts.count { $0.hasPrefix(change) } >= 3 }
            })
        #expect(!host.changes.contains { $0.isAdded("A") || $0.isRemoval || $0.isFailure })
        #expect(host.messages.contains { $0.contains("has been idle for 1.0 seconds, and is put to rest.") })
        #expect(host.status("A.so")?.restarts == 0 && host.host.keptVersions(of: "A").isEmpty)
        #expect(host.host.problems.isEmpty)
        #expect(added.withLock(\.self) == 0)
        withExtendedLifetime(subscription) {}
    }

    @Test func `64 threads call a module while it is put to rest, and no call fails`() async throws {
        let service = "\"services\": [{\"name\": \"S\", \"version\": \"1.0.0\", \"target\": \"A\"}],"
        let host = try makeHost([stateless("A", more: service)]) { $0.isolation.restAfter = nil }
        let bound = host.host.bind("A", "answer")
        let isOver = Atomic(false)
        async let rests = onThread {
            for _ in 0..<10 {
                guard eventually({ host.states["A.so"] == "active" }) else { break }
                host.host.lifecycle.rest("A")
            }
            isOver.store(true, ordering: .relaxed)
        }
        let failures = try await onThreads(64) { number in
            var failures: [String] = []
            while !isOver.load(ordering: .relaxed) {
                do {
                    let answer =
                        switch number % 3 {
                        case 0: try host.host.perform("A", "answer")
                        case 1: try bound.perform()
                        default: try host.host.service("S").perform("answer")
                        }
                    if answer != "A" { failures.append("another answer") }
                } catch { failures.append("\(error)") }
            }
            return failures
        }
        try await rests
        #expect(Array(failures.joined().prefix(3)) == [])
        #expect(await becomesTrue { host.host.retiredTotal.count == 10 })
        #expect(lazy.setUps.count >= 10)
    }

    @Test func `A module that is required while it is told to stop serves again`() async throws {
        let go = "\(lazy.path).go"
        var needed = stateless("Needed")
        needed.code = "#include <unistd.h>"
        needed.hooks = [
            "willStop": "note(\"\(lazy.path)\", \"stop \"); while (access(\"\(go)\", F_OK)) usleep(10000);"
        ]
        let host = try makeHost([needed, lazy.module("Needing", more: "\"requires\": [{\"module\": \"Needed\"}],")])
        defer { _ = FileManager.default.createFile(atPath: go, contents: nil) }
        #expect(host.answer("Needed") == "Needed")
        #expect(await becomesTrue { lazy.notes.contains("stop") })
        // It no longer serves, so whatever needs it starts it.
        #expect(host.states["Needed.so"] == "registered")
        let answer = Task { try await onThread { host.answer("Needing") } }
        #expect(FileManager.default.createFile(atPath: go, contents: nil))
        #expect(try await answer.value == "Needing")
        #expect(host.states == ["Needed.so": "active", "Needing.so": "active"])
    }

    // MARK: - What keeps a module from resting

    @Test func `A module rests only if it is stateless, isolated and starts when it is needed`() async throws {
        var (initialized, told, exclusive) = (stateless("Init"), stateless("Told"), stateless("Exclusive"))
        initialized.hooks = ["init": ""]
        told.events = [("host.willTerminate", "", "")]
        exclusive.moreManifest += "\"exclusive\": true,"
        exclusive.hooks = ["suspend": "", "unsuspend": ""]
        var intercepting = stateless("Intercepting", more: "\"interceptors\": [{\"name\": \"audit\"}],")
        intercepting.moreFunctions = "{TEXT(\"~audit\"), action_answer, NULL},"
        let modules = [
            lazy.module("Stateful"), stateless("Eager", more: "\"start\": \"eager\","), initialized, told, exclusive,
            intercepting, stateless("Named"), stateless("Needed"), stateless("Open"),
            lazy.module("Needing", more: "\"requires\": [{\"module\": \"Needed\"}],"),
        ]
        let names = modules.map(\.name)
        let host = try makeHost(modules + [stateless("Idle")]) { configuration in
            configuration.eagerModules = ["Named"]
            configuration.interceptors = [.init("Intercepting", "audit", for: .target("Nothing"))]
            configuration.isolation.modules = .named(Set(names + ["Idle"]).subtracting(["Open"]))
            configuration.isolation.rules[0].module = "Idle"
            configuration.isolation.rules += names.filter { $0 != "Open" }.map { name in
                var rule = configuration.isolation.rules[0]
                rule.module = name
                return rule
            }
        }
        for name in names { #expect(host.answer(name) == name) }
        #expect(await waitForRest(in: host))
        for name in names { #expect(host.states["\(name).so"] == "active", "\(name)") }
    }

    @Test func `No module rests without a time`() async throws {
        let never = try makeHost([stateless("A")]) { $0.isolation.restAfter = nil }
        #expect(never.answer("A") == "A")
        let resting = try makeHost([stateless("Idle")])
        #expect(await waitForRest(in: resting))
        #expect(never.states["A.so"] == "active")
    }

    /// Makes objects.
    private var maker: CModule {
        var maker = stateless("Maker")
        maker.code = "static void destroy(void *thing) { (void)thing; }"
        maker.types = [("Thing", [.init(name: "touch", body: "reply_int(call->token, 1);")])]
        maker.actions = [
            (
                "make",
                """
                plugin_object object = host->object_create(host, text("Thing"), &destroy, destroy);
                reply_value(call->token, plugin_value_object(object));
                host->object_release(host, object);
                """
            )
        ]
        return maker
    }

    @Test func `A module does not rest while its objects are held, or while it holds objects`() async throws {
        var keeper = stateless("Keeper")
        keeper.code = """
            static plugin_object kept;
            static void pass(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)error;
                kept = value->as.object;
                host->object_retain(host, kept);
            }
            """
        keeper.actions = [
            (
                "keep",
                """
                plugin_request request = ask("Maker", "make");
                host->perform(host, call->token, &request, pass, NULL);
                reply(call, "kept");
                """
            ), ("drop", "host->object_release(host, kept); reply(call, \"dropped\");"),
        ]
        let host = try makeHost([maker, keeper, stateless("Idle")])
        var thing = try host.host.perform("Maker", "make").object
        #expect(host.answer("Keeper") == "Keeper")
        #expect(await waitForRest(in: host))
        #expect(host.states["Maker.so"] == "active" && host.states["Keeper.so"] == "registered")
        #expect(try host.host.perform("Keeper", "keep") == "kept")
        #expect(try thing?.perform("touch") == 1)
        thing = nil
        #expect(await waitForRest(in: host))
        #expect(host.states["Maker.so"] == "active" && host.states["Keeper.so"] == "active")
        #expect(try host.host.perform("Keeper", "drop") == "dropped")
        #expect(await becomesTrue { Set(host.states.values) == ["registered"] })
    }

    @Test func `A module does not rest while it runs a call or waits for one`() async throws {
        var slow = stateless("Slow")
        slow.code = "static plugin_token later;"
        slow.manifest = """
            {"name": "Slow", "version": "1.0.0", "stateless": true, "targets": [{"name": "Slow", "actions":
             [{"name": "answer"}, {"name": "wait", "async": true}, {"name": "reply"}]}], "hooks": ["setUp"]}
            """
        slow.actions = [
            ("wait", "later = call->token;"), ("reply", "reply_int(later, 1); reply(call, \"replied\");"),
        ]
        // The call that the module makes has no caller.
        var asking = stateless("Asking")
        asking.code = """
            static void done(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)value, (void)error;
                note("\(lazy.path)", "done ");
            }
            """
        asking.actions = [
            (
                "begin",
                """
                plugin_request request = ask("Slow", "wait");
                host->call(host, 0, &request, done, NULL);
                reply(call, "begun");
                """
            )
        ]
        let host = try makeHost([slow, asking, stateless("Idle")])
        #expect(try host.host.perform("Asking", "begin") == "begun")
        #expect(await becomesTrue { host.states["Slow.so"] == "active" })
        #expect(await waitForRest(in: host))
        #expect(host.states["Slow.so"] == "active" && host.states["Asking.so"] == "active")
        #expect(await becomesTrue { host.host.generations.contains { $0.name == "Slow" && !$0.calls.isEmpty } })
        #expect(try host.host.perform("Slow", "reply") == "replied")
        #expect(await becomesTrue { lazy.notes.contains("done ") })
        #expect(await becomesTrue { Set(host.states.values) == ["registered"] })
    }

    // MARK: - Files

    @Test func `A change of the file of a module at rest is noticed, and its version is kept`() async throws {
        let host = try makeHost([stateless("Idle")])
        #expect(await waitForRest(in: host))
        #expect(host.host.lifecycle.holdFiles() == 1)
        var newer = stateless("Idle")
        (newer.version, newer.answer) = ("2.0.0", "new")
        try newer.build(into: host.plugins, as: "Idle.so")
        try host.host.lifecycle.update()
        #expect(host.status("Idle.so")?.version == "2.0.0")
        #expect(host.answer("Idle") == "new")
        #expect(host.host.keptVersions(of: "Idle").map(\.version).contains("1.0.0"))
    }

    @Test func `A changed file that the host has not noticed is found by the first call`() async throws {
        let host = try makeHost([stateless("Idle")])
        #expect(await waitForRest(in: host))
        var newer = stateless("Idle")
        newer.answer = "new"
        try newer.build(into: host.plugins, as: "Idle.so")
        #expect(host.answer("Idle") == "new")
    }

    @Test func `A module whose file has changed or is gone is not put to rest`() async throws {
        let host = try makeHost(["Gone", "Changed", "Idle"].map { stateless($0) })
        for name in ["Gone", "Changed"] { #expect(host.answer(name) == name) }
        try FileManager.default.removeItem(atPath: "\(host.plugins)/Gone.so")
        var newer = stateless("Changed")
        newer.answer = "new"
        try newer.build(into: host.plugins, as: "Changed.so")
        #expect(await waitForRest(in: host))
        #expect(host.states["Gone.so"] == "active" && host.states["Changed.so"] == "active")
        #expect(host.answer("Gone") == "Gone" && host.answer("Changed") == "Changed")
        try host.host.lifecycle.update()
        #expect(host.states["Gone.so"] == nil)
        #expect(host.answer("Changed") == "new")
    }

    @Test func `A time that is too short is an error, and one without effect`() {
        let short = #expect(throws: PluginError.self) {
            try makeHost([]) { $0.isolation.restAfter = .milliseconds(999) }
        }
        #expect(short?.code == .invalidConfiguration)
        #expect(short?.message.contains("isolation.restAfter is 0.999 seconds. It must be at least 1 second") == true)
        let useless = #expect(throws: PluginError.self) { try makeHost([]) { $0.start = .eager } }
        #expect(useless?.code == .invalidConfiguration)
        #expect(useless?.message.contains("Set start to .lazy (--lazy), or omit restAfter.") == true)
    }

    @Test func `The generations of a module that rests share what was read from its file`() throws {
        let host = try makeHost([stateless("A")])
        var modules: [LoadedModule] = []
        for _ in 0..<2 {
            #expect(host.answer("A") == "A")
            modules.append(try #require(host.host.calls.registry.table.generations.first?.module))
            host.host.lifecycle.rest("A")
            modules.append(try #require(host.host.calls.registry.table.contents.known.modules.first))
        }
        #expect(Set(modules.map { ObjectIdentifier($0.outline) }).count == 1)
        let descriptions = modules.filter(\.isOpen).map(\.description.pointee)
        try #require(descriptions.count == 2)
        #expect(descriptions[0].manifest.bytes == descriptions[1].manifest.bytes)
        #expect(descriptions[0].functions[0].name.bytes == descriptions[1].functions[0].name.bytes)
    }
}
