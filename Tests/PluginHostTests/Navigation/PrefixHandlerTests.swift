import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Handlers of all events of the chain, or of all events with a prefix.
@Suite struct PrefixHandlerTests {
    private let test: TestHost
    private let notes = PageNotes()
    private var host: PluginHost { test.host }

    init() throws {
        test = try TestHost([])
        try test.host.register(Self.module(notes))
    }

    private static func module(_ notes: PageNotes) -> Manifest {
        Manifest("Shop", version: "1.0.0") {
            Target("Shop") {
                Action("make", .context(), .optional("parent", Object.self)) { context, parent in
                    try context.object("Shelf", NotedPage("shelf", notes), parent: parent)
                }
                Action.handle(prefix: "shop.") { event in
                    notes.add("module shop. \(event.name)")
                    return .passedOn
                }
                Action.handle("shop.sold") { event in
                    notes.add("module \(event.name)")
                    return .passedOn
                }
            }
            Target("Other", make: { 0 }) {
                Action.handle { _, event in
                    notes.add("module all \(event.name)")
                    return .passedOn
                }
            }
            ObjectType("Shelf", NotedPage.self) {
                Action.handle { shelf, event in
                    notes.add("all \(event.name)")
                    return .passedOn
                }
                Action.handle(prefix: "shop.s") { shelf, event in
                    notes.add("shop.s \(event.name)")
                    return event.name == "shop.stop" ? .handled("stopped") : .passedOn(["changed": true])
                }
                Action.handle(prefix: "later.") { shelf, event async throws in
                    await Task.yield()
                    return .handled(.string(event.name))
                }
                Action("typed", .instance(), .required("n", Int.self), .required("_event", String.self)) {
                    shelf, n, event -> ChainReply in .handled("\(event) \(n + 1)")
                }
                .handles(prefix: "typed.")
                Action.handle("shop.sold") { shelf, event in
                    notes.add("shelf \(event.name)")
                    return .passedOn
                }
            }
        }
    }

    private func shelf(parent: Object? = nil) throws -> Object {
        let parameters: Parameters = parent.map { ["parent": .object($0)] } ?? [:]
        return try #require(try host.perform("Shop", "make", parameters).object)
    }

    @Test func `The event's own handler is asked first, then longer prefixes before shorter ones, at every step`()
        throws
    {
        let first = host.handle { [notes] event in
            notes.add("program \(event.name): \(Value.map(event.parameters).json)")
            return .passedOn
        }
        let second = host.handle("shop.sold") { _ in .handled("the program's own") }
        let shelf = try shelf()
        let outcome = try host.emit("shop.sold", ["n": 1], from: shelf)
        #expect(
            notes.all == [
                "shelf shop.sold", "shop.s shop.sold", "all shop.sold", "module shop.sold", "module shop. shop.sold",
                "module all shop.sold", "program shop.sold: {\"changed\":true}",
            ])
        #expect(outcome.isHandled && outcome.result == "the program's own")
        #expect(first.prefix == "" && first.event == nil && second.event == "shop.sold" && second.prefix == nil)
    }

    @Test func `A handler of a prefix stops an event, and does not see events without the prefix`() throws {
        let parent = try shelf()
        let child = try shelf(parent: parent)
        let stopped = try host.emit("shop.stop", from: child)
        #expect(stopped.result == "stopped" && stopped.handler == "Shelf#handles.shop.s of Shop")
        #expect(notes.all == ["shop.s shop.stop"])
        #expect(try !host.emit("shops", from: child).isHandled)
        #expect(notes.all.dropFirst() == ["all shops", "all shops", "module all shops"])
    }

    @Test func `A handler of a prefix declares the parameters that it needs, the event's name among them`() throws {
        let shelf = try shelf()
        #expect(try host.emit("typed.one", ["n": 1], from: shelf).result == "typed.one 2")
        #expect(try host.emit("typed.one", from: shelf).failures.map(\.code) == [.missingParameter])
    }

    @Test func `Asynchronous handlers of a prefix are awaited, also the program's`() async throws {
        let shelf = try shelf()
        let handler = host.handle(prefix: "own.") { (event: ChainEvent) async throws -> ChainReply in
            await Task.yield()
            return .handled(.string("program \(event.name)"))
        }
        #expect(try await host.emit("later.on", from: shelf).result == "later.on")
        #expect(try await host.emit("own.event", from: shelf).result == "program own.event")
        #expect(try await !host.emit("owner", from: shelf).isHandled)
        handler.cancel()
        #expect(try await !host.emit("own.event", from: shelf).isHandled)
    }

    @Test func `A module in C handles all events with a prefix`() throws {
        let module = CModule(
            name: "Emits",
            targets: [
                .init(
                    name: "Emits",
                    actions: [
                        .init(
                            name: "emit", parameters: ["event": "string"],
                            body: """
                                plugin_request request = {.size = sizeof request, .address = PLUGIN_ADDRESS_CHAIN,
                                    .target = {arguments[0].as.string, arguments[0].count}};
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "any", manifest: #""handles": "emits.", "#, parameters: ["_event": "string"],
                            body: """
                                plugin_entry entries[2] = {{text("handled"), plugin_value_bool(1)},
                                                           {text("result"), arguments[0]}};
                                reply_value(call->token, plugin_value_map(entries, 2));
                                """),
                    ])
            ])
        let test = try TestHost([module.build()])
        let outcome = try ChainOutcome(test.host.perform("Emits", "emit", ["event": "emits.this"]))
        #expect(outcome.result == "emits.this" && outcome.handler == "Emits/any of Emits")
        #expect(try !ChainOutcome(test.host.perform("Emits", "emit", ["event": "other"])).isHandled)
    }

    @Test(
        arguments: [
            (#""handles": "shop.", "#, #""handles": "shop.", "#, "both handle all events that begin with \"shop.\""),
            (#""handles": "", "#, #""handles": "", "#, "both handle all events"),
            (#""handles": "shop.*", "#, "", "the name \"shop.*\" is not allowed"),
            (#""handles": true, "#, "", "must be a string"),
        ])
    func `A prefix is a name, and occurs once in a target`(first: String, second: String, message: String) throws {
        let test = try TestHost { configuration, _ in configuration.watches = false }
        let module = CModule(
            targets: [
                .init(
                    name: "Good",
                    actions: [
                        .init(name: "one", manifest: first, body: "reply(call, \"\");"),
                        .init(name: "two", manifest: second, body: "reply(call, \"\");"),
                    ])
            ])
        try module.build(into: test.plugins, as: "good.so")
        try test.start()
        let error = try #require(test.status("good.so")?.error)
        #expect(error.code == .invalidManifest && error.message.contains(message))
    }
}
