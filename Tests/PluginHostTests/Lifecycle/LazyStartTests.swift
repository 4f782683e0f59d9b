import Dispatch
import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

/// Modules that are registered, and start when they are first needed.
@Suite(.timeLimit(.minutes(30))) struct LazyStartTests {
    private let folder: TemporaryFolder
    /// The file in which modules note what they do.
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = "\(folder.path)/notes"
    }

    private var notes: String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }

    /// A host that starts modules when they are needed, with files of these modules.
    private func makeHost(
        _ modules: [CModule], watches: Bool = false, configure: (inout PluginHost.Configuration) -> Void = { _ in }
    ) throws -> TestHost {
        let host = try TestHost { configuration, folder in
            configuration.start = .lazy
            configuration.watches = watches
            configure(&configuration)
            for module in modules { try module.build(into: "\(folder.path)/plugins", as: "\(module.name).so") }
        }
        try host.start()
        return host
    }

    /// A sealed module that notes when it is opened and set up.
    private func module(_ name: String, more: String = "", setUp: String = "") -> CModule {
        CModule(
            name: name, answer: name, isSealed: true, moreManifest: more,
            setUp: "note(\"\(path)\", \"\(name) \");\n\(setUp)",
            entry: "note(\"\(path)\", \"open:\(name) \");")
    }

    /// Calls `answer` of a target, and notes the outcome.
    private func calling(_ target: String) -> String {
        """
        plugin_request request = ask("\(target)", "answer");
        char outcome[64] = "?";
        host->perform(host, call->token, &request, take, outcome);
        note("\(path)", outcome);
        note("\(path)", " ");
        """
    }

    private static let taking = """
        static void take(void *outcome, const plugin_value *value, const plugin_error *error) {
            plugin_string text = error ? error->code : (plugin_string){value->as.string, value->count};
            snprintf(outcome, 64, "%s%.*s", error ? "!" : "=", (int)text.count, text.bytes);
        }
        """

    private func caller(_ name: String, of other: String, in hook: String) -> CModule {
        var module = module(name)
        module.code = Self.taking
        if hook == "setUp" { module.setUp! += calling(other) } else { module.hooks = ["init": calling(other)] }
        return module
    }

    // MARK: - What starts a module

    @Test func `A sealed module is registered, and its first call starts it`() throws {
        let host = try makeHost([module("A"), module("B")])
        #expect(host.states == ["A.so": "registered", "B.so": "registered"])
        #expect(host.status("A.so")?.version == "1.0.0")
        #expect(host.status("A.so")?.targets == ["A"])
        #expect(host.code("B", "nothing") == .unknownAction)
        #expect(host.code("C", "answer") == .unknownTarget)
        #expect(notes == "")
        #expect(host.answer("A") == "A")
        #expect(host.states == ["A.so": "active", "B.so": "registered"])
        #expect(notes == "open:A A ")
    }

    @Test func `Many threads start a module once`() async throws {
        let host = try makeHost([module("A", setUp: "usleep(20000);")])
        let answers = try await onThreads(64) { _ in host.answer("A") }
        #expect(answers.allSatisfy { $0 == "A" })
        #expect(notes == "open:A A ")
    }

    @Test func `Calls of tasks wait without a thread, and bound actions start modules, too`() async throws {
        let host = try makeHost([module("A", setUp: "usleep(20000);"), module("B")])
        let answers = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<32 { group.addTask { try await host.host.call("A", "answer").string } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers == Array(repeating: "A", count: 32))
        #expect(try host.host.bind("B", "answer").perform().string == "B")
        #expect(notes == "open:A A open:B B ")
    }

    @Test func `A host that is not lazy starts sealed modules at once`() throws {
        let host = try makeHost([module("A")]) { $0.start = .eager }
        #expect(host.states == ["A.so": "active"])
    }

    @Test func `URLs start the modules that they lead to`() async throws {
        let route = "\"routes\": [{\"pattern\": \"app://fruit/:name\", \"action\": \"A/answer\"}],"
        let rest = "{\"name\": \"A\", \"actions\": [{\"name\": \"answer\", \"rest\": true, \"remote\": true}]}"
        var first = module("A")
        first.manifest = """
            {"name": "A", "version": "1.0.0", \(route) "hooks": ["setUp"], "targets": [\(rest)]}
            """
        let host = try makeHost([first, module("B"), module("C")])
        #expect(host.host.routes.map(\.pattern) == ["app://fruit/:name"])
        #expect(host.host.problems.isEmpty)
        #expect(!host.host.canOpen("app://D/answer"))
        #expect(notes == "")
        #expect(try await host.host.open("app://fruit/apple", origin: .remote).string == "A")
        #expect(try await host.host.open("app://B/answer").string == "B")
        #expect(host.host.resolve("app://C/answer").module == "C")
        #expect(notes == "open:A A open:B B open:C C ")
    }

    @Test func `Requests of a service start the modules that offer it`() async throws {
        func offering(_ name: String, _ version: String) -> CModule {
            let service = "{\"name\": \"S\", \"version\": \"\(version)\", \"target\": \"\(name)\"}"
            return module(name, more: "\"services\": [\(service)],")
        }
        let host = try makeHost([offering("A", "1.0.0"), offering("B", "1.1.0"), offering("C", "1.2.0")])
        #expect(host.host.services.map { "\($0.module) \($0.version)" } == ["C 1.2.0", "B 1.1.0", "A 1.0.0"])
        #expect(notes == "")
        #expect(host.answer("A") == "A")
        // The best one is chosen among all.
        #expect(try host.host.serviceInfo("S").module == "C")
        #expect(host.states.values.allSatisfy { $0 == "active" })
    }

    @Test func `Waiting for a service starts its module`() async throws {
        let more = "\"services\": [{\"name\": \"S\", \"version\": \"1.0.0\", \"target\": \"A\"}],"
        let host = try makeHost([module("A", more: more)])
        #expect(try await host.host.waitForService("S", timeout: .seconds(300)).module == "A")
    }

    @Test func `Events start their subscribers`() throws {
        var (first, second) = (module("A"), module("B"))
        first.events = [("shop.opened", "", "note(\"\(path)\", \"told \");")]
        second.events = [("shop.closed", "", "note(\"\(path)\", \"closed \");")]
        let host = try makeHost([first, second])
        try host.host.post("shop.empty")
        #expect(notes == "")
        try host.host.post("shop.opened")
        try host.host.post("shop.opened")
        #expect(notes == "open:A A told told ")
        #expect(host.states["B.so"] == "registered")
    }

    @Test func `An event that is awaited starts its subscribers without blocking a thread`() async throws {
        var subscriber = module("A", setUp: "usleep(20000);")
        subscriber.events = [("shop.opened", "", "note(\"\(path)\", \"told \");")]
        let host = try makeHost([subscriber])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { try await host.host.post("shop.opened") } }
            try await group.waitForAll()
        }
        #expect(notes == "open:A A " + String(repeating: "told ", count: 8))
    }

    // MARK: - What starts with the host

    @Test func `Modules start with the host if they must, or are required by one that does`() throws {
        var (initialized, told) = (module("Init"), module("Told"))
        initialized.hooks = ["init": ""]
        told.events = [("host.willTerminate", "", "")]
        var lazy = module("Lazy", more: "\"start\": \"lazy\",")
        lazy.hooks = ["init": ""]
        let eager = module("Eager", more: "\"start\": \"eager\", \"requires\": [{\"module\": \"Needed\"}],")
        var unsealed = module("Unsealed")
        unsealed.isSealed = false
        let host = try makeHost(
            [initialized, told, lazy, eager, module("Needed"), unsealed, module("Named"), module("Other")]
        ) { $0.eagerModules = ["Named"] }
        let resting = host.states.filter { $0.value != "active" }
        #expect(resting == ["Lazy.so": "registered", "Other.so": "registered"])
        #expect(host.answer("Lazy") == "Lazy")
    }

    @Test func `A module starts after those that it requires`() throws {
        let host = try makeHost([
            module("A", more: "\"requires\": [{\"module\": \"B\"}],"),
            module("B", more: "\"requires\": [{\"module\": \"C\"}],"), module("C"), module("D"),
            module("E", more: "\"requires\": [{\"module\": \"F\"}],"),
        ])
        #expect(host.states["E.so"] == "waiting")
        #expect(host.answer("A") == "A")
        #expect(notes.components(separatedBy: " ").filter { !$0.hasPrefix("open") } == ["C", "B", "A", ""])
        #expect(host.states["D.so"] == "registered")
    }

    @Test func `Registered modules conflict like those that serve, and are superseded`() throws {
        let host = try makeHost([module("M"), module("B")])
        // Its name would come first.
        var other = module("A")
        other.target = "M"
        try other.build(into: host.plugins, as: "0.so")
        var newer = module("B")
        newer.version = "2.0.0"
        try newer.build(into: host.plugins, as: "newer.so")
        try host.host.lifecycle.update()
        #expect(host.status("0.so")?.error?.code == .conflict)
        #expect(
            host.states == ["0.so": "failed", "M.so": "registered", "B.so": "superseded", "newer.so": "registered"])
        #expect(notes == "")
        #expect(host.answer("M") == "M")
        #expect(host.answer("B") == "B")
        #expect(host.status("0.so")?.error?.code == .conflict)
        #expect(host.states["newer.so"] == "active")
    }

    @Test func `A file that replaces a module that serves is started`() throws {
        let host = try makeHost([module("A")])
        #expect(host.answer("A") == "A")
        var newer = module("A")
        newer.version = "2.0.0"
        newer.answer = "new"
        try newer.build(into: host.plugins, as: "A.so")
        try host.host.lifecycle.update()
        #expect(host.status("A.so")?.state == .active)
        #expect(host.answer("A") == "new")
    }

    @Test(arguments: [false, true]) func `A module starts when a rule names its interceptor`(later: Bool) throws {
        let rule = InterceptorRule("I", "guard", for: .target("B"))
        var first = module("I")
        first.manifest = """
            {"name": "I", "version": "1.0.0", "hooks": ["setUp"], "interceptors": [{"name": "guard"}],
             "targets": [{"name": "I", "actions": [{"name": "answer"}]}]}
            """
        first.moreFunctions = "{TEXT(\"~guard\"), action_answer, NULL}"
        let host = try makeHost([first, module("B")]) { if !later { $0.interceptors = [rule] } }
        #expect(host.states["I.so"] == (later ? "registered" : "active"))
        if later { try host.host.updateInterceptors([rule]) }
        #expect(host.answer("B") == "I")
        #expect(host.states == ["I.so": "active", "B.so": "active"])
    }

    @Test func `A registered module is removed and put back, and others may depend on it`() throws {
        let host = try makeHost([module("A"), module("B", more: "\"requires\": [{\"module\": \"A\"}],"), module("C")])
        let error = #expect(throws: PluginError.self) { try host.host.remove("A") }
        #expect(error?.code == .required)
        let change = try host.host.remove("A", force: true, dryRun: true)
        #expect(change.stopping.map(\.name).sorted() == ["A", "B"])
        #expect(change.starting.isEmpty)
        try host.host.remove("A", force: true)
        #expect(host.states == ["B.so": "waiting", "C.so": "registered"])
        #expect(notes == "")
        try host.host.rollback("A")
        #expect(host.states == ["A.so": "active", "B.so": "registered", "C.so": "registered"])
        #expect(host.answer("B") == "B")
    }

    @Test(.disabled(if: isSanitized)) func `The first call of an isolated module starts its process`() throws {
        let host = try makeHost([module("A")]) { $0.isolation.modules = .all }
        #expect(host.states == ["A.so": "registered"])
        #expect(host.answer("A") == "A")
        #expect(host.status("A.so")?.process != nil)
    }

    // MARK: - Errors

    @Test func `The error of a start is kept until the file changes`() throws {
        var broken = module("A")
        broken.setUp! += "refuse(call, \"No.\"); return;"
        let host = try makeHost([broken])
        for _ in 0..<2 {
            let error = try #require(host.failure("A"))
            #expect(error.code == .moduleUnavailable)
            #expect(error.message.contains("No."))
        }
        #expect(notes == "open:A A ")
        #expect(host.states["A.so"] == "failed")
        try module("A").build(into: host.plugins, as: "A.so")
        try host.host.lifecycle.update()
        #expect(host.states["A.so"] == "registered")
        #expect(host.answer("A") == "A")
    }

    @Test func `A seal that lies is found by the first call`() throws {
        var lying = module("A")
        lying.sealedManifest = """
            {"name": "A", "version": "1.0.0", "hooks": ["setUp"], "targets": [{"name": "B", "actions": [{"name": "x"}]}]}
            """
        let host = try makeHost([lying])
        #expect(host.states["A.so"] == "registered")
        let error = try host.failure("B", "x")
        #expect(error.code == .moduleUnavailable)
        #expect(host.status("A.so")?.error?.code == .sealMismatch)
    }

    @Test func `A file that changes before the first call is read again`() throws {
        let host = try makeHost([module("A"), module("B")])
        var newer = module("A")
        newer.answer = "new"
        try newer.build(into: host.plugins, as: "A.so")
        #expect(host.answer("A") == "new")
        try FileManager.default.removeItem(atPath: "\(host.plugins)/B.so")
        #expect(host.failure("B")?.code == .unknownTarget)
    }

    @Test func `A call waits for a start no longer than its timeout`() async throws {
        let host = try makeHost([module("A", setUp: "while (access(\"\(path).go\", F_OK)) usleep(1000);")])
        let error = #expect(throws: PluginError.self) {
            try host.host.perform("A", "answer", timeout: .milliseconds(20))
        }
        #expect(error?.code == .deadlineExceeded)
        try Data().write(to: URL(filePath: "\(path).go"))
        #expect(host.answer("A") == "A")
        #expect(notes == "open:A A ")
    }

    @Test func `A host that ends refuses calls that wait for a start`() async throws {
        let host = try makeHost([module("A", setUp: "while (access(\"\(path).go\", F_OK)) usleep(1000);"), module("B")])
        async let first = onThread { host.failure("A") }
        #expect(await becomesTrue { notes.contains("A ") && !notes.hasSuffix(":A ") })
        async let end: Void = onThread { host.host.shutdown() }
        try Data().write(to: URL(filePath: "\(path).go"))
        try await end
        _ = try await first
        #expect(host.failure("B")?.code == .hostStopped)
    }

    // MARK: - Calls from hooks

    @Test(arguments: ["setUp", "init"]) func `Code of a start calls modules that are not started`(hook: String) throws {
        let host = try makeHost([caller("A", of: "B", in: hook), module("B")])
        #expect(host.answer("A") == "A")
        #expect(host.states == ["A.so": "active", "B.so": "active"])
        #expect(notes.contains("open:B B =B "))
    }

    @Test(arguments: ["init", "didStart"])
    func `Code of a module that starts with the host calls modules that are not started`(hook: String) throws {
        var first = module("A")
        first.isSealed = false
        first.code = Self.taking
        first.hooks = hook == "init" ? ["init": calling("B")] : ["didStart": calling("B")]
        let host = try makeHost([first, module("B"), module("C")])
        #expect(host.states == ["A.so": "active", "B.so": "active", "C.so": "registered"])
        #expect(notes == "open:A A open:B B =B ")
        #expect(host.answer("C") == "C")
    }

    @Test func `Modules whose setUp call each other get an error, and start`() throws {
        let host = try makeHost([caller("A", of: "B", in: "setUp"), caller("B", of: "A", in: "setUp")])
        #expect(host.answer("A") == "A")
        #expect(host.answer("B") == "B")
        #expect(notes == "open:A A open:B B !circularWait =B ")
    }

    @Test func `Modules whose init call each other reach each other`() throws {
        var (first, second) = (caller("A", of: "B", in: "init"), caller("B", of: "A", in: "init"))
        first.moreManifest = "\"start\": \"lazy\","
        second.moreManifest = "\"start\": \"lazy\","
        let host = try makeHost([first, second])
        #expect(host.states == ["A.so": "registered", "B.so": "registered"])
        #expect(host.answer("A") == "A")
        #expect(notes == "open:A A open:B B =A =B ")
    }

    @Test func `Code of a start calls modules whose code calls others`() throws {
        let callers = (1...3).map { caller("M\($0)", of: "M\($0 + 1)", in: "setUp") }
        let host = try makeHost(callers + [module("M4")])
        #expect(host.answer("M1") == "M1")
        #expect(host.states.values.allSatisfy { $0 == "active" })
        #expect(setUps == ["M1", "M2", "M3", "M4"])
        #expect(notes.hasSuffix("M4 =M4 =M3 =M2 "))
    }

    @Test func `A module does not start before the one that it requires and that calls it`() throws {
        let requiring = module("Y", more: "\"requires\": [{\"module\": \"X\"}],")
        let host = try makeHost([caller("X", of: "Y", in: "setUp"), requiring])
        #expect(host.answer("X") == "X")
        #expect(notes == "open:X X !circularWait ")
        #expect(host.states["Y.so"] == "registered")
        #expect(host.answer("Y") == "Y")
    }

    // MARK: - Several calls at once

    /// What is set up, in this order.
    private var setUps: [String] { notes.split(separator: " ").map(String.init).filter { $0.first!.isUppercase } }

    @Test func `Many threads start many modules once each`() async throws {
        let names = (0..<40).map { "M\($0)" }
        let host = try makeHost(names.map { module($0) })
        let answers = try await onThreads(40) { number in host.answer("M\(number)") }
        #expect(Set(answers) == Set(names))
        #expect(setUps.sorted() == names.sorted())
    }

    private static let waiting = "while (access(\"%@.go\", F_OK)) usleep(1000);"

    @Test(arguments: [600_000, 10])
    func `Calls that need a module that is starting wait for it`(patience: Int) async throws {
        let slow = module("X", setUp: String(format: Self.waiting, path) + "note(\"\(path)\", \"Ready \");")
        let requiring = module("Y", more: "\"requires\": [{\"module\": \"X\"}],")
        let host = try makeHost([slow, requiring, module("Z")]) { $0.hookPatience = .milliseconds(patience) }
        async let first = onThread { host.answer("X") }
        #expect(await becomesTrue { setUps == ["X"] })
        async let second = onThread { host.answer("Y") }
        async let third = onThread { host.answer("X") }
        if patience == 10 { #expect(host.answer("Z") == "Z") }
        try Data().write(to: URL(filePath: "\(path).go"))
        #expect(try await [first, second, third] == ["X", "Y", "X"])
        #expect(setUps.filter { $0 != "Z" } == ["X", "Ready", "Y"])
    }

    @Test func `Calls that wait for a slow start end when its file goes`() async throws {
        let slow = module("X", setUp: String(format: Self.waiting, path))
        let host = try makeHost([slow]) { $0.hookPatience = .milliseconds(10) }
        async let first = onThread { host.failure("X")?.code }
        #expect(await becomesTrue { host.states["X.so"] == "starting" })
        try FileManager.default.removeItem(atPath: "\(host.plugins)/X.so")
        try host.host.lifecycle.update()
        #expect(try await first == .unknownTarget)
        try Data().write(to: URL(filePath: "\(path).go"))
    }

    @Test func `Starts that wait for each other have a bound`() {
        let queue = SerialThread("test")
        let depth = Mutex(0)
        let (waits, starter) = (ChangeWaits(queue), ModuleStarter())
        starter.set { start, _ in waits.add(start) }
        waits.set { _ in
            true
        } _: { start, isTooDeep in
            guard !isTooDeep else { return starter.end(start, PluginError(.recursionLimit, "")) }
            let count = depth.withLock { depth in
                depth += 1
                return depth
            }
            let next = starter.start("M\(count)")
            _ = waits.wait(for: DispatchSemaphore(value: 0), until: .distantFuture) { next.isOver }
            starter.end(start, next.error)
        }
        let first = starter.start("M")
        queue.sync { _ = waits.wait(for: DispatchSemaphore(value: 0), until: .distantFuture) { first.isOver } }
        #expect(depth.withLock(\.self) == 32)
        #expect(first.error?.code == .recursionLimit)
    }

    @Test func `A registered module is not restarted`() throws {
        let host = try makeHost([module("A")])
        let error = #expect(throws: PluginError.self) { try host.host.restart("A") }
        #expect(error?.message == "A is registered and has not started. The first call starts it.")
    }

    // MARK: - Other programs

    @Test func `The guard decides about a remote call before it starts a module`() async throws {
        var guarded = module("A")
        let answer = "{\"name\": \"answer\", \"remote\": true, \"demands\": [\"login\"]}"
        guarded.manifest = """
            {"name": "A", "version": "1.0.0", "hooks": ["setUp"], "targets": [{"name": "A", "actions": [\(answer)]}]}
            """
        let host = try makeHost([guarded])
        let calls = Mutex<[RemoteCall]>([])
        let refuses = Mutex(true)
        await #expect(throws: PluginError.self) { try await host.host.open("app://A/answer", origin: .remote) }
        host.host.onRemoteCall { call in
            calls.withLock { $0.append(call) }
            return refuses.withLock(\.self) ? .refuse("No.") : .pass
        }
        await #expect(throws: PluginError.self) { try await host.host.open("app://A/answer", origin: .remote) }
        #expect(!host.host.canOpen("app://A/answer", origin: .remote))
        #expect(notes == "")
        #expect(calls.withLock(\.self).allSatisfy { $0.demands == ["login"] && $0.target == "A" })
        let before = calls.withLock(\.count)
        refuses.withLock { $0 = false }
        #expect(try await host.host.open("app://A/answer", origin: .remote).string == "A")
        #expect(calls.withLock(\.count) == before + 1)
    }
}
