import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Modules that the program itself registers.
@Suite(.timeLimit(.minutes(30))) struct RegistrationTests {
    struct Clock: Module {
        static let manifest = Manifest("Clock", version: "1.1.0") {
            Target("Clock") {
                Action("year", .optional("plus", Int.self, default: 0)) { plus in 2026 + plus }.remote()
                Action("greet", .context(), .required("name", String.self)) { context, name in
                    try context.perform("B", "greet", ["name": .string(name)])
                }
            }
            Route("app://clock/:plus", to: "Clock/year")
            Service("Time", version: "1.0.0", target: "Clock")
        }
    }

    /// A module with one target of the same name.
    private func manifest(_ name: String, target: String? = nil) -> Manifest {
        Manifest(name, version: "1.0.0") {
            Target(target ?? name) {
                Action("answer") { name }
            }
        }
    }

    private func failure(_ host: PluginHost, _ manifest: Manifest) throws -> PluginError {
        try #require(#expect(throws: PluginError.self) { try host.register(manifest) })
    }

    @Test func `A module that the program registers is called like any other, before the start and after it`()
        async throws
    {
        let test = try TestHost()
        try test.host.register(Clock.self)
        for isStarted in [false, true] {
            if isStarted { try test.start() }
            #expect(try test.host.perform("Clock", "year") == 2026)
            #expect(try await test.host.open("app://clock/4", origin: .remote) == 2030)
            #expect(try test.host.service("Time").perform("year", ["plus": 1]) == 2027)
        }
        try test.host.register(manifest("Late"))
        #expect(try test.host.perform("Late", "answer") == "Late")
        let modules = test.host.modules
        #expect(modules.map(\.name) == ["Clock", "Late"])
        #expect(modules.allSatisfy { $0.file == "(program)" && $0.state == .active && $0.generation != nil })
        #expect(modules.first?.version == "1.1.0" && modules.first?.targets == ["Clock"])
    }

    @Test func `Modules of the program and of files call each other`() throws {
        let test = try TestHost.withSamples()
        try test.host.register(Clock.self)
        #expect(try test.host.perform("Clock", "greet", ["Ada"]) == "Hello, Ada!")
    }

    @Test func `A conflict names both sides, and nothing of the new module is registered`() throws {
        let test = try TestHost()
        try CModule(name: "Owner", target: "Shop").build(into: test.plugins, as: "owner.so")
        try test.start()
        let thief = Manifest("Thief", version: "1.0.0") {
            Target("Free") {
                Action("answer") { 1 }
            }
            Target("Shop") {
                Action("answer") { 1 }
            }
        }
        let error = try failure(test.host, thief)
        #expect(error.code == .conflict)
        for word in ["Thief", "(program)", "Owner", "owner.so", "Shop"] {
            #expect(error.message.contains(word), "\(error.message)")
        }
        #expect(throws: PluginError.self) { try test.host.perform("Free", "answer") }
        #expect(test.answer("Shop") == "yes")

        try test.host.register(Clock.self)
        let service = Manifest("Other", version: "1.0.0") {
            Target("Other") {
                Action("year") { 1 }
            }
            Service("Time", version: "1.0.0", target: "Other")
        }
        #expect(try failure(test.host, service).message.contains("the service Time 1.0.0"))
        let route = Manifest("Other", version: "1.0.0") {
            Target("Other") {
                Action("year", .required("x", String.self)) { $0 }
            }
            Route("app://clock/:x", to: "Other/year")
        }
        #expect(try failure(test.host, route).message.contains("module Clock"))
        #expect(try failure(test.host, manifest("Owner", target: "New")).code == .conflict)
        #expect(try failure(test.host, manifest("Clock", target: "New")).code == .conflict)
    }

    @Test func `A file does not replace a module of the program, or take its targets`() throws {
        let test = try TestHost()
        try test.host.register(manifest("Good"))
        try test.host.register(manifest("Mine", target: "Shop"))
        try CModule(version: "9.0.0").build(into: test.plugins, as: "a.so")
        try CModule(name: "Thief", target: "Shop").build(into: test.plugins, as: "b.so")
        try test.start()
        #expect(test.status("a.so")?.error?.code == .conflict && test.status("b.so")?.error?.code == .conflict)
        #expect(test.answer() == "Good" && test.answer("Shop") == "Mine")
    }

    @Test func `A file that was refused serves when the program has unregistered the conflicting module`() throws {
        let test = try TestHost { configuration, _ in configuration.watches = false }
        try test.host.register(manifest("Mine", target: "Shop"))
        try CModule(name: "Heir", target: "Shop").build(into: test.plugins, as: "heir.so")
        try test.start()
        #expect(test.status("heir.so")?.error?.code == .conflict && test.answer("Shop") == "Mine")
        try test.host.unregister("Mine")
        #expect(test.status("heir.so")?.state == .active && test.answer("Shop") == "yes")
    }

    @Test func `A file refused for a route of the program serves in the change that unregisters the route`() throws {
        let test = try TestHost { configuration, _ in configuration.watches = false }
        try test.host.register(Clock.self)
        try CModule(
            name: "Heir", moreManifest: #""routes": [{"pattern": "app://clock/:other", "action": "Heir/answer"}], "#
        ).build(into: test.plugins, as: "heir.so")
        try test.start()
        #expect(test.status("heir.so")?.error?.code == .conflict)
        try test.host.unregister("Clock")
        #expect(test.status("heir.so")?.state == .active && test.answer("Heir") == "yes")
    }

    @Test func `A module of a file is refused as a whole if one of its routes or services belongs to the program`()
        throws
    {
        let test = try TestHost()
        try test.host.register(Clock.self)
        try test.host.addRoute("app://mine", to: "Clock/year")
        func module(_ name: String, _ manifest: String) throws {
            try CModule(name: name, moreManifest: manifest).build(into: test.plugins, as: "\(name).so")
        }
        try module("A", #""services": [{"name": "Time", "version": "1.0.0", "target": "A"}], "#)
        try module("B", #""routes": [{"pattern": "app://mine", "action": "B/answer"}], "#)
        try module("C", #""routes": [{"pattern": "app://clock/:other", "action": "C/answer"}], "#)
        try module("D", #""services": [{"name": "Time", "version": "2.0.0", "target": "D"}], "#)
        try test.start()
        for (name, owner) in [("A", "Clock ((program))"), ("B", "the program"), ("C", "module Clock")] {
            let error = try #require(test.status("\(name).so")?.error)
            #expect(error.code == .conflict && error.message.contains(owner), "\(error.message)")
            #expect(test.answer(name) == nil)
        }
        #expect(try test.host.open("app://mine") == 2026)
        // A higher version is not a conflict.
        #expect(try test.host.serviceInfo("Time").module == "D")
    }

    @Test func `Handlers of the program get an event after the modules, whoever registers them`() throws {
        let test = try TestHost()
        let notes = Notes()
        let subscription = test.host.on("rang") { _ in notes.add("handler") }
        try test.host.register(
            Manifest("M", version: "1.0.0") {
                Subscribe {
                    Action("rang") { notes.add("module") }
                }
            })
        #expect(try test.host.post("rang").delivered == 2)
        #expect(notes.all == ["module", "handler"])
        subscription.cancel()
    }

    @Test func `An invalid manifest is refused, with the reason`() throws {
        let test = try TestHost()
        let error = try failure(test.host, Manifest("no name", version: "1.0.0") {})
        #expect(error.code == .invalidManifest && error.message.contains("no name"))
        #expect(try failure(test.host, Manifest("M", version: "1") {}).code == .invalidManifest)
        #expect(test.host.modules.isEmpty)
    }

    @Test func `An unregistered module is torn down after its last call, and can be registered again`() async throws {
        for isStarted in [false, true] {
            let test = try TestHost()
            if isStarted { try test.start() }
            let host = test.host
            let notes = Notes()
            let gate = DispatchSemaphore(value: 0)
            let manifest = Manifest("M", version: "1.0.0") {
                Target("M") {
                    Action("hold") {
                        notes.add("begin")
                        gate.wait()
                        notes.add("end")
                    }
                }
                On(.setUp) { _ in notes.add("setUp") }
                On(.tearDown) { _ in notes.add("tearDown") }
            }
            try host.register(manifest)
            #expect(host.generations.map(\.state) == [.active])
            async let held = onThread { try host.perform("M", "hold") }
            #expect(await becomesTrue { notes.all == ["setUp", "begin"] })
            let listed = Mutex<[String]>([])
            let subscription = host.on("module.removed") { [weak host] _ in
                listed.withLock { $0 = (host?.generations ?? []).map { "\($0.name) \($0.state)" } }
            }
            #expect(try host.unregister("M"))
            if isStarted { #expect(await becomesTrue { listed.withLock(\.self) == ["M draining"] }) }
            subscription.cancel()
            #expect(try !host.unregister("M"))
            #expect(throws: PluginError.self) { try host.perform("M", "hold") }
            gate.signal()
            _ = try await held
            #expect(await becomesTrue { notes.all == ["setUp", "begin", "end", "tearDown"] })
            try host.register(manifest)
            #expect(host.modules.map(\.name) == ["M"])
            host.shutdown()
            #expect(notes.all.suffix(2) == ["setUp", "tearDown"])
        }
    }

    @Test func `A module of a file cannot be unregistered`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(try !test.host.unregister("Good"))
        #expect(test.answer() == "yes")
    }

    @Test func `A module whose setUp throws is refused, and a setUp that registers another one gets an error`() throws {
        let test = try TestHost()
        let host = test.host
        let failing = Manifest("M", version: "1.0.0") { On(.setUp) { _ in throw PluginError("no", "Not today.") } }
        #expect(try failure(host, failing).message.contains("Not today."))
        let other = manifest("Other")
        let greedy = Manifest("Greedy", version: "1.0.0") { On(.setUp) { _ in try host.register(other) } }
        #expect(try failure(host, greedy).message.contains("on this thread"))
        #expect(host.modules.isEmpty)
        try host.register(other)
    }

    @Test func `Many threads can register modules at a time while files are added`() async throws {
        let test = try TestHost()
        try test.start()
        let host = test.host
        async let files: Void = onThread {
            for number in 0..<5 { try CModule(name: "F\(number)").build(into: test.plugins, as: "\(number).so") }
        }
        _ = try await onThreads(8) { thread in
            for number in 0..<10 {
                try host.register(manifest("M\(thread).\(number)"))
                if number.isMultiple(of: 2) { try host.unregister("M\(thread).\(number)") }
            }
        }
        try await files
        #expect(await becomesTrue { host.modules.count { $0.state == .active } == 45 })
        #expect(try host.perform("M3.7", "answer") == "M3.7" && host.perform("F4", "answer") == "yes")
    }

    @Test func `Of many threads that register the same name, one succeeds`() async throws {
        let test = try TestHost()
        let host = test.host
        let codes = try await onThreads(8) { _ in
            do throws(PluginError) { try host.register(manifest("M")) } catch { return error.code.rawValue }
            return "ok"
        }
        #expect(codes.sorted() == Array(repeating: "conflict", count: 7) + ["ok"])
    }

    /// A module with an action that returns its version, a route, and possibly an `init` that fails.
    private func version(_ version: String, target: String = "M", fails: Bool = false) -> UnsafePointer<plugin_module> {
        Manifest("M", version: version) {
            Target(target) {
                Action("version") { version }
            }
            Route("app://version", to: "\(target)/version")
            On(.initialize) { _ in if fails { throw PluginError("no", "No.") } }
        }.export()
    }

    @Test(arguments: [false, true])
    func `A description can replace the module of its name, without a failed call`(isStarted: Bool) async throws {
        let test = try TestHost()
        let host = test.host
        if isStarted { try test.start() }
        try host.register(version("1.0.0"), replaces: true)
        let error = #expect(throws: PluginError.self) { try host.register(version("1.0.1")) }
        #expect(error?.code == .conflict)
        let notes = Notes()
        defer { notes.add("over") }  // Also if an error is thrown, since the calls are waited for.
        async let calls: Void = onThread {
            while notes.all.isEmpty { try host.perform("M", "version") }
        }
        for number in 2..<20 {
            try host.register(version("\(number).0.0"), replaces: true)
            #expect(try await host.open("app://version") == .string("\(number).0.0"))
        }
        // A module that is refused leaves the old one in place.
        #expect(throws: PluginError.self) { try host.register(version("20.0.0", fails: true), replaces: true) }
        #expect(try host.perform("M", "version") == "19.0.0")
        notes.add("over")
        try await calls
        // A name that only the old module had is free again.
        try host.register(version("21.0.0", target: "N"), replaces: true)
        #expect(host.modules.map(\.version) == ["21.0.0"])
        try host.register(manifest("Other", target: "M"))
        #expect(try host.unregister("M"))
    }

    @Test func `A description is checked, and replaces no module of a file`() throws {
        let test = try TestHost()
        try CModule(name: "M").build(into: test.plugins, as: "m.so")
        try test.start()
        let error = #expect(throws: PluginError.self) { try test.host.register(version("9.0.0"), replaces: true) }
        #expect(error?.code == .conflict)
        var description = version("1.0.0").pointee
        description.magic = 7
        let pointer = UnsafeMutablePointer<plugin_module>.allocate(capacity: 1)
        pointer.initialize(to: description)
        let invalid = #expect(throws: PluginError.self) { try test.host.register(pointer, replaces: true) }
        #expect(invalid?.code == .invalidDescription)
        #expect(try test.host.perform("M", "answer") == "yes")
    }

    @Test func `Nothing can be registered after the end`() throws {
        let test = try TestHost()
        try test.start()
        test.host.shutdown()
        #expect(try failure(test.host, manifest("M")).code == .hostStopped)
    }
}

/// What happened, in order of time.
private final class Notes: Sendable {
    private let notes = Mutex<[String]>([])
    func add(_ note: String) { notes.withLock { $0.append(note) } }
    var all: [String] { notes.withLock { $0 } }
}
