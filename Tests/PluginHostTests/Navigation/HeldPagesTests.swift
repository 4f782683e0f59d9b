import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Pages that the opener already holds: results of calls, and pages opened with the transition `none`.
@Suite struct HeldPagesTests {
    private let test: TestHost
    private let presenter = RecordingPresenter()
    private let notes = PageNotes()
    private let navigator: Navigator
    private var host: PluginHost { test.host }

    init() throws {
        test = try TestHost([])
        try test.host.register(.noted(notes))
        navigator = Navigator(test.host, presenter: presenter)
    }

    private func page(_ name: String) async throws -> Object {
        try await #require(host.call("Pages", "page", ["name": .string(name)]).object)
    }

    @Test func `A page that the caller holds is asked, shown and notified, and its opener gets the back data`()
        async throws
    {
        let held = try await page("one")
        let closed = PageNotes()
        let page = try await navigator.open(page: held, ["size": 3], by: .presentInNewStack) { backData in
            closed.add("\((try? backData.get()) ?? .null)")
        }
        #expect(notes.all == ["one has the size 3", "one should open by name: size", "one is open"])
        #expect(page.object == held && page.type == "Noted" && page.module == "Noted" && page.url == nil)
        #expect(page.parameters == ["size": 3] && navigator.top == page)
        try await navigator.open(page: self.page("two"))
        #expect(presenter.shown == ["presentInNewStack Noted: Noted", "push Noted: Noted > Noted"])
        try await navigator.dismiss()
        #expect(closed.all == ["\"one\""])
    }

    @Test func `The object of a URL is opened as a page`() async throws {
        let object = try await host.object(for: "noted://pages/three")
        let page = try await navigator.open(page: object, by: .present)
        #expect(page.transition == .present && presenter.shown == ["present Noted: [Noted]"])
    }

    @Test func `A page that was opened by none, or was closed, is opened again with its URL and parameters`()
        async throws
    {
        let made = try await navigator.open("noted://pages/one?rest=x", by: .none)
        #expect(presenter.shown.isEmpty)
        let shown = try await navigator.open(page: made, by: .present)
        #expect(shown == made && shown.url == "noted://pages/one?rest=x" && shown.transition == .present)
        #expect(shown.parameters == ["name": "one", "size": 7, "rest": "x"])
        try await navigator.close(shown.object)
        try await navigator.open(page: shown, by: .presentInNewStack)
        #expect(navigator.layers.map(\.isStack) == [true])
        #expect(notes.all.filter { $0 == "one is open" }.count == 3)
    }

    @Test func `A page that declines is not shown, and stays with its holder`() async throws {
        let held = try await page("unwilling")
        let error = await pluginError { try await navigator.open(page: held, by: .present) }
        #expect(error?.code == .pageRefused && navigator.layers.isEmpty && presenter.shown.isEmpty)
        #expect(try held.perform("backData") == "unwilling")
    }

    @Test func `A page that is open is not opened twice, nor asked`() async throws {
        let held = try await page("one")
        try await navigator.open(page: held, by: .presentInNewStack)
        let before = notes.all
        let error = await pluginError { try await navigator.open(page: held) }
        #expect(error?.code == .pageOpen && notes.all == before)
        let noStack = Navigator(host, presenter: presenter)
        #expect(await pluginError { try await noStack.open(page: held) }?.code == .noStack)
    }

    @Test func `A page of another host is refused`() async throws {
        let other = try TestHost([])
        try other.host.register(.noted(PageNotes()))
        let foreign = try await #require(other.host.call("Pages", "page", ["name": "one"]).object)
        let error = await pluginError { try await navigator.open(page: foreign, by: .present) }
        #expect(error?.code == .unknownObject && error?.message.contains("another host") == true)
    }

    @Test func `A module opens a page that it holds, through the navigator's target`() async throws {
        try navigator.register()
        let held = try await page("one")
        let opened = try await host.call("navigator", "presentInNewStack", ["page": .object(held)])
        #expect(opened == .object(held))
        let second = try await page("two")
        try await host.call(
            "navigator", "open", ["page": .object(second), "parameters": ["size": 2], "transition": "present"])
        #expect(presenter.shown == ["presentInNewStack Noted: Noted", "present Noted: Noted | [Noted]"])
        #expect(notes.all.contains("two has the size 2"))
        let both: Parameters = ["page": .object(held), "url": "noted://pages/one"]
        #expect(await pluginError { try await host.call("navigator", "push", both) }?.code == .missingParameter)
    }
}
