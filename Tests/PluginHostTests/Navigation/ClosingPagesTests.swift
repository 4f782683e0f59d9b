import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// What closing pages does, and what their openers receive.
@Suite struct ClosingPagesTests {
    private let test: TestHost
    private let presenter = RecordingPresenter()
    private let notes = PageNotes()
    private let navigator: Navigator

    init() throws {
        test = try TestHost([])
        try test.host.register(.noted(notes))
        navigator = Navigator(test.host, presenter: presenter)
    }

    @discardableResult
    private func open(_ name: String, by transition: Transition = .push) async throws -> OpenPage {
        try await navigator.open("Pages", "page", ["name": .string(name)], by: transition) { [notes] backData in
            notes.add("closed \((try? backData.get().string) ?? "with an error")")
        }
    }

    /// The notifications of openers, and the pages that have been released.
    private var closings: [String] { notes.all.filter { $0.hasPrefix("closed") || $0.hasSuffix("gone") } }

    @Test func `The opener gets the back data when its page is popped, and the page is released`() async throws {
        try await open("a", by: .presentInNewStack)
        try await open("b")
        #expect(closings.isEmpty)
        #expect(try await navigator.pop().map(\.type) == ["Noted"])
        #expect(closings == ["closed b", "b is gone"])
        #expect(presenter.shown.last == "closed Noted: Noted")
    }

    @Test func `Several pages are closed at once, topmost first, and each opener is notified once`() async throws {
        try await open("a", by: .presentInNewStack)
        for name in ["b", "c", "d"] { try await open(name) }
        try await navigator.pop(2)
        #expect(closings.filter { $0.hasPrefix("closed") } == ["closed d", "closed c"])
        #expect(presenter.shown.last == "closed Noted, Noted: Noted > Noted")
        try await navigator.popToRoot()
        #expect(closings.filter { $0.hasPrefix("closed") } == ["closed d", "closed c", "closed b"])
        #expect(try await navigator.popToRoot().isEmpty)
    }

    @Test func `A stack is dismissed with all its pages, and so are several layers`() async throws {
        try await open("a", by: .presentInNewStack)
        try await open("b", by: .present)
        try await open("c", by: .presentInNewStack)
        try await open("d")
        try await navigator.dismiss()
        #expect(closings.filter { $0.hasPrefix("closed") } == ["closed d", "closed c"])
        #expect(navigator.layers.path == "Noted | [Noted]")
        try await navigator.dismiss(2)
        #expect(closings.filter { $0.hasPrefix("closed") } == ["closed d", "closed c", "closed b", "closed a"])
        #expect(navigator.layers.isEmpty && navigator.top == nil)
        #expect(notes.all.filter { $0.hasSuffix("gone") }.count == 4)
    }

    @Test func `All pages above a page are closed across layers, and the page stays`() async throws {
        try await open("a", by: .presentInNewStack)
        let b = try await open("b")
        try await open("c")
        try await open("d", by: .present)
        try await navigator.popTo(b.object)
        #expect(closings.filter { $0.hasPrefix("closed") } == ["closed d", "closed c"])
        #expect(navigator.top == b)
        #expect(try await navigator.popTo(b.object).isEmpty)
    }

    @Test func `Closing a page twice is an error the second time, and its opener is notified once`() async throws {
        try await open("a", by: .presentInNewStack)
        let b = try await open("b")
        try await open("c")
        try await navigator.close(b.object)
        #expect(closings.filter { $0.hasPrefix("closed") } == ["closed c", "closed b"])
        #expect(await pluginError { try await navigator.close(b.object) }?.code == .pageNotOpen)
        #expect(await pluginError { try await navigator.popTo(b.object) }?.code == .pageNotOpen)
        #expect(navigator.layers.path == "Noted")
    }

    @Test func `Of many tasks that close one page, one succeeds`() async throws {
        try await open("a", by: .presentInNewStack)
        let b = try await open("b")
        let navigator = navigator
        let codes = await withTaskGroup(of: PluginError.Code?.self) { group in
            for _ in 0..<20 { group.addTask { await pluginError { try await navigator.close(b.object) }?.code } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count { $0 == nil } == 1 && codes.count { $0 == .pageNotOpen } == 19)
        #expect(closings.filter { $0 == "closed b" }.count == 1)
    }

    @Test func `Closing more pages than there are is an error that closes none`() async throws {
        #expect(await pluginError { try await navigator.pop() }?.code == .nothingToClose)
        #expect(await pluginError { try await navigator.dismiss() }?.code == .nothingToClose)
        try await open("a", by: .presentInNewStack)
        try await open("b")
        #expect(await pluginError { try await navigator.pop(2) }?.code == .nothingToClose)
        #expect(navigator.layers.path == "Noted > Noted" && closings.isEmpty)
    }

    @Test func `A page that fails to return back data is still closed, and its opener gets the error`() async throws {
        try await open("a", by: .presentInNewStack)
        try await open("broken")
        try await navigator.pop()
        #expect(closings == ["closed with an error", "broken is gone"])
        #expect(test.log.contains { $0.module == "Noted" && $0.message.contains("It is broken.") })
    }

    @Test func `An opener can open the next page when its page is closed`() async throws {
        let navigator = navigator
        try await open("a", by: .presentInNewStack)
        try await navigator.open("Pages", "page", ["name": "b"]) { _ in
            _ = try? await navigator.open("Pages", "page", ["name": "c"])
        }
        try await navigator.pop()
        #expect(navigator.layers.path == "Noted > Noted")
        #expect(try await navigator.top?.content().title == "c")
    }
}
