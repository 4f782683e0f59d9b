import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// The examples of “Pages and navigation”.
@Suite struct PagesArticleTests {
    private let test: TestHost
    private let screen = RecordingPresenter()
    private let navigator: Navigator

    init() throws {
        test = try TestHost(["ModuleA", "ModuleB"].map { built("lib\($0).so") })
        navigator = Navigator(test.host, presenter: screen)
    }

    @Test func `Pages are opened by URL and by name, and their openers get back data`() async throws {
        let closed = PageNotes()
        try await navigator.open("app://basket", by: .presentInNewStack)
        let pear = try await navigator.open("app://shop/article/pear?note=ripe") { backData in
            closed.add("\((try? backData.get()) ?? .null)")
        }
        #expect(try await pear.content().lines == ["ripe"])
        try await navigator.open("A", "article", ["key": "apple"], by: .present)
        #expect(screen.shown.last == "present Article: Basket > Article | [Article]")
        try await navigator.popTo(pear.object)
        try await navigator.pop()
        #expect(closed.all == ["false"])
        #expect(await pluginError { try await navigator.pop() }?.code == .nothingToClose)
        #expect(await pluginError { try await navigator.close(pear.object) }?.code == .pageNotOpen)
        try await navigator.dismiss()
        #expect(await pluginError { try await navigator.open("app://basket") }?.code == .noStack)
        #expect(
            await pluginError { try await navigator.open("app://shop/article/lead", by: .none) }?.code == .pageRefused)
    }

    @Test func `A page that the caller holds is opened, and a URL from outside shows the page of its route`()
        async throws
    {
        let pear = try await test.host.object(for: "app://shop/article/pear")
        try await navigator.open(page: pear, by: .present)
        let basket = try await navigator.open("app://basket", by: .none)
        try await navigator.open(page: basket, by: .presentInNewStack)
        #expect(screen.shown == ["present Article: [Article]", "presentInNewStack Basket: [Article] | Basket"])
        try test.host.addRoute("app://pear", to: "A/article", defaults: ["key": "pear"], transition: .push)
        try await test.host.open("app://pear", origin: .remote)
        #expect(screen.shown.last == "push Article: [Article] | Basket > Article")
    }

    @Test func `A page opens another module's page on top of itself`() async throws {
        try navigator.register()
        let basket = try await navigator.open("app://basket", by: .presentInNewStack)
        try await basket.object.call("look", ["key": "pear"])
        #expect(screen.shown == ["presentInNewStack Basket: Basket", "push Article: Basket > Article"])
    }

    @Test func `A presenter is a few lines`() async throws {
        struct Printer: Presenter {
            let printed: PageNotes
            func opened(_ page: OpenPage, by transition: Transition, in layers: [PageLayer]) async throws {
                printed.add(try await page.content().title)
            }
            func closed(_ pages: [OpenPage], in layers: [PageLayer]) async {}
        }
        let printed = PageNotes()
        let navigator = Navigator(test.host, presenter: Printer(printed: printed))
        try await navigator.open("app://basket", by: .present)
        #expect(printed.all == ["Basket"])
    }
}

/// The examples of “Events along a chain”.
@Suite struct ChainArticleTests {
    private final class Row: Sendable {}

    @Test func `An event of a page is handled by the page below, of another module`() async throws {
        let test = try TestHost(["ModuleA", "ModuleB"].map { built("lib\($0).so") })
        let navigator = Navigator(test.host, presenter: RecordingPresenter())
        let alone = try await navigator.open("app://shop/article/pear", by: .present)
        #expect(try alone.object.perform("choose") == false)

        let basket = try await navigator.open("app://basket", by: .presentInNewStack)
        let page = try await navigator.open("app://shop/article/pear")
        #expect(try page.object.perform("choose") == true)
        let other = try await test.host.emit("shop.choose", ["key": "apple"], from: page.object)
        #expect(other.isHandled && other.handler == "Basket#handle.shop.choose of ModuleB")
        #expect(try basket.object.perform("backData") == ["pear", "apple"])

        try await navigator.pop()
        #expect(try page.object.perform("choose") == false)
    }

    @Test func `A handler can be declared with its parameters, and rows have parents`() async throws {
        let test = try TestHost([])
        let basket = PageNotes()
        try test.host.register(
            Manifest("Rows", version: "1.0.0") {
                Target("Rows") {
                    Action("list", .context()) { context in try context.object("List", NotedPage("list", basket)) }
                }
                Page("List", NotedPage.self) {
                    Action("handle.shop.choose", .instance(), .required("key", String.self)) { list, key in
                        list.notes.add(key)
                    }
                    Action("row", .context()) { context in
                        try context.object("Row", Row(), parent: context.receiver)
                    }
                }
                ObjectType("Row", Row.self) {
                    Action("tap", .context()) { context in
                        try context.emit("shop.choose", ["key": "pear", "price": 0.6]).isHandled
                    }
                }
            })
        let handler = test.host.handle("shop.choose") { _ in .handled("the program takes it") }
        let list = try #require(try test.host.perform("Rows", "list").object)
        let row = try #require(try list.perform("row").object)
        #expect(try row.perform("tap") == true)
        #expect(basket.all == ["pear"])
        try row.setParent(nil)
        #expect(try await test.host.emit("shop.choose", from: row).result == "the program takes it")
        #expect(basket.all == ["pear"])
        handler.cancel()
    }
}
