import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// The steps of opening a page, in order, and what prevents a page from being opened.
@Suite struct OpeningPagesTests {
    private let test: TestHost
    private let presenter = RecordingPresenter()
    private let notes = PageNotes()
    private let navigator: Navigator
    private var host: PluginHost { test.host }

    init() throws {
        test = try TestHost(["ModuleA", "ModuleB"].map { built("lib\($0).so") })
        try test.host.register(.noted(notes))
        navigator = Navigator(test.host, presenter: presenter)
    }

    @Test func `A page gets its properties, is asked, is shown, and is notified, in this order`() async throws {
        presenter.whileShowing.withLock { [notes] in $0 = { notes.add("shown") } }
        let page = try await navigator.open("noted://pages/one?rest=x", by: .presentInNewStack)
        #expect(
            notes.all == [
                "one has the size 7", "one should open by noted://pages/one?rest=x: name, rest, size", "shown",
                "one is open",
            ])
        #expect(page.parameters == ["name": "one", "size": 7, "rest": "x"])
        #expect(page.module == "Noted" && page.type == "Noted" && page.version == "1.0.0")
        #expect(try await page.content() == PageContent("one"))
        #expect(navigator.top == page)
    }

    @Test func `A page of a shared library is opened by URL and by name, and gets its properties`() async throws {
        let page = try await navigator.open("app://shop/article/pear?note=ripe", by: .presentInNewStack)
        #expect(try await page.content() == PageContent("pear", summary: "0.6", lines: ["ripe"]))
        try await navigator.open("A", "article", ["key": "apple"])
        #expect(presenter.shown == ["presentInNewStack Article: Article", "push Article: Article > Article"])
    }

    @Test func `The defaults of an action are parameters, too, and the caller's parameters override all others`()
        async throws
    {
        let byName = try await navigator.open("Pages", "page", ["name": "two"], by: .present)
        #expect(byName.parameters == ["name": "two", "size": 1] && byName.url == nil)
        let byURL = try await navigator.open("noted://pages/three", ["size": 9], by: .present)
        #expect(byURL.parameters == ["name": "three", "size": 9])
    }

    @Test func `Parameters of pages are variables, or a ready map`() async throws {
        let (name, size, rest) = ("four", 4, String?.none)
        let byName = try await navigator.open("Pages", "page", ["name": name, "size": size + 1], by: .present)
        #expect(byName.parameters == ["name": "four", "size": 5])
        let byURL = try await navigator.open("noted://pages/five", ["size": size, "rest": rest], by: .present)
        #expect(byURL.parameters == ["name": "five", "size": 4, "rest": nil])
        let ready: [String: Value] = ["name": "six", "size": 6]
        #expect(try await navigator.open("Pages", "page", ready, by: .present).parameters == ready)
        #expect(
            try await navigator.open("noted://pages/six", ["size": 6] as [String: Value], by: .present).parameters
                == ready)
        let error = await pluginError {
            try await navigator.open("Pages", "page", ["name": name, "size": UInt.max], by: .present)
        }
        #expect(error?.code == .invalidValue && error?.message.contains("“size”") == true)
    }

    @Test func `A push without a stack is an error, and no page is made`() async throws {
        let none = await pluginError { try await navigator.open("noted://pages/one") }
        #expect(none?.code == .noStack && none?.message.contains("No page is open") == true)
        try await navigator.open("noted://pages/alone", by: .present)
        let alone = await pluginError { try await navigator.open("noted://pages/one") }
        #expect(alone?.code == .noStack && alone?.message.contains("presented alone") == true)
        #expect(!notes.all.contains { $0.hasPrefix("one") })
        #expect(presenter.shown == ["present Noted: [Noted]"])
    }

    @Test func `A page that is opened without being shown is made, asked and notified`() async throws {
        do {
            let page = try await navigator.open("noted://pages/one", by: .none)
            #expect(try page.object.perform("backData") == "one")
        }
        #expect(navigator.layers.isEmpty && presenter.shown.isEmpty)
        #expect(notes.all.suffix(2) == ["one is open", "one is gone"])
    }

    @Test func `A page that refuses is not shown, and is released`() async throws {
        let error = await pluginError { try await navigator.open("noted://pages/unwilling", by: .present) }
        #expect(error?.code == .pageRefused && error?.message.contains("noted://pages/unwilling") == true)
        #expect(presenter.shown.isEmpty && navigator.layers.isEmpty)
        #expect(notes.all.last == "unwilling is gone" && !notes.all.contains("unwilling is open"))
        let library = await pluginError { try await navigator.open("app://shop/article/lead", by: .present) }
        #expect(library?.code == .pageRefused)
    }

    @Test func `A page that a presenter cannot show is not open, and is released`() async throws {
        try await navigator.open("noted://pages/first", by: .presentInNewStack)
        presenter.failure.withLock { $0 = PluginError("noLight", "The screen is dark.") }
        #expect(await pluginError { try await navigator.open("noted://pages/second") }?.code == "noLight")
        #expect(navigator.layers.path == "Noted")
        #expect(notes.all.last == "second is gone" && !notes.all.contains("second is open"))
        presenter.failure.withLock { $0 = nil }
        try await navigator.open("noted://pages/third")
        #expect(navigator.layers.path == "Noted > Noted")
    }

    @Test func `A page that fails when it is notified that it is open stays open, and the log says so`() async throws {
        try await navigator.open("noted://pages/late", by: .present)
        #expect(navigator.layers.path == "[Noted]")
        #expect(test.log.contains { $0.module == "Noted" && $0.message.contains("Too late.") })
    }

    @Test func `A property of another type makes the opening fail`() async throws {
        try host.register(
            Manifest("Strict", version: "1.0.0") {
                Target("Strict") {
                    Action("page", .context(), .optional("size", Value.self)) { context, _ in
                        try context.object("Strict", NotedPage("strict", notes))
                    }
                }
                Page("Strict", NotedPage.self) { Action.property("size", Int.self) { _, _ in } }
            })
        let error = await pluginError { try await navigator.open("Strict", "page", ["size": "big"], by: .present) }
        #expect(error?.code == .mistypedParameter && error?.message.contains("Strict#set.size") == true)
        #expect(notes.all == ["strict is gone"] && presenter.shown.isEmpty)
        let page = try await navigator.open("Strict", "page", by: .present)
        #expect(try await page.content() == PageContent("Strict"))
    }

    @Test func `A result that is not an object is not a page, and an object is open once at a time`() async throws {
        #expect(await pluginError { try await navigator.open("Pages", "number", by: .present) }?.code == .invalidResult)
        #expect(
            await pluginError { try await navigator.open("app://B/greet?name=x", by: .present) }?.code == .invalidResult
        )
        let page = try await navigator.open("Pages", "shared", by: .presentInNewStack)
        #expect(await pluginError { try await navigator.open("Pages", "shared") }?.code == .pageOpen)
        try await navigator.close(page.object)
        try await navigator.open("Pages", "shared", by: .present)
    }

    @Test func `A URL from outside reaches remote pages only, and the guard is asked`() async throws {
        let refused = await pluginError {
            try await navigator.open("noted://pages/one", by: .present, origin: .remote)
        }
        #expect(refused?.code == .noRoute)
        let shop = "app://shop/article/pear"
        try await navigator.open(shop, by: .present, origin: .remote)
        host.onRemoteCall { call in call.target == "A" ? .refuse("The shop is closed.") : .pass }
        #expect(await pluginError { try await navigator.open(shop, by: .present, origin: .remote) }?.code == .refused)
        try await navigator.open(shop, by: .present)
        host.onRemoteCall { _ in .redirect("app://basket") }
        let other = try await navigator.open(shop, by: .present, origin: .remote)
        #expect(other.type == "Basket")
    }

    @Test func `A presenter cannot navigate while it is asked to show a page`() async throws {
        let navigator = navigator
        let codes = PageNotes()
        presenter.whileShowing.withLock {
            $0 = {
                let code = await pluginError { try await navigator.open("noted://pages/two", by: .present) }?.code
                codes.add(code?.rawValue ?? "none")
                codes.add(await pluginError { try await navigator.dismiss() }?.code.rawValue ?? "none")
            }
        }
        try await navigator.open("noted://pages/one", by: .present)
        #expect(codes.all == ["circularWait", "circularWait"])
        #expect(navigator.layers.path == "[Noted]")
    }

    @Test func `Pages that many tasks open at once are shown one after the other, and none is lost`() async throws {
        try await navigator.open("noted://pages/first", by: .presentInNewStack)
        let navigator = navigator
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                group.addTask { _ = try await navigator.open("Pages", "page", ["name": "\(number)"]) }
            }
            try await group.waitForAll()
        }
        #expect(navigator.layers.first?.pages.count == 51)
        #expect(presenter.shown.count == 51)
        #expect(presenter.shown.enumerated().allSatisfy { $1.components(separatedBy: " > ").count == $0 + 1 })
    }
}
