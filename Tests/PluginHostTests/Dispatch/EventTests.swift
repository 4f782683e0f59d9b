import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

/// Events: which subscribers receive them, in which order, and what happens when a subscriber fails.
@Suite(.timeLimit(.minutes(30))) struct EventTests {
    // MARK: Modules

    @Test func `Subscribers get an event in the order of level, priority and name`() throws {
        let test = try TestHost()
        for (name, manifest) in [("C", #""level": "basic","#), ("B", ""), ("A", #""priority": -1,"#)] {
            var module = CModule(name: name)
            module.moreManifest = manifest
            module.events = [("shop.sold", "", "note(\"\(test.noteFile)\", \"\(name) \");")]
            try module.build(into: test.plugins, as: "\(name).so")
        }
        try test.start()
        let outcome = try test.host.post("shop.sold")
        #expect(test.notes == "C B A ")
        #expect(outcome == EventOutcome(delivered: 3, failures: []))
    }

    @Test func `A subscriber gets the parameters that it declares, converted, and no others`() throws {
        let test = try TestHost()
        var module = CModule()
        module.events = [
            (
                "shop.sold", #", "parameters": [{"name": "count", "type": "int", "required": true}]"#,
                """
                char line[64];
                snprintf(line, sizeof line, "%u %ld", count, (long)arguments[0].as.integer);
                note("\(test.noteFile)", line);
                """
            )
        ]
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        try test.host.post("shop.sold", ["item": "tea", "count": 3.0])
        #expect(test.notes == "1 3")
        let outcome = try test.host.post("shop.sold", ["count": "x"])
        #expect(outcome.delivered == 1 && outcome.failures.map(\.code) == [.mistypedParameter])
        #expect(outcome.failures.first?.source == "Good")
    }

    @Test func `A subscriber that fails does not stop the others, and is named`() throws {
        let test = try TestHost()
        for name in ["A", "B"] {
            var module = CModule(name: name)
            let body = name == "A" ? "refuse(call, \"no money\"); return;" : "note(\"\(test.noteFile)\", \"B\");"
            module.events = [("shop.sold", "", body)]
            try module.build(into: test.plugins, as: "\(name).so")
        }
        try test.start()
        let outcome = try test.host.post("shop.sold")
        #expect(test.notes == "B" && outcome.delivered == 2)
        #expect(outcome.failures == [PluginError("refused", "no money", source: "A")])
        #expect(test.messages.contains { $0.contains("“shop.sold” failed in A") && $0.contains("no money") })
    }

    @Test func `Asynchronous subscribers are awaited by an asynchronous post, and only started by any other`()
        async throws
    {
        let test = try TestHost.withFixture()
        let outcome = try await test.host.post("fixture.async", ["item": "tea"])
        #expect(outcome.delivered == 1 && test.log.contains { $0.message == "async tea" })
        let folder = try TemporaryFolder()
        let salt = "\(folder.path)/salt"
        let started = try await onThread { try test.host.post("fixture.async", ["item": .string(salt)]) }
        #expect(started.delivered == 1)
        #expect(!test.log.contains { $0.message == "async \(salt)" })
        try folder.file("salt")
        #expect(await becomesTrue { test.log.contains { $0.message == "async \(salt)" } })
    }

    @Test func `The failure of an asynchronous subscriber is reported and logged`() async throws {
        let test = try TestHost.withFixture()
        let outcome = try await test.host.post("fixture.fails")
        #expect(outcome.failures == [PluginError("outOfStock", "There are no more.", source: "FixtureModule")])
        #expect(test.log.contains { $0.level == .error && $0.message.contains("fixture.fails") })
    }

    @Test func `A post that waits ends at its deadline, while the subscriber continues`() async throws {
        let test = try TestHost.withFixture()
        let error = await #expect(throws: PluginError.self) {
            try await test.host.post("fixture.async", timeout: .milliseconds(1))
        }
        #expect(error?.code == .deadlineExceeded)
        #expect(await becomesTrue { test.log.contains { $0.message == "async nothing" } })
    }

    @Test(arguments: [3, 12])
    func `A subscriber that is removed during a delivery does not get the event, but all others do`(count: Int) throws {
        let test = try TestHost([])
        let told = Mutex<[Int]>([])
        let modules = (0..<count).map { number in
            Manifest("Listener\(100 + number)", version: "1.0.0") {
                Subscribe {
                    Action("shop.sold") {
                        told.withLock { $0.append(number) }
                        if number == 0 { try test.host.unregister("Listener101") }
                    }
                }
            }
        }
        for module in modules { try test.host.register(module) }
        let outcome = try test.host.post("shop.sold")
        #expect(told.withLock { $0 } == [0] + (2..<count))
        #expect(outcome == EventOutcome(delivered: count - 1, failures: []))
        #expect(try test.host.post("shop.sold").delivered == count - 1)
    }

    @Test func `Modules post to each other`() throws {
        let test = try TestHost.withFixture()
        #expect(try test.host.perform("Poster", "post", ["fixture.sync"]) == 1)
        #expect(test.log.contains { $0.message == "sync tea" })
    }

    @Test func `A module in C posts events through an address`() throws {
        let test = try TestHost()
        var module = CModule()
        module.events = [("shop.sold", "", "note(\"\(test.noteFile)\", \"got \");")]
        module.body = """
            plugin_token token = call->token;
            plugin_request request = {.size = sizeof request, .address = PLUGIN_ADDRESS_EVENT,
                .target = PLUGIN_STRING("shop.sold")};
            host->perform(host, token, &request, pass_on, (void *)token);
            return;
            """
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(try test.host.perform("Good", "answer") == ["delivered": 1, "failures": []])
        #expect(test.notes == "got ")
    }

    @Test func `A module cannot post events of the host`() throws {
        let test = try TestHost.withFixture()
        let error = try test.failure("Poster", "post", ["host.willTerminate"])
        #expect(error.code == .refused)
    }

    @Test func `An event without subscribers is not an error`() async throws {
        let test = try TestHost.withFixture()
        #expect(try await test.host.post("nobody.cares") == EventOutcome(delivered: 0, failures: []))
    }

    @Test func `Parameters without a name are refused`() async throws {
        let test = try TestHost.withFixture()
        let error = await #expect(throws: PluginError.self) { try await test.host.post("fixture.sync", ["tea"]) }
        #expect(error?.code == .invalidValue)
    }

    // MARK: Endless events

    @Test(arguments: ["fixture.again", "fixture.againLater"])
    func `Posting an event endlessly from its own handler is an error`(event: String) async throws {
        let test = try TestHost.withFixture()
        let error = await #expect(throws: PluginError.self) { try await test.host.post(event) }
        #expect(error?.code == .recursionLimit)
    }

    @Test func `Handlers that ignore that error still end soon`() async throws {
        let test = try TestHost.withFixture()
        #expect(try await test.host.post("fixture.swallows").delivered == 1)
    }

    @Test func `Handlers of the program that post endlessly are stopped`() async throws {
        let test = try TestHost.withFixture()
        let host = test.host
        let subscription = host.on("loop") { [weak host] _ in try host?.post("loop") }
        let error = await #expect(throws: PluginError.self) { try await host.post("loop") }
        #expect(error?.code == .recursionLimit)
        subscription.cancel()
    }

    // MARK: Sticky events

    /// A module of the program that notes the events it receives.
    private func listener(_ name: String, _ heard: Heard) -> Manifest {
        Manifest(name, version: "1.0.0") {
            Subscribe {
                Action("shop.sold", .required("item", String.self)) { item in heard.note("\(name) \(item)") }
            }
            On(.didStart) { _ in heard.note("\(name) started") }
        }
    }

    @Test func `A module that the program registers gets the sticky events that were posted before`() throws {
        let test = try TestHost([])
        let heard = Heard()
        try test.host.post("shop.sold", ["item": "salt"], sticky: true)
        try test.host.register(listener("Late", heard))
        try test.host.post("shop.sold", ["item": "tea"], sticky: true)
        #expect(heard.notes.withLock { $0 } == ["Late started", "Late salt", "Late tea"])
    }

    @Test func `A sticky event reaches a module once, even if it is posted while the module starts`() async throws {
        let test = try TestHost()
        func module(_ name: String, _ hooks: KeyValuePairs<String, String>, _ event: String) throws {
            var module = CModule(name: name)
            module.hooks = hooks
            module.code = """
                static void post_sold(plugin_token token) {
                    plugin_request request = {.size = sizeof request, .address = PLUGIN_ADDRESS_EVENT,
                        .flags = PLUGIN_REQUEST_STICKY, .target = PLUGIN_STRING("shop.sold")};
                    host->perform(host, token, &request, NULL, NULL);
                }
                """
            module.events = [("shop.sold", "", "post_sold; note(\"\(test.noteFile)\", \"\(event)\");")]
            try module.build(into: test.plugins, as: "\(name).so")
        }
        try module("A", [:], "A ")
        try module("Z", ["init": "post_sold(call->token);"], "Z ")
        try test.start()
        #expect(test.notes == "A Z ")
    }

    @Test func `A sticky event reaches a simultaneous subscription once`() async throws {
        let test = try TestHost([])
        let host = test.host
        for round in 0..<200 {
            let heard = Mutex(0)
            async let posted = host.post("rang\(round)", sticky: true)
            let subscription = host.on("rang\(round)") { _ in heard.withLock { $0 += 1 } }
            _ = try await posted
            #expect(heard.withLock { $0 } == 1)
            subscription.cancel()
        }
    }

    @Test func `A sticky event reaches a simultaneously added module once`() async throws {
        let test = try TestHost([])
        let host = test.host
        // Storing the event takes about as long as registering a module.
        let items = Parameters(["items": .list((0..<20_000).map { .string("a text of some length, number \($0)") })])
        for round in 0..<40 {
            let heard = Mutex(0)
            let module = Manifest("M\(round)", version: "1.0.0") {
                Subscribe { Action("rang\(round)") { heard.withLock { $0 += 1 } } }
            }
            async let posted = Task.detached { try host.post("rang\(round)", items, sticky: true) }.value
            try host.register(module)
            _ = try await posted
            #expect(heard.withLock { $0 } == 1)
        }
    }

    @Test func `A sticky event reaches later subscribers after didStart, with its last parameters`() async throws {
        let test = try TestHost()
        try test.start()
        for item in ["salt", "tea"] { try await test.host.post("shop.sold", ["item": .string(item)], sticky: true) }
        try await test.host.post("shop.closed")
        var module = CModule()
        module.hooks = ["didStart": "note(\"\(test.noteFile)\", \"didStart \");"]
        module.events = [
            (
                "shop.sold", #", "parameters": [{"name": "item", "type": "string"}]"#,
                "char item[9] = {0}; memcpy(item, arguments[0].as.string, arguments[0].count);"
                    + "note(\"\(test.noteFile)\", item);"
            ), ("shop.closed", "", "note(\"\(test.noteFile)\", \"closed\");"),
        ]
        try module.build(into: test.plugins, as: "a.so")
        #expect(await becomesTrue { test.notes == "didStart tea" })
        let got = Mutex<[Value?]>([])
        let subscription = test.host.on("shop.sold") { parameters in got.withLock { $0.append(parameters["item"]) } }
        #expect(got.withLock { $0 } == ["tea"])
        subscription.cancel()
    }
}

/// Events that the host itself posts.
@Suite(.timeLimit(.minutes(30)), .serialized) struct HostEventTests {
    @Test func `The adding, replacing, failing and removing of modules are events`() async throws {
        let test = try TestHost()
        let got = Mutex<[String]>([])
        let subscriptions = [
            "module.added", "module.replaced", "module.failed", "module.removed", "host.willTerminate",
        ]
        .map { event in
            test.host.on(event) { parameters in
                let version = parameters["previousVersion"]?.string.map { " after \($0)" } ?? ""
                got.withLock { $0.append("\(event) \(parameters["name"]?.string ?? "")\(version)") }
            }
        }
        try CModule().build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(got.withLock { $0 } == ["module.added Good"])
        try CModule(version: "2.0.0").build(into: test.plugins, as: "b.so")
        #expect(await becomesTrue { got.withLock { $0.last } == "module.replaced Good after 1.0.0" })
        try test.folder.file("plugins/c.so")
        #expect(await becomesTrue { got.withLock { $0.last } == "module.failed " })
        test.host.shutdown()
        #expect(got.withLock { $0.suffix(2) } == ["host.willTerminate ", "module.removed Good"])
        for subscription in subscriptions { subscription.cancel() }
    }

    @Test func `Modules that the program registers and unregisters are announced as events`() throws {
        let test = try TestHost([])
        let got = Mutex<[String]>([])
        let subscriptions = ["module.added", "module.removed"].map { event in
            test.host.on(event) { parameters in
                got.withLock { $0.append("\(event) \(parameters["name"]?.string ?? "")") }
            }
        }
        try test.host.register(Manifest("Clock", version: "1.0.0") {})
        try test.host.unregister("Clock")
        #expect(got.withLock { $0 } == ["module.added Clock", "module.removed Clock"])
        for subscription in subscriptions { subscription.cancel() }
    }

    @Test func `A URL that another program opens is an event if it leads somewhere, but not a local one`() async throws
    {
        let test = try TestHost.withSamples()
        let got = Mutex<[Value?]>([])
        let subscription = test.host.on("host.openURL") { parameters in got.withLock { $0.append(parameters["url"]) } }
        _ = try await test.host.open("app://A/fetchDetail?key=1", origin: .local)
        _ = try await test.host.open("app://A/fetchDetail?key=2", origin: .remote)
        let error = await #expect(throws: PluginError.self) {
            try await test.host.open("app://A/nothing", origin: .remote)
        }
        #expect(error?.code == .noRoute)
        #expect(got.withLock { $0 } == ["app://A/fetchDetail?key=2"])
        subscription.cancel()
    }

    @Test func `Memory pressure is watched if the kernel allows it, and otherwise the log says so`() async throws {
        let test = try TestHost()
        try test.start()
        let subscription = test.host.on("host.memoryPressure") { _ in }
        let isWatched = test.host.lifecycle.memoryWatch.isWatching
        #expect(isWatched || test.messages.contains { $0.contains("host.memoryPressure will not be posted") })
        subscription.cancel()
    }

    @Test func `The share of time lost to memory pressure is read from the kernel's figures`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.file("memory")
        try "some avg10=1.25 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=1\n"
            .write(toFile: path, atomically: false, encoding: .utf8)
        #expect(MemoryPressure.share(path) == 1.25)
        #expect(MemoryPressure.share("\(path).gone") == nil)
    }
}

/// The events that modules have received.
private final class Heard: Sendable {
    let notes = Mutex<[String]>([])

    func note(_ text: String) { notes.withLock { $0.append(text) } }
}
