import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Events that bubble up the chain: objects, the module, the program.
@Suite struct ChainTests {
    private let test: TestHost
    private let notes = PageNotes()
    private var host: PluginHost { test.host }

    init() throws {
        test = try TestHost([])
        try test.host.register(Self.module("Links", notes))
    }

    /// A module whose objects have a name, which determines how they handle an event.
    private static func module(_ name: String, _ notes: PageNotes) -> Manifest {
        Manifest(name, version: "1.0.0") {
            Target(name) {
                Action("make", .context(), .required("name", String.self), .optional("parent", Object.self)) {
                    context, name, parent in
                    try context.object("Link", NotedPage(name, notes), parent: parent)
                }
                Action("emit", .context()) { context in try context.emit("links.module", ["a": 1]) }
                Action.handle("links.module") { event in
                    notes.add("module \(name)")
                    return .handled(.string(name))
                }
                Action.handle("links.up") { event in
                    notes.add("module \(name): \(Value.map(event.parameters).json)")
                    return .passedOn
                }
            }
            ObjectType("Link", NotedPage.self) {
                Action.handle("links.up") { link, event in
                    notes.add(link.name)
                    switch link.name {
                    case "stops": return .handled("by \(link.name)")
                    case "changes": return .passedOn(["b": 2])
                    case "throws": throw PluginError("no", "Not today.")
                    default: return .passedOn
                    }
                }
                Action.handle("links.later") { link, event async throws in
                    notes.add("later \(link.name)")
                    await Task.yield()
                    return .passedOn
                }
                Action.handle("links.again") { link, event in
                    for _ in 0..<2 { _ = try event.context.emit("links.again") }
                    return .handled
                }
                Action(
                    "handle.links.typed", .instance(), .required("n", Int.self), .optional("_event", String.self)
                ) { link, n, event -> ChainReply in .handled("\(event ?? "") \(n + 1)") }
                Action("handle.links.odd", .instance()) { link in 42 }
                Action("emit", .context(), .required("event", String.self)) { context, event in
                    try context.emit(event, ["a": 1])
                }
                Action("itself", .context()) { context in context.receiver }
            }
        }
    }

    private func link(_ name: String, parent: Object? = nil, of module: String = "Links") throws -> Object {
        var parameters: [String: Value] = ["name": .string(name)]
        if let parent { parameters["parent"] = .object(parent) }
        return try #require(try host.perform(module, "make", Parameters(parameters)).object)
    }

    // MARK: The way up

    @Test func `An event goes from an object to its parents, the module and the program, until one handles it`() throws
    {
        let top = try link("top")
        let middle = try link("middle", parent: top)
        let bottom = try link("bottom", parent: middle)
        let handler = host.handle("links.up") { [notes] event in
            notes.add("program \(event.name)")
            return .handled("done")
        }
        let outcome = try host.emit("links.up", ["a": 1], from: bottom)
        #expect(notes.all == ["bottom", "middle", "top", "module Links: {\"a\":1}", "program links.up"])
        #expect(outcome.isHandled && outcome.handler == "the program" && outcome.result == "done")
        handler.cancel()
        #expect(try !host.emit("links.up", ["a": 1], from: bottom).isHandled)
    }

    @Test func `A page that handles an event stops it, and is named`() throws {
        let bottom = try link("bottom", parent: link("stops", parent: link("top")))
        #expect(throws: Never.self) { try bottom.perform("itself") }
        let parent = try link("stops")
        let child = try link("child", parent: parent)
        let outcome = try host.emit("links.up", from: child)
        #expect(notes.all.suffix(2) == ["child", "stops"])
        #expect(outcome.isHandled && outcome.handler == "Link#handle.links.up of Links" && outcome.result == "by stops")
    }

    @Test func `A page that passes an event on can change it for those above`() throws {
        let above = try link("above")
        let changes = try link("changes", parent: above)
        let outcome = try host.emit("links.up", ["a": 1], from: changes)
        #expect(notes.all == ["changes", "above", "module Links: {\"b\":2}"])
        #expect(!outcome.isHandled && outcome.parameters == ["b": 2])
    }

    @Test func `An event that no handler handles is a result, with the parameters`() throws {
        let outcome = try host.emit("links.nobody", ["a": [1, "x"] as Value], from: link("one"))
        #expect(outcome == ChainOutcome(["parameters": ["a": [1, "x"]]]))
        #expect(!outcome.isHandled && outcome.failures.isEmpty && outcome.handler == nil)
    }

    @Test func `A handler that throws is reported with its module, and the event continues unchanged`() throws {
        let stops = try link("stops")
        let failing = try link("throws", parent: stops)
        let outcome = try host.emit("links.up", ["a": 1], from: failing)
        #expect(outcome.isHandled && outcome.parameters == ["a": 1])
        #expect(outcome.failures.map(\.source) == ["Links"] && outcome.failures.map(\.code) == ["no"])
        #expect(test.log.contains { $0.module == "Links" && $0.message.contains("Not today.") })
        let odd = try host.emit("links.odd", from: stops)
        #expect(!odd.isHandled && odd.failures.map(\.code) == [.invalidResult])
    }

    @Test func `A handler gets the parameters that it declares, checked like any others`() throws {
        let one = try link("one")
        let outcome = try host.emit("links.typed", ["n": 1.0, "other": true], from: one)
        #expect(outcome.result == "links.typed 2")
        let missing = try host.emit("links.typed", ["other": true], from: one)
        #expect(missing.failures.map(\.code) == [.missingParameter] && !missing.isHandled)
        #expect(missing.failures.map(\.source) == ["Links"])
    }

    // MARK: The origin

    @Test func `An action emits from its object, or else from its module`() throws {
        let parent = try link("stops")
        let child = try link("child", parent: parent)
        #expect(try ChainOutcome(child.perform("emit", ["links.up"])).result == "by stops")
        #expect(notes.all == ["child", "stops"])
        #expect(try child.perform("itself") == .object(child))
        #expect(try ChainOutcome(host.perform("Links", "emit")).result == "Links")
        #expect(try !host.emit("links.module").isHandled, "The program is not a module.")
    }

    @Test func `The module of a chain is that of the object where the event begins`() throws {
        try host.register(Self.module("Others", notes))
        let own = try link("own")
        let other = try link("other", parent: own, of: "Others")
        #expect(try host.emit("links.module", from: other).result == "Others")
        #expect(try host.emit("links.module", from: own).result == "Links")
    }

    @Test func `An interceptor of an action does not change where its event begins, and also applies to handlers`()
        throws
    {
        let child = try link("child", parent: link("parent"))
        let held = try link("stops")
        try child.setParent(held)
        let interceptor = host.intercept(.all) { [notes] call, next in
            notes.add("around \(call.action)")
            return try next(call)
        }
        #expect(try ChainOutcome(child.perform("emit", ["links.up"])).result == "by stops")
        #expect(
            notes.all.suffix(5) == [
                "around emit", "around handle.links.up", "child", "around handle.links.up", "stops",
            ])
        interceptor.remove()
    }

    @Test func `An event needs a name, and parameters with names`() throws {
        let one = try link("one")
        let unnamed = #expect(throws: PluginError.self) { try host.emit("links.up", [1], from: one) }
        #expect(unnamed?.code == .invalidValue)
        #expect(#expect(throws: PluginError.self) { try host.emit("", from: one) }?.code == .invalidValue)
    }

    // MARK: Asynchronous handlers

    @Test func `Asynchronous handlers are called if the event is awaited, and otherwise count as failed`()
        async throws
    {
        let above = try link("above")
        let one = try link("one", parent: above)
        let handler = host.handle("links.later") { (event: ChainEvent) async throws -> ChainReply in
            await Task.yield()
            return .handled("program")
        }
        let outcome = try await host.emit("links.later", from: one)
        #expect(notes.all == ["later one", "later above"] && outcome.result == "program")
        func now() throws -> ChainOutcome { try host.emit("links.later", from: one) }
        #expect(try now().failures.map(\.code) == [.asynchronousAction, .asynchronousAction, .asynchronousAction])
        #expect(try !now().isHandled)
        handler.cancel()
    }

    // MARK: Parents

    @Test func `An object cannot be its own ancestor`() throws {
        let top = try link("top")
        let middle = try link("middle", parent: top)
        let bottom = try link("bottom", parent: middle)
        for (object, parent) in [(top, top), (top, middle), (top, bottom), (middle, bottom)] {
            #expect(#expect(throws: PluginError.self) { try object.setParent(parent) }?.code == .circularWait)
        }
        try middle.setParent(nil)
        try top.setParent(bottom)
        #expect(try host.emit("links.up", from: top).failures.isEmpty)
        #expect(notes.all.prefix(3) == ["top", "bottom", "middle"])
    }

    @Test func `Parents that many threads set at once never form a cycle`() async throws {
        let links = try (0..<8).map { try link("\($0)") }
        _ = try await onThreads(4) { seed in
            var random = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1
            for _ in 0..<2000 {
                random ^= random << 13
                random ^= random >> 7
                random ^= random << 17
                try? links[Int(random % 8)].setParent(links[Int(random >> 8 % 8)])
            }
        }
        for link in links {
            let before = notes.all.count
            _ = try await host.emit("links.up", from: link)
            #expect(notes.all.count - before <= 9)
        }
    }

    @Test func `A call that has ended has its own object or none, never that of another call`() async throws {
        let kept = Mutex<(context: HostContext, number: Int)?>(nil)
        let hasEnded = Atomic(false)
        try host.register(
            Manifest("Keeps", version: "1.0.0") {
                Target("Keeps") {
                    Action("make", .context(), .required("number", Int.self)) { context, number in
                        try context.object("Keeper", NotedPage("\(number)", notes))
                    }
                }
                ObjectType("Keeper", NotedPage.self) {
                    Action("keep", .instance(), .context()) { keeper, context in
                        kept.withLock { $0 = (context, Int(keeper.name)!) }
                    }
                }
            })
        let keepers = try (0..<2).map { try host.perform("Keeps", "make", ["number": .int($0)]).object! }
        _ = try await onThreads(2) { thread in
            guard thread == 0 else {
                while !hasEnded.load(ordering: .relaxed) {
                    guard let (context, number) = kept.withLock(\.self), let receiver = context.receiver else {
                        continue
                    }
                    guard receiver == keepers[number] else { throw PluginError("wrong", "The object of another call.") }
                }
                return
            }
            defer { hasEnded.store(true, ordering: .relaxed) }
            for round in 0..<200_000 { try keepers[round % 2].perform("keep") }
        }
    }

    @Test func `A parent that has been released is skipped`() throws {
        var parent: Object? = try link("parent", parent: nil)
        let child = try link("child", parent: parent)
        parent = nil
        #expect(notes.all == ["parent is gone"])
        _ = try host.emit("links.up", from: child)
        #expect(notes.all == ["parent is gone", "child", "module Links: {}"])
    }

    @Test func `Handlers that emit within each other endlessly are stopped soon`() throws {
        let outcome = try host.emit("links.again", from: link("one"))
        #expect(outcome.isHandled || !outcome.failures.isEmpty)
        #expect(test.log.contains { $0.message.contains("recursionLimit") })
    }

    @Test func `A handler of the program that is dropped is no longer called`() throws {
        do {
            let handler = host.handle("links.nobody") { _ in .handled }
            #expect(try host.emit("links.nobody").isHandled)
            #expect(handler.event == "links.nobody")
        }
        #expect(try !host.emit("links.nobody").isHandled)
    }
}
