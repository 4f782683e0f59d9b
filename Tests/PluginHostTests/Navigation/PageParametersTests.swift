import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// The parameters of a page, whether the action that makes it declares them or not.
@Suite struct PageParametersTests {
    private let test: TestHost
    private let presenter = RecordingPresenter()
    private let notes = PageNotes()
    private let navigator: Navigator
    private var host: PluginHost { test.host }

    init() throws {
        test = try TestHost([built("libModuleA.so")])
        navigator = Navigator(test.host, presenter: presenter)
        try test.host.register(.noted(notes))
        let notes = notes
        try test.host.register(
            Manifest("Sized", version: "1.0.0") {
                Target("Sized") {
                    Action("page", .context()) { context in
                        try context.object("Sized", NotedPage("sized", notes))
                    }
                    .remote()
                    Action("open", .context(), .rest()) { context, rest in
                        notes.add("rest: \(rest.keys.sorted().joined(separator: ", "))")
                        return try context.object("Sized", NotedPage("sized", notes))
                    }
                }
                Page("Sized", NotedPage.self) {
                    Action.property("size", Int.self) { page, size in page.notes.add("size \(size)") }
                }
            })
    }

    @Test func `A page opened by URL can read what the action does not declare, from the query and from the caller`()
        async throws
    {
        let page = try await navigator.open(
            "noted://pages/one?utm_source=mail&utm_source=post&b=q&_url=x", ["color": ["red"], "b": 2], by: .present)
        #expect(
            page.parameters == ["name": "one", "size": 7, "utm_source": "post", "color": ["red"], "b": 2])
        #expect(notes.all.contains("one should open by \(page.url ?? ""): b, color, name, size, utm_source"))
    }

    @Test func `A page opened by name can read what the action does not declare`() async throws {
        let page = try await navigator.open("Pages", "page", ["name": "one", "color": "red"], by: .present)
        #expect(page.parameters == ["name": "one", "size": 1, "color": "red"])
    }

    @Test func `A page made by an action with a rest has the entries of the rest as parameters`() async throws {
        let byURL = try await navigator.open("app://Sized/open?a=1", ["b": 2], by: .present)
        #expect(byURL.parameters == ["a": "1", "b": 2])
        let byName = try await navigator.open("Sized", "open", ["c": 3], by: .present)
        #expect(byName.parameters == ["c": 3])
        #expect(notes.all.filter { $0.hasPrefix("rest") } == ["rest: a, b", "rest: c"])
    }

    @Test func `A property that the action does not declare is set, and text of a URL is converted to its type`()
        async throws
    {
        for (url, origin) in [("app://Sized/page?size=3.0", CallOrigin.local), ("app://Sized/page?size=3", .remote)] {
            let page = try await navigator.open(url, by: .present, origin: origin)
            #expect(page.parameters == ["size": 3])
        }
        try await navigator.open("app://Sized/page?size=x", ["size": 4], by: .present)
        try await navigator.open("Sized", "page", ["size": 5], by: .present)
        #expect(notes.all.filter { $0.hasPrefix("size") } == ["size 3", "size 3", "size 4", "size 5"])
        let error = await pluginError { try await navigator.open("app://Sized/page?size=x", by: .present) }
        #expect(error?.code == .mistypedParameter && error?.message.contains("size") == true)
        // Text that code passes is not converted.
        let text = await pluginError { try await navigator.open("Sized", "page", ["size": "5"], by: .present) }
        #expect(text?.code == .mistypedParameter)
    }

    @Test func `Opening a page notes no dropped query keys, for none is dropped`() async throws {
        try await navigator.open("app://Sized/page?utm_source=mail", by: .present)
        #expect(!test.log.contains { $0.message.contains("query") })
    }
}
