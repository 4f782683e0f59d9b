import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// The right-hand sides of “Migrating from CTMediator, MGJRouter and others” do what the tables say.
@Suite struct MigratingArticleTests {
    private let test: TestHost
    private let screen = RecordingPresenter()
    private let navigator: Navigator
    private var host: PluginHost { test.host }

    init() throws {
        test = try TestHost([])
        navigator = Navigator(test.host, presenter: screen)
        try test.host.register(
            Manifest("Home", version: "1.0.0") {
                Target("Home") {
                    Action("homePage", .context(), .optional("page", Int.self, default: 1), .rest()) { context, _, _ in
                        try context.object("HomePage", HomePage())
                    }
                    .remote()
                    Action("homeLog", .optional("page", Int.self)) { page in "page \(page ?? 0)" }
                    Action("delete", .required("confirm", Callback.self)) { confirm in try confirm("really?") }
                    Action("account") { "yours" }.remote(requires: "login")
                    Action("cursor", .context()) { context in try context.object("Cursor", Cursor()) }
                }
                ObjectType("Cursor", Cursor.self) {
                    Action("next", .instance(), .required("step", Int.self)) { _, step in step + 1 }
                }
                Page("HomePage", HomePage.self) {
                    Action.property("completion", Callback.self) { page, completion in
                        page.completion.withLock { $0 = completion }
                    }
                    Action.shouldOpen { page, opening in opening.parameters["page"] != 0 }
                    Action.opened { page, opening in
                        _ = try page.completion.withLock { $0 }?(opening.parameters["page"] ?? .null)
                    }
                    Action.backData { _ in "chosen" }
                }
                Service("Home", version: "1.0.0", target: "Home")
            })
    }

    private final class HomePage: Sendable {
        let completion = Mutex<Callback?>(nil)
    }
    private final class Cursor: Sendable {}

    private func code(_ body: () throws -> Void) -> PluginError.Code? {
        do { try body() } catch { return (error as? PluginError)?.code }
        return nil
    }

    @Test func `CTMediator: no module name, results without a dictionary, callbacks, pages that are returned`()
        async throws
    {
        let key = "kCTMediatorParamsKeySwiftTargetModuleName"
        #expect(code { try host.perform("Home", "homeLog", [key: "Home"]) } == .unknownParameter)
        try host.addRoute("app://home/log", to: "Home/homeLog")
        #expect(try await host.open("app://home/log?page=2") == "page 2")
        let confirm = host.callback { arguments in arguments[0] == "really?" ? "yes" : "no" }
        #expect(try host.perform("Home", "delete", ["confirm": confirm]) == "yes")
        let page = try #require(try host.perform("Home", "homePage", ["page": 2]).object)
        #expect(await pluginError { try await navigator.open(page: page, by: .push) }?.code == .noStack)
        try await navigator.open(page: page, by: .present)
        #expect(screen.shown == ["present HomePage: [HomePage]"])
    }

    @Test func `BeeHive: every failure is an error, an asynchronous init, marks`() async throws {
        #expect(code { _ = try host.service("HomeServiceProtocol") } == .unknownService)
        #expect(code { try host.addService(Service("Home", version: "1.0.0", target: "Home")) } == .conflict)
        let unfulfilled = Service("Search", version: "1.0.0", target: "Home").interface(ServiceAction("search"))
        #expect(code { try host.addService(unfulfilled) } == .conflict)
        let moments = Mutex<[String]>([])
        try host.register(
            Manifest("Shop", version: "1.0.0") {
                On(.initialize) { context in
                    try await Task.sleep(for: .milliseconds(1))
                    moments.withLock { $0.append("init") }
                }
                On(.didStart) { context in
                    moments.withLock { $0.append("didStart") }
                    context.mark("cache is warm")
                }
            }
            .level(.basic).priority(600))
        #expect(moments.withLock { $0 } == ["init", "didStart"])
        host.mark("launched")
        #expect(host.measure("launch") { 1 } == 1)
        let marks = host.profile.entries.filter { $0.phase == .mark }
        #expect(marks.map(\.name) == ["cache is warm", "launched", "launch"])
        #expect(host.profile.chromeTrace.contains("launched"))
    }

    @Test func `Router: objects by name, a login that is shown, foreign hosts go to the web`() async throws {
        let cursor = try #require(try host.perform("Home", "cursor").object)
        #expect(try cursor.perform("next", [4]) == 5)
        try host.register(
            Manifest("Web", version: "1.0.0") {
                Target("Web") { Action("show", .required("url", String.self)) { url in url }.remote() }
            })
        try host.addRoute("app://web", to: "Web/show", name: "web")
        host.onRemoteCall { [unowned host] call in
            if call.host == "shop" { return .pass }
            guard let url = try? host.url(for: "web", ["url": .string(call.url)]) else { return .refuse("Not a page.") }
            return .redirect(url)
        }
        let foreign = "https://example.com/a/b?x=1&y=2"
        #expect(host.canOpen(foreign, origin: .remote))
        #expect(try await host.open(foreign, origin: .remote) == .string(foreign))
        let isLoggedIn = Mutex(false)
        host.onRemoteCall { call in
            call.demands.contains("login") && !isLoggedIn.withLock { $0 } ? .ask : .pass
        } asking: { call in
            isLoggedIn.withLock { $0 = true }
            return .pass
        }
        #expect(try await host.open("app://Home/account", origin: .remote) == "yours")
        #expect(isLoggedIn.withLock { $0 })
    }

    @Test func `Router: parameters of a page, back data, a transition of the route`() async throws {
        try host.addRoute("app://home", to: "Home/homePage", transition: .presentInNewStack)
        try await host.open("app://home?page=2&note=ripe", origin: .remote)
        #expect(screen.shown == ["presentInNewStack HomePage: HomePage"])
        #expect(navigator.top?.parameters["note"] == "ripe" && navigator.top?.parameters["page"] == 2)
        let closed = PageNotes()
        let completion = host.callback { arguments in
            closed.add("page \(arguments[0])")
            return .null
        }
        try await navigator.open("app://home", ["completion": completion.value]) { backData in
            closed.add((try? backData.get())?.string ?? "nothing")
        }
        try await navigator.pop()
        #expect(closed.all == ["page 1", "chosen"])
        #expect(await pluginError { try await navigator.open("app://home?page=0", by: .present) }?.code == .pageRefused)
    }

    @Test func `XControllerManager: the six methods of the mapping`() throws {
        try host.addRoute("xzh://news", to: "Home/homePage", summary: "The latest news", defaults: ["page": 2])
        #expect(code { try host.addRoute("xzh://news", to: "Home/homePage") } == .conflict)
        #expect(host.routes.first { $0.pattern == "xzh://news" }?.summary == "The latest news")
        #expect(host.resolve("xzh://news").parameters["page"] == 2)
        try host.updateRoute("xzh://news", to: "Home/homePage", defaults: ["page": 3])
        #expect(host.resolve("xzh://news").parameters["page"] == 3)
        #expect(host.canOpen("xzh://news?page=2") && !host.canOpen("xzh://news?page=two"))
        #expect(!host.canOpen("xzh://"))
        try host.addRoute("xzh://", to: "Home/homePage")
        #expect(host.canOpen("xzh://"))
        #expect(host.removeRoute("xzh://news"))
    }

    @Test func `GHL: URLs without a scheme, parameters beside them, a service by its name`() async throws {
        try host.addRoute("home/homePage", to: "Home/homeLog")
        #expect(try await host.open("home/homePage?page=1") == "page 1")
        #expect(try await host.open("home/homePage", ["page": 1]) == "page 1")
        #expect(try host.service("Home").perform("homeLog", ["page": 1]) == "page 1")
        #expect(code { try host.service("Home").perform("homelog") } == .unknownAction)
    }
}
