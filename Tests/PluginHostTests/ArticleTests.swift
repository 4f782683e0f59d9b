import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// The examples of the articles do what the articles say.
@Suite struct ArticleTests {
    private struct HomeClient: ServiceClient {
        static let serviceName = "HomeService"
        static let minimumVersion: String? = "1.2.0"
        let service: ServiceHandle

        init(_ service: ServiceHandle) { self.service = service }

        func title(of key: String) throws(PluginError) -> String {
            try service.perform("fetchDetail", ["key": .string(key)])["title"]?.string ?? ""
        }
    }

    @Test func `Services are found by name and minimum version, and typed by the caller`() throws {
        let test = try TestHost.withSamples()
        let home = try test.host.service("HomeService", from: "1.0.0")
        #expect(try home.perform("fetchDetail", ["key": "lamp"])["title"]?.string == "Detail of lamp")
        #expect(try test.host.service(HomeClient.self).title(of: "lamp") == "Detail of lamp")
        #expect(try test.host.serviceInfo("HomeService").module == "ModuleA")
    }

    @Test func `The hooks of a module run in order`() throws {
        let test = try TestHost([])
        let moments = Mutex<[String]>([])
        @Sendable func note(_ moment: String) { moments.withLock { $0.append(moment) } }
        try test.host.register(
            Manifest("Accounts", version: "1.0.0") {
                Target("Accounts") { Action("count") { 3 } }
                On(.setUp) { _ in note("setUp") }
                On(.initialize) { context in note("init \(try context.perform("Accounts", "count"))") }
                On(.didStart) { _ in note("didStart") }
                On(.willStop) { _ in note("willStop") }
                On(.tearDown) { _ in note("tearDown") }
            })
        #expect(moments.withLock { $0 } == ["setUp", "init 3", "didStart"])
        test.host.shutdown()
        #expect(moments.withLock { $0 } == ["setUp", "init 3", "didStart", "willStop", "tearDown"])
    }

    @Test func `Events reach subscribers of modules and of the program`() throws {
        let test = try TestHost([])
        try test.host.register(
            Manifest("Accounts", version: "1.0.0") {
                Subscribe {
                    Action("shop.sold", .context(), .optional("item", String.self)) { context, item in
                        context.log(.info, "\(item ?? "something") was sold")
                    }
                }
            })
        let heard = Heard()
        let subscription = test.host.on("shop.sold") { parameters in
            heard.items.withLock { $0.append(parameters["item"]?.string ?? "") }
        }
        let outcome = try test.host.post("shop.sold", ["item": "lamp"])
        #expect(outcome.delivered == 2 && outcome.failures.isEmpty)
        #expect(heard.items.withLock { $0 } == ["lamp"])
        #expect(test.log.contains { $0.message == "lamp was sold" && $0.module == "Accounts" })
        subscription.cancel()
    }

    @Test func `An interceptor changes parameters until it is removed`() throws {
        let test = try TestHost.withSamples()
        let interceptor = test.host.intercept(.target("A")) { call, next in
            var call = call
            if call.action == "fetchDetail" { call.parameters["page"] = 7 }
            return try next(call)
        }
        #expect(try test.host.perform("A", "fetchDetail", ["key": "lamp"])["page"]?.int == 7)
        interceptor.remove()
        #expect(try test.host.perform("A", "fetchDetail", ["key": "lamp"])["page"]?.int == 1)
    }

    @Test func `An interceptor of a module takes effect when the configuration names it`() throws {
        let test = try TestHost.withSamples()
        try test.host.register(
            Manifest("Audit", version: "1.0.0") {
                Intercept("limit") { call, next in
                    if let page = call.parameters["page"]?.int, page > 100 {
                        throw PluginError("tooFar", "At most 100 pages.")
                    }
                    return try next(call)
                }
            })
        #expect(try test.host.perform("A", "fetchDetail", ["key": "lamp", "page": 101])["page"]?.int == 101)
        try test.host.updateInterceptors([InterceptorRule("Audit", "limit", for: .target("A"))])
        #expect(try test.failure("A", "fetchDetail", ["key": "lamp", "page": 101]).code == "tooFar")
        try test.host.unregister("Audit")
        #expect(try test.failure("A", "fetchDetail", ["key": "lamp"]).code == .interceptorMissing)
    }

    private final class Heard: Sendable {
        let items = Mutex<[String]>([])
    }
}

/// The examples of “Calling by name”.
@Suite struct TargetAndActionArticleTests {
    private let test: TestHost
    private var host: PluginHost { test.host }

    init() throws { test = try TestHost.withSamples() }

    @Test func `Parameters are given by name or by position, and converted without loss`() async throws {
        let detail = try host.perform("A", "fetchDetail", ["key": "lamp", "page": 2])
        #expect(try host.perform("A", "fetchDetail", ["lamp", 2]) == detail)
        #expect(try await host.call("B", "slowly", ["text": "stressed"]).get(String.self) == "desserts")
        #expect(try host.perform("A", "fetchDetail", ["lamp", 3.0])["page"] == 3)
        for wrong: Value in [3.5, "3"] {
            let error = try test.failure("A", "fetchDetail", ["key": "lamp", "page": wrong])
            #expect(error.code == .mistypedParameter)
        }
        #expect(try host.perform("B", "format", [3, "EUR"]) == "3.0 euro")
        #expect(try await host.open("app://A/fetchDetail?key=lamp&page=2") == detail)
        await #expect(throws: PluginError.self) { try await host.open("app://A/fetchDetail?key=lamp&page=two") }
        #expect(try host.perform("A", "fetchDetail", ["lamp", nil])["page"] == 1)
        #expect(try test.failure("A", "fetchDetail").code == .missingParameter)
        let unknown = try test.failure("A", "fetchDetail", ["key": "lamp", "pag": 1])
        #expect(unknown.code == .unknownParameter && unknown.message.contains("Did you mean “page”?"))
    }

    @Test func `A bound action is called like one by name`() throws {
        let add = host.bind("C", "add")
        let sum: Int = try add(2, 3)
        #expect(sum == 5)
        #expect(try add.perform(["a": 2]) == 3)
    }

    @Test func `A missing action falls back to notFound, a missing target to the program, else it is an error`()
        throws
    {
        #expect(try host.perform("A", "nothing") == "A has no page called “nothing”")
        #expect(try test.failure("Cinema", "open").code == .unknownTarget)
        host.onMissingTarget { target, action, parameters, origin in "\(target) is closed" }
        #expect(try host.perform("Cinema", "open") == "Cinema is closed")
        #expect(try host.perform("B", "nothing") == "B is closed")
    }

    @Test func `An instance is shared, fresh or released`() throws {
        #expect(try host.perform("Counter", "add", ["n": 2]) == 2)
        #expect(try host.perform("Counter", "add", ["n": 3]) == 5)
        #expect(try host.fresh.perform("Counter", "add", ["n": 1]) == 1)
        #expect(try host.release("Counter"))
        #expect(try host.perform("Counter", "add", ["n": 1]) == 1)
    }

    @Test func `Objects and callbacks are values`() async throws {
        let cursor = try #require(try host.perform("Counter", "search", ["text": "ap"]).object)
        #expect(try cursor.perform("next") == "apple")
        #expect(try cursor.perform("next") == "apricot")
        let callback = host.callback { arguments in
            .string("heard \(arguments[0].string ?? "")")
        }
        #expect(try await callback("this") == "heard this")
        try host.perform("B", "remember", ["callback": callback])
        #expect(try await host.call("B", "callBack", ["text": "hello"]) == 1)
    }

    @Test func `The program makes objects with actions of its own`() throws {
        let basket = try host.object("Basket", Basket()) {
            Action("add", .instance(), .required("item", String.self)) { basket, item in basket.add(item) }
        }
        try host.register(
            Manifest("Fruit", version: "1.0.0") {
                Target("Fruit") {
                    Action("fill", .required("basket", Object.self)) { basket in
                        try basket.perform("add", ["item": "pear"])
                    }
                }
            })
        #expect(try host.perform("Fruit", "fill", ["basket": basket]) == "pear")
    }

    private final class Basket: Sendable {
        func add(_ item: String) -> String { item }
    }
}

/// The examples of “How modules are registered”.
@Suite struct RegistrationArticleTests {
    private let folder: TestHost
    private var host: PluginHost { folder.host }

    init() throws {
        folder = try TestHost { configuration, _ in configuration.watches = false }
        for name in ["A", "B"] {
            try copyFile(built("libModule\(name).so"), to: "\(folder.plugins)/libModule\(name).so")
        }
    }

    private func put(_ text: String, _ name: String) throws {
        try writeFile(Data(text.utf8), to: "\(folder.plugins)/\(name)")
    }

    @Test func `Code registers targets, routes, services and subscriptions`() throws {
        try host.register(
            Manifest("Clock", version: "1.0.0") {
                Target("Clock") {
                    Action("year") { 2026 }
                }
                Route("app://clock", to: "Clock/year")
                Service("Time", version: "1.0.0", target: "Clock")
                Subscribe {
                    Action("clock.tick", .context()) { context in context.log(.info, "tick") }
                }
            })
        #expect(try host.perform("Clock", "year") == 2026 && host.open("app://clock") == 2026)
        #expect(try host.service("Time").perform("year") == 2026)
        #expect(try host.post("clock.tick").delivered == 1 && folder.messages == ["tick"])
        #expect(try host.unregister("Clock"))
        #expect(throws: PluginError.self) { try host.perform("Clock", "year") }
    }

    @Test func `Files declare routes and services for modules that do not`() throws {
        try put(
            """
            {
                "app://lamps/:key": "A/fetchDetail",
                "app://lamps": {"action": "A/fetchDetail", "defaults": {"key": "lamp"}, "summary": "The lamp of the day"}
            }
            """, "shop.routes.json")
        try put(
            """
            {
                "Greeter": {"target": "B", "version": "1.0.0", "summary": "Says hello"},
                "Prices": [{"target": "A", "version": "2.0.0"}, {"target": "B", "version": "1.0.0", "priority": 5}]
            }
            """, "shop.services.json")
        try host.start()
        #expect(host.problems.isEmpty)
        #expect(try host.open("app://lamps/red")["title"] == "Detail of red")
        #expect(try host.open("app://lamps")["title"] == "Detail of lamp")
        #expect(try host.service("Greeter").perform("greet", ["Ada"]) == "Hello, Ada!")
        #expect(try host.serviceInfo("Prices").module == "ModuleA")
    }
}

/// The examples of “Configuration and log”.
@Suite struct ConfigurationArticleTests {
    @Test func `A module reads its own configuration, and is notified when it changes`() throws {
        let test = try TestHost(["ModuleA", "ModuleB"].map { built("lib\($0).so") }) {
            $0.environment = "test"
            $0.context = ["shop": "Oslo"]
            $0.moduleConfiguration = ["ModuleA": ["currency": "CHF"]]
        }
        let host = test.host
        #expect(try host.perform("A", "price", ["key": "apple"]) == "0.5 franc")
        try host.register(
            Manifest("Watcher", version: "1.0.0") {
                Target("Watcher") {
                    Action("where", .context()) { context in context.hostContext["shop"] ?? nil }
                }
                Subscribe {
                    Action("configuration.changed", .context(), .required("modules", [String].self)) {
                        context, modules in
                        context.log(.info, "\(modules) of \(context.hostContext.environment)")
                    }
                }
            })
        #expect(try host.perform("Watcher", "where") == "Oslo")
        host.updateConfiguration(["ModuleA": ["currency": "EUR"]])
        #expect(try host.perform("A", "price", ["key": "apple"]) == "0.5 euro")
        #expect(test.log.contains { $0.module == "Watcher" && $0.message == "[\"ModuleA\"] of test" })
        #expect(test.log.contains { $0.level == .info && $0.message == "The shop is open." })
    }
}
