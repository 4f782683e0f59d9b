import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Routes that declare a transition: a URL from outside shows its page.
@Suite struct RoutePagesTests {
    private let test: TestHost
    private let presenter = RecordingPresenter()
    private let notes = PageNotes()
    private var host: PluginHost { test.host }

    init() throws {
        test = try TestHost([])
        try test.host.register(.noted(notes))
        try test.host.register(Self.shop(notes))
    }

    /// A module with pages for other programs, one for each transition.
    private static func shop(_ notes: PageNotes) -> Manifest {
        Manifest("Shop", version: "1.0.0") {
            Target("Shop") {
                Action("page", .context(), .required("name", String.self), .optional("note", String.self)) {
                    context, name, _ in
                    try context.object("Shelf", NotedPage(name, notes))
                }
                .remote()
                Action("number") { 3 }.remote()
            }
            Page("Shelf", NotedPage.self) {
                Action.shouldOpen { page, opening in
                    page.notes.add("\(page.name) should open by \(opening.url ?? "name")")
                    return page.name != "unwilling"
                }
                Action.opened { page, _ in page.notes.add("\(page.name) is open") }
                Action.backData { page in page.name }
            }
            Route("shop://pushed/:name", to: "Shop/page").transition(.push)
            Route("shop://presented/:name", to: "Shop/page").transition(.present)
            Route("shop://stacked/:name", to: "Shop/page").transition(.presentInNewStack)
            Route("shop://returned/:name", to: "Shop/page").transition(.none)
            Route("shop://number", to: "Shop/number").transition(.present)
        }
    }

    @Test func `A URL from outside shows its page by the transition of its route, and returns it`() async throws {
        let navigator = Navigator(host, presenter: presenter)
        let first = try await host.open("shop://stacked/one", origin: .remote)
        try await host.open("shop://pushed/two?note=new", origin: .remote)
        try await host.open("shop://presented/three", origin: .remote)
        #expect(
            presenter.shown == [
                "presentInNewStack Shelf: Shelf", "push Shelf: Shelf > Shelf", "present Shelf: Shelf > Shelf | [Shelf]",
            ])
        #expect(navigator.layers.first?.pages.first.map { .object($0.object) } == first)
        #expect(navigator.layers.first?.pages.last?.url == "shop://pushed/two?note=new")
        #expect(notes.all.prefix(2) == ["one should open by shop://stacked/one", "one is open"])
        try await navigator.close(#require(first.object))
        #expect(navigator.layers.isEmpty)
    }

    @Test func `Callers inside the program, object(for:), and routes without a transition only get the page`()
        async throws
    {
        let navigator = Navigator(host, presenter: presenter)
        #expect(try await host.open("shop://presented/one").object != nil)
        #expect(try await host.object(for: "shop://presented/one", origin: .remote).perform("backData") == "one")
        #expect(try await host.open("shop://returned/one", origin: .remote).object != nil)
        #expect(navigator.layers.isEmpty && !notes.all.contains { $0.hasSuffix("is open") })
    }

    @Test func `Without a navigator, or with one that does not show routes, the URL only returns the page`()
        async throws
    {
        #expect(try await host.open("shop://presented/one", origin: .remote).object != nil)
        let navigator = Navigator(host, presenter: presenter, showsRoutes: false)
        #expect(try await host.open("shop://presented/one", origin: .remote).object != nil)
        #expect(navigator.layers.isEmpty)
    }

    @Test func `Of several navigators the first one that still exists shows the page`() async throws {
        struct Weak: Sendable { weak let navigator: Navigator? }
        let second: Navigator
        let released: Weak
        do {
            let first = Navigator(host, presenter: presenter)
            second = Navigator(host, presenter: presenter)
            released = Weak(navigator: first)
            try await host.open("shop://presented/one", origin: .remote)
            #expect(first.layers.count == 1 && second.layers.isEmpty)
        }
        #expect(await becomesTrue { released.navigator == nil })
        try await host.open("shop://presented/two", origin: .remote)
        #expect(second.layers.count == 1)
    }

    @Test func `A push from outside where there is no stack is an error, and no page is made`() async throws {
        let navigator = Navigator(host, presenter: presenter)
        #expect(await pluginError { try await host.open("shop://pushed/one", origin: .remote) }?.code == .noStack)
        #expect(notes.all.isEmpty)
        let declined = await pluginError { try await host.open("shop://presented/unwilling", origin: .remote) }
        #expect(declined?.code == .pageRefused && declined?.message.contains("shop://presented/unwilling") == true)
        let number = await pluginError { try await host.open("shop://number", origin: .remote) }
        #expect(number?.code == .invalidResult && navigator.layers.isEmpty)
    }

    @Test func `A synchronous opening from outside says that showing the page takes time`() throws {
        let navigator = Navigator(host, presenter: presenter)
        func open(_ url: String) throws { _ = try host.open(url, origin: .remote) }
        let error = #expect(throws: PluginError.self) { try open("shop://presented/one") }
        #expect(error?.code == .asynchronousAction && error?.message.contains("by present") == true)
        #expect(host.canOpen("shop://presented/one", origin: .remote) && navigator.layers.isEmpty)
    }

    @Test func `The guard is asked once, and the page of the URL to which it redirects is shown`() async throws {
        let asked = Mutex<[String]>([])
        let announced = Mutex<[Value?]>([])
        let subscription = host.on("host.openURL") { parameters in announced.withLock { $0.append(parameters["url"]) } }
        host.onRemoteCall { call in
            asked.withLock { $0.append(call.url) }
            return call.url.contains("returned") ? .redirect("shop://presented/other") : .pass
        }
        let navigator = Navigator(host, presenter: presenter)
        try await host.open("shop://presented/one", origin: .remote)
        try await host.open("shop://returned/two", origin: .remote)
        #expect(asked.withLock { $0 } == ["shop://presented/one", "shop://returned/two"])
        #expect(announced.withLock { $0 } == ["shop://presented/one", "shop://presented/other"])
        #expect(navigator.layers.map { $0.pages[0].url } == ["shop://presented/one", "shop://presented/other"])
        subscription.cancel()
    }

    @Test func `The page of a method's route is shown, not that of another method about which no guard was asked`()
        async throws
    {
        let notes = notes
        try host.register(
            Manifest("Doors", version: "1.0.0") {
                Target("Doors") {
                    Action("form", .context()) { context in try context.object("Door", NotedPage("form", notes)) }
                        .remote()
                    Action("secret", .context()) { context in try context.object("Door", NotedPage("secret", notes)) }
                        .remote(requires: "login")
                }
                Page("Door", NotedPage.self) { Action.backData { page in page.name } }
                Route("doors://open", to: "Doors/form").method(.post).transition(.present)
                Route("doors://open", to: "Doors/secret").method(.get).transition(.present)
            })
        let navigator = Navigator(host, presenter: presenter)
        let page = try #require(try await host.open("doors://open", method: .post, origin: .remote).object)
        #expect(try await page.call("backData") == "form")
        let error = await pluginError { try await host.open("doors://open", origin: .remote) }
        #expect(error?.code == .refused && navigator.layers.count == 1)
    }

    @Test func `The caller's values are passed on, and a page that is not remote is not reached`() async throws {
        let navigator = Navigator(host, presenter: presenter)
        try host.addRoute("shop://named", to: "Shop/page", transition: .present)
        try await host.open("shop://named", ["name": "given"], origin: .remote)
        #expect(navigator.top?.parameters == ["name": "given"])
        try host.updateRoute("noted://pages/:name", to: "Pages/page", transition: .present)
        let error = await pluginError { try await host.open("noted://pages/one", origin: .remote) }
        #expect(error != nil && navigator.layers.count == 1)
    }

    @Test func `URLs from outside open at most a thousand pages`() async throws {
        let navigator = Navigator(host, presenter: presenter)
        for number in 0..<1000 { try await host.open("shop://presented/\(number)", origin: .remote) }
        let error = await pluginError { try await host.open("shop://presented/last", origin: .remote) }
        #expect(error?.code == .overloaded && navigator.layers.count == 1000)
        try await navigator.dismiss()
        try await host.open("shop://presented/last", origin: .remote)
    }

    @Test func `Files, programs and modules in C declare transitions, and the list of routes shows them`() async throws
    {
        let test = try TestHost { configuration, _ in configuration.watches = false }
        var module = CModule(
            name: "Paged",
            targets: [
                .init(
                    name: "Paged",
                    actions: [
                        .init(
                            name: "page", manifest: "\"remote\":true,",
                            body: """
                                static int32_t nothing = 0;
                                plugin_object page = host->object_create(host, text("CPage"), &nothing, 0);
                                reply_value(call->token, plugin_value_object(page));
                                host->object_release(host, page);
                                """)
                    ])
            ],
            types: [("CPage", [.init(name: "backData", body: "reply_int(call->token, 1);")])])
        module.moreManifest = """
            "routes": [{"pattern": "c://page", "action": "Paged/page", "transition": "presentInNewStack"}], 
            """
        try module.build(into: test.plugins, as: "paged.so")
        try writeFile(
            Data(#"{"file://page": {"action": "Paged/page", "transition": "push"}}"#.utf8),
            to: "\(test.plugins)/pages.routes.json")
        try test.start()
        try test.host.addRoute("program://page", to: "Paged/page", transition: .present)
        let transitions = test.host.routes.map { "\($0.pattern) \($0.transition)" }
        #expect(transitions == ["c://page presentInNewStack", "file://page push", "program://page present"])
        let navigator = Navigator(test.host, presenter: presenter)
        for scheme in ["c", "file", "program"] { try await test.host.open("\(scheme)://page", origin: .remote) }
        #expect(
            presenter.shown == [
                "presentInNewStack CPage: CPage", "push CPage: CPage > CPage", "present CPage: CPage > CPage | [CPage]",
            ])
        try await navigator.dismiss(2)
    }

    @Test func `A transition that does not exist is refused, with those that do`() async throws {
        let test = try TestHost { configuration, _ in configuration.watches = false }
        try writeFile(
            Data(#"{"file://page": {"action": "Paged/page", "transition": "psh"}}"#.utf8),
            to: "\(test.plugins)/pages.routes.json")
        var module = CModule()
        module.moreManifest = """
            "routes": [{"pattern": "c://page", "action": "Good/answer", "transition": "modal"}], 
            """
        try module.build(into: test.plugins, as: "paged.so")
        try test.start()
        let problem = try #require(test.host.problems.first)
        #expect(problem.code == .invalidRouteFile && problem.message.contains("Did you mean “push”?"))
        let error = try #require(test.status("paged.so")?.error)
        #expect(error.code == .invalidManifest && error.message.contains("presentInNewStack"))
    }
}
