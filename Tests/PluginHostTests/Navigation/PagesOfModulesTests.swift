import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Pages whose modules change while they are shown, pages in C, and modules that navigate.
@Suite struct PagesOfModulesTests {
    private let presenter = RecordingPresenter()

    // MARK: Replaced and removed

    /// A module in C with a page that states which build made it.
    private static func module(_ build: Int) -> CModule {
        CModule(
            name: "Paged",
            code: """
                static int32_t noted = 0;
                static plugin_object page(void) { return host->object_create(host, text("CPage"), &noted, 0); }
                """,
            targets: [
                .init(
                    name: "Paged",
                    actions: [
                        .init(
                            name: "page", parameters: ["size": "int"],
                            body: """
                                plugin_object object = page();
                                reply_value(call->token, plugin_value_object(object));
                                host->object_release(host, object);
                                """),
                        .init(name: "handle.paged.hello", body: "reply_value(call->token, plugin_value_bool(0));"),
                    ])
            ],
            types: [
                (
                    "CPage",
                    [
                        .init(
                            name: "set.size", parameters: ["value": "int"],
                            body: "noted = (int32_t)arguments[0].as.integer; reply_int(call->token, 0);"),
                        .init(name: "shouldOpen", body: "reply_value(call->token, plugin_value_bool(noted < 100));"),
                        .init(
                            name: "content",
                            body: """
                                plugin_value lines[1] = {plugin_value_string("build \(build)", 7)};
                                plugin_entry entries[2] = {
                                    {text("title"), plugin_value_string("C", 1)}, {text("lines"), plugin_value_list(lines, 1)}};
                                reply_value(call->token, plugin_value_map(entries, 2));
                                """),
                        .init(name: "backData", body: "reply_int(call->token, noted);"),
                        .init(
                            name: "handle.paged.double", parameters: ["n": "int"],
                            body: """
                                plugin_entry changed = {text("n"), plugin_value_int(arguments[0].as.integer * 2)};
                                plugin_entry reply = {text("parameters"), plugin_value_map(&changed, 1)};
                                reply_value(call->token, plugin_value_map(&reply, 1));
                                """),
                        .init(
                            name: "ask", manifest: "\"async\":true,", parameters: ["event": "string"],
                            body: """
                                plugin_entry n = {text("n"), plugin_value_int(4)};
                                plugin_request request = {.size = sizeof request, .address = PLUGIN_ADDRESS_CHAIN,
                                    .target = {arguments[0].as.string, arguments[0].count}, .parameters = &n,
                                    .parameter_count = 1};
                                host->call(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "isReceiver", parameters: ["object": "object"],
                            body: """
                                const plugin_chain *chain = host->get_extension(host, text(PLUGIN_CHAIN_EXTENSION));
                                reply_value(call->token, plugin_value_bool(
                                    chain->receiver(host, call->token) == arguments[0].as.object
                                    && chain->receiver(host, 0) == 0
                                    && chain->set_parent(host, arguments[0].as.object, arguments[0].as.object)
                                        == PLUGIN_PARENT_CIRCULAR
                                    && chain->set_parent(host, 12345, 0) == PLUGIN_PARENT_GONE
                                    && chain->set_parent(host, arguments[0].as.object, 12345) == PLUGIN_PARENT_GONE));
                                """),
                    ]
                )
            ])
    }

    @Test func `A page in C has properties, is asked, shown and closed by the names of its actions`() async throws {
        let test = try TestHost([Self.module(1).build()])
        let navigator = Navigator(test.host, presenter: presenter)
        let backData = Mutex<Value?>(nil)
        let page = try await navigator.open("Paged", "page", ["size": 42], by: .present) { data in
            backData.withLock { $0 = try? data.get() }
        }
        #expect(try await page.content() == PageContent("C", lines: ["build 1"]))
        #expect(try page.object.perform("isReceiver", ["object": .object(page.object)]) == true)
        try await navigator.dismiss()
        #expect(backData.withLock { $0 } == 42)
        let refused = await pluginError { try await navigator.open("Paged", "page", ["size": 100], by: .present) }
        #expect(refused?.code == .pageRefused)
    }

    @Test func `A page that is shown continues to work when its module is replaced or removed`() async throws {
        let folder = try TestHost()
        try copyFile(Self.module(1).build(), to: "\(folder.plugins)/paged.so")
        try folder.start()
        let navigator = Navigator(folder.host, presenter: presenter)
        let old = try await navigator.open("Paged", "page", ["size": 1], by: .presentInNewStack)
        #expect(try await old.content().lines == ["build 1"])

        let new = folder.folder.path + "/new.so"
        try copyFile(Self.module(2).build(), to: new)
        #expect(rename(new, "\(folder.plugins)/paged.so") == 0)
        #expect(eventually { folder.changes.contains { $0.isReplacement } })
        let page = try await navigator.open("Paged", "page", ["size": 2])
        #expect(try await page.content().lines == ["build 2"])
        #expect(try await old.content().lines == ["build 1"])

        #expect(unlink("\(folder.plugins)/paged.so") == 0)
        #expect(eventually { folder.changes.contains { $0.isRemoval } })
        #expect(try await page.content().lines == ["build 2"])
        #expect(try await navigator.pop().count == 1)
        #expect(try await old.content().lines == ["build 1"])
        try await navigator.dismiss()
    }

    @Test func `A page whose module has been torn down no longer answers, and can be closed`() async throws {
        let folder = try TestHost { configuration, _ in configuration.objectTimeout = .milliseconds(1) }
        try folder.start()
        let notes = PageNotes()
        try folder.host.register(.noted(notes))
        let navigator = Navigator(folder.host, presenter: presenter)
        try await navigator.open("Pages", "page", ["name": "below"], by: .presentInNewStack)
        let page = try await navigator.open("Pages", "page", ["name": "page"]) { backData in
            if case .failure(let error) = backData { notes.add("\(error.code)") }
        }
        try folder.host.unregister("Noted")
        #expect(eventually { (try? page.object.perform("content")) == nil })
        #expect(await pluginError { try await page.content() }?.code == .generationRetired)
        #expect(navigator.layers.path == "Noted > Noted")
        let handler = folder.host.handle("noted.asked") { _ in .handled("the program") }
        let outcome = try await folder.host.emit("noted.asked", from: page.object)
        #expect(outcome.result == "the program")
        #expect(outcome.failures.map(\.code) == [.generationRetired, .generationRetired])
        handler.cancel()
        try await navigator.pop()
        #expect(notes.all.last == "generationRetired")
        #expect(navigator.layers.path == "Noted")
    }

    // MARK: Modules that navigate

    @Test func `A module opens and closes pages through the target of a navigator`() async throws {
        let test = try TestHost(["ModuleA", "ModuleB"].map { built("lib\($0).so") })
        let navigator = Navigator(test.host, presenter: presenter)
        try navigator.register()
        let basket = try #require(
            try await test.host.call("navigator", "presentInNewStack", ["url": "app://basket"]).object)
        let article = try await basket.call("look", ["key": "apple"])
        #expect(navigator.layers.path == "Basket > Article" && article.object == navigator.top?.object)
        let layers = try test.host.perform("navigator", "layers")
        #expect(layers[0]?["isStack"] == true && layers[0]?["pages"]?[1]?["url"] == "app://shop/article/apple")
        #expect(layers[0]?["pages"]?[1]?["page"] == article)
        #expect(try await test.host.call("navigator", "pop") == 1)

        let told = PageNotes()
        let completion = test.host.callback { arguments in
            told.add(Value.list(arguments).json)
            return .null
        }
        let open: Parameters = [
            "target": "A", "action": "article", "parameters": ["key": "pear"], "transition": "present",
            "completion": .object(completion.object),
        ]
        let page = try await test.host.call("navigator", "open", open)
        #expect(presenter.shown.last == "present Article: Basket | [Article]")
        #expect(try await test.host.call("navigator", "close", ["page": page]) == 1)
        #expect(told.all == ["[false]"])
        for wrong: Parameters in [[:], ["url": "app://basket", "target": "A"], ["target": "A"]] {
            #expect(
                await pluginError { try await test.host.call("navigator", "push", wrong) }?.code == .missingParameter)
        }
        #expect(
            await pluginError { try await test.host.call("navigator", "close", ["page": page]) }?.code == .pageNotOpen)
        #expect(
            await pluginError { try await test.host.open("app://navigator/pop", origin: .remote) }?.code == .notRemote)
    }

    @Test func `A navigator that the program has released says so`() async throws {
        let test = try TestHost([])
        do { try Navigator(test.host, presenter: presenter).register(as: "pages") }
        let error = await pluginError { try await test.host.call("pages", "pop") }
        #expect(error?.code == .unknownTarget && error?.message.contains("released") == true)
    }

    @Test func `Pages that open each other endlessly are stopped`() async throws {
        let test = try TestHost([])
        try test.host.register(
            Manifest("Endless", version: "1.0.0") {
                Target("Endless") { Action("page", .context()) { context in try context.object("Endless", 0) } }
                Page("Endless", Int.self) {
                    Action.opened { _, opening in
                        try await opening.context.call("navigator", "push", ["target": "Endless", "action": "page"])
                    }
                }
            })
        presenter.whileShowing.withLock { $0 = { await Task.yield() } }
        let navigator = Navigator(test.host, presenter: presenter)
        try navigator.register()
        try await navigator.open("Endless", "page", by: .presentInNewStack)
        #expect((60...65).contains(navigator.layers[0].pages.count), "Two calls for each page.")
        #expect(test.log.contains { $0.message.contains("recursionLimit") })
    }

    // MARK: The chain in C

    @Test func `A page in C changes an event on its way, and emits one itself`() async throws {
        let test = try TestHost([Self.module(1).build()])
        let navigator = Navigator(test.host, presenter: presenter)
        try await navigator.open("Paged", "page", ["size": 1], by: .presentInNewStack)
        let page = try await navigator.open("Paged", "page", ["size": 2])
        let handler = test.host.handle("paged.double") { event in .handled(event["n"] ?? .null) }
        let outcome = try await test.host.emit("paged.double", ["n": 3], from: page.object)
        #expect(outcome.isHandled && outcome.result == 12 && outcome.handler == "the program")
        let asked = try await ChainOutcome(page.object.call("ask", ["event": "paged.double"]))
        #expect(asked.result == 16 && asked.parameters == ["n": 16])
        handler.cancel()
        let unhandled = try await ChainOutcome(page.object.call("ask", ["event": "paged.double"]))
        #expect(!unhandled.isHandled && unhandled.handler == nil && unhandled.parameters == ["n": 16])
        #expect(try await test.host.emit("paged.hello", from: page.object).failures.isEmpty)
    }
}
