import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Objects of the program, with actions of the program.
@Suite struct ProgramObjectTests {
    let test: TestHost
    var host: PluginHost { test.host }

    init() throws { test = try TestHost.withFixture() }

    private final class Basket: Sendable {
        private let items = Mutex<[String]>([])

        func add(_ item: String) -> Int {
            items.withLock {
                $0.append(item)
                return $0.count
            }
        }
        var all: [String] { items.withLock { $0 } }
    }

    private func basket(_ basket: Basket = Basket()) throws -> Object {
        try host.object("Basket", basket) {
            Action("add", .instance(), .required("item", String.self), .optional("times", Int.self, default: 1)) {
                basket, item, times in
                for _ in 1..<times { _ = basket.add(item) }
                return basket.add(item)
            }
            Action("all", .instance()) { basket in basket.all }
            Action("slowly", .instance()) { basket in
                await Task.yield()
                return basket.all.count
            }
            Action("fail") { throw PluginError("full", "There is no more room.") }
            Action("itself", .context()) { context in context.receiver }
        }
    }

    @Test func `An object of the program has actions, which are checked and called like any`() async throws {
        let basket = try basket()
        #expect(try basket.perform("add", ["item": "pear"]) == 1)
        #expect(try basket.perform("add", ["apple", 2.0]) == 3)
        #expect(try basket.perform("all") == ["pear", "apple", "apple"])
        #expect(try await basket.call("slowly") == 3)
        #expect(try basket.perform("itself").get(Object.self) == basket)
        func failure(_ action: String, _ parameters: Parameters = [:]) -> PluginError? {
            #expect(throws: PluginError.self) { try basket.perform(action, parameters) }
        }
        #expect(failure("add")?.code == .missingParameter)
        #expect(failure("add", ["item": 5])?.code == .mistypedParameter)
        #expect(failure("slowly")?.code == .asynchronousAction)
        #expect(failure("fail") == PluginError("full", "There is no more room."))
        let unknown = failure("ad")
        #expect(unknown?.code == .unknownAction && unknown?.message.contains("Did you mean “add”?") == true)
    }

    @Test func `A module keeps an object of the program, calls it and returns it`() throws {
        let calls = Mutex<[Int]>([])
        let listener = try host.object("Listener", "ears") {
            Action("call", .instance(), .required("number", Int.self)) { name, number in
                calls.withLock { $0.append(number) }
                return name
            }
        }
        try host.perform("Callbacks", "call", ["callback": listener, "times": 3])
        #expect(calls.withLock { $0 } == [0, 1, 2])
        #expect(try host.perform("Echo", "object", ["value": listener]) == .object(listener))
    }

    @Test func `An object of the program lives until its last holder lets go of it`() throws {
        weak var held: Basket?
        var kept: Value?
        do {
            let content = Basket()
            held = content
            kept = try host.perform("Echo", "any", ["value": basket(content)])
        }
        #expect(held != nil)
        #expect(try kept?.get(Object.self).perform("add", ["pear"]) == 1)
        kept = nil
        #expect(held == nil)
    }

    @Test func `Objects that are declared alike keep their own instances and closures`() throws {
        let type = ObjectType("Number", Int.self) { Action("value", .instance()) { number in number } }
        let numbers = try (0..<100).map { try host.object(type, $0) }
        #expect(try numbers.map { try $0.perform("value").get(Int.self) } == Array(0..<100))
        let texts = try ["a", "b"].map { text in
            try host.object("Number", 5) { Action("value", .instance()) { number in "\(text)\(number)" } }
        }
        #expect(try texts.map { try $0.perform("value") } == ["a5", "b5"])
        #expect(try numbers[7].perform("value") == 7)
    }

    @Test func `A declaration with a wrong name is refused`() {
        let bad = #expect(throws: PluginError.self) { try host.object("Bad name", 1) { Action("value") { 1 } } }
        #expect(bad?.code == .invalidManifest && bad?.message.contains("\"Bad name\" is not allowed") == true)
        let twice = #expect(throws: PluginError.self) {
            try host.object("Twice", 1) {
                Action("value") { 1 }
                Action("value") { 2 }
            }
        }
        #expect(
            twice?.message
                == "In the declaration of an object type, type Twice: the action value is declared twice.")
    }

    @Test func `Objects of the program handle events, and have parents`() throws {
        let top = try host.object("Top", 1) {
            Action.handle("basket.full") { _, event in .handled(event["by"] ?? nil) }
        }
        let bottom = try host.object("Bottom", 2, parent: top) {
            Action("fill", .context()) { context in try context.emit("basket.full", ["by": "me"]).result }
        }
        #expect(try bottom.perform("fill") == "me")
        #expect(try host.emit("basket.full", from: bottom).handler == "Top#handle.basket.full")
    }

    @Test func `Objects of the program are listed while they have holders`() throws {
        let before = host.heldObjects.count
        let basket = try basket()
        withExtendedLifetime(basket) {
            #expect(host.heldObjects.contains { $0.module == nil && $0.type == "Basket" && $0.count == 1 })
        }
        _ = consume basket
        #expect(host.heldObjects.count == before)
    }

    // MARK: Conversion

    @Test func `An object converts from a value, as a parameter, in a list and as a typed result`() throws {
        try host.register(
            Manifest("Objects", version: "1.0.0") {
                Target("Objects") {
                    Action("first", .required("objects", [Object].self)) { objects in objects.first }
                    Action("same", .required("object", Object.self)) { object in object }
                    Action("named", .required("objects", [String: Object].self)) { objects in objects["a"] }
                }
            })
        let basket = try basket()
        #expect(try host.perform("Objects", "first", ["objects": [basket, basket]]).get(Object.self) == basket)
        #expect(try host.perform("Objects", "named", ["objects": ["a": basket]]).get(Object.self) == basket)
        let same: Object = try host.bind("Objects", "same")(basket)
        #expect(same == basket)
        #expect(try host.perform("Objects", "same", [basket]).result(of: "Objects/same", as: Object.self) == basket)
        let error = #expect(throws: PluginError.self) { try Value.int(1).get(Object.self) }
        #expect(error?.code == .mistypedParameter && error?.message.contains("an object was expected") == true)
    }
}
