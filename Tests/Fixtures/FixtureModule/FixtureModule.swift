import Glibc
import PluginABI
import Synchronization

/// Behaviour that tests need and the sample modules do not show.
struct FixtureModule: Module {
    static let manifest = Manifest("FixtureModule", version: "1.0.0") {
        Target("Echo") {
            Action("any", .required("value", Value.self)) { value in value }
            Action("bool", .required("value", Bool.self)) { value in value }
            Action("int", .required("value", Int.self)) { value in value }
            Action("small", .required("value", Int8.self)) { value in value }
            Action("double", .required("value", Double.self)) { value in value }
            Action("string", .required("value", String.self)) { value in value }
            Action("bytes", .required("value", Bytes.self)) { value in value }
            Action("list", .required("value", [Value].self)) { value in value }
            Action("map", .required("value", [String: Value].self)) { value in value }
            Action("object", .required("value", Object.self)) { value in value }
            Action("shape", .required("value", Shape.self)) { shape in
                Shape(corners: shape.corners.reversed(), color: shape.color)
            }
            Action("color", .required("value", Color.self)) { color in color }
            Action("nothing") {}
            Action("nothingAsync") { try await Task.sleep(for: .milliseconds(1)) }
            Action(
                "defaults", .optional("a", Int.self, default: 7), .optional("b", String.self),
                .optional("c", Value.self), .optional("d", [Int].self, default: [1, 2])
            ) { a, b, c, d -> Value in
                ["a": .int(a), "b": b.map { .string($0) } ?? "none", "c": c ?? "none", "d": .list(d.map { .int($0) })]
            }
            Action(
                "eight", .required("p1", Int.self), .required("p2", Int.self), .required("p3", Int.self),
                .required("p4", Int.self), .required("p5", Int.self), .required("p6", Int.self),
                .required("p7", Int.self), .required("p8", Int.self)
            ) { p1, p2, p3, p4, p5, p6, p7, p8 in [p1, p2, p3, p4, p5, p6, p7, p8] }
        }

        Target("Open") {
            Action("search", .required("text", String.self), .optional("page", Int.self, default: 1), .rest()) {
                text, page, rest -> Value in ["text": .string(text), "page": .int(page), "rest": .map(rest)]
            }
            .remote()
            Action("all", .rest()) { rest -> Value in .map(rest) }.remote()
            Action("first", .rest(), .required("text", String.self)) { rest, text -> Value in
                ["text": .string(text), "rest": .map(rest)]
            }
            Action("later", .required("text", String.self), .rest()) { text, rest async -> Value in
                await Task.yield()
                return ["text": .string(text), "rest": .map(rest)]
            }
            Action("link", .context()) { context in try context.object("OpenLink", Link()) }
        }
        Target("OpenSerial", make: Made.init) {
            Action("all", .instance(), .rest()) { _, rest -> Value in .map(rest) }
            Action("later", .instance(), .rest()) { _, rest async -> Value in
                await Task.yield()
                return .map(rest)
            }
        }
        .concurrency(.serial)
        ObjectType("OpenLink", Link.self) {
            Action("all", .instance(), .rest()) { _, rest -> Value in .map(rest) }
        }
        Service("Opening", version: "1.0.0", target: "OpenSerial")
        Target("OpenLost") {
            Action("notFound", .required("action", String.self), .rest()) { action, rest -> Value in
                ["action": .string(action), "rest": .map(rest)]
            }
        }

        Target("Failing") {
            Action("coded") { () throws -> Int in throw PluginError("outOfStock", "There are no more.") }
            Action("plain") { () throws -> Int in throw PlainError.bad }
            Action("later") { () async throws -> Int in throw PluginError("outOfStock", "There are no more.") }
            Action("tooBig") { UInt64.max }
            Action("trap", .required("word", String.self)) { word in
                let numbers = [word.utf8.count]
                return numbers[word == "really" ? 1 : 0]
            }
        }

        Target("Shared", make: Made.init) {
            Action("number", .instance()) { made in made.number }
            Action("later", .instance()) { made in
                await Task.yield()
                return made.number
            }
        }
        Target("PerCall", make: Made.init) {
            Action("number", .instance()) { made in made.number }
        }
        .instancePerCall()
        Target("Unmakeable", make: { () throws -> Made in throw PluginError("noMoney", "It costs too much.") }) {
            Action("number", .instance()) { made in made.number }
            Action("later", .instance()) { made in
                await Task.yield()
                return made.number
            }
        }
        .concurrency(.serial)
        Target("Selfish", make: { context in try Made(context.perform("Selfish", "number")) }) {
            Action("number", .instance()) { made in made.number }
        }

        Target("Later") {
            Action("keep", .reply(Int.self)) { reply in kept.withLock { $0.append(reply) } }
            Action("kept") { kept.withLock { $0.count } }
            Action("resolveKept", .required("value", Int.self)) { value in
                for reply in takeKept() { reply.resolve(value) }
            }
            Action("rejectKept") {
                for reply in takeKept() { reply.reject(PluginError("rejected", "No.")) }
            }
            Action("dropKept") { takeKept().count }
            Action("atOnce", .reply(Int.self)) { reply in reply.resolve(1) }
            Action("twice", .reply(Int.self)) { reply in
                reply.resolve(1)
                reply.resolve(2)
            }
            Action("untilCancelled") {
                begun.add(1, ordering: .relaxed)
                do { try await Task.sleep(for: .seconds(3600)) } catch {
                    cancelled.add(1, ordering: .relaxed)
                    throw error
                }
            }
            Action("occupy") { () async in
                // Each priority has its own threads.
                for priority in [TaskPriority.high, .low] { Task(priority: priority) { sleepOnThread(600) } }
                begun.add(1, ordering: .relaxed)
                sleepOnThread(600)
            }
            Action("begun") { begun.load(ordering: .relaxed) }
            Action("cancelled") { cancelled.load(ordering: .relaxed) }
        }

        Target("Serial") {
            Action("overlap", .required("microseconds", Int.self)) { microseconds in overlap.enter(microseconds) }
            Action("overlapLater", .required("microseconds", Int.self)) { microseconds in
                let seen = overlap.begin()
                defer { overlap.end() }
                try await Task.sleep(for: .microseconds(microseconds))
                return seen
            }
            Action("inner", .context()) { context in try context.perform("Serial", "overlap", [0]) }
        }
        .concurrency(.serial)

        Target("Chain") {
            Action("forever", .context()) { context in try context.perform("Chain", "forever") }
            Action("foreverLater", .context()) { context in try await context.call("Chain", "foreverLater") }
            Action("viaObject", .context()) { context in
                try context.object("Link", Link()).perform("again", in: context)
            }
            Action("viaCallback", .context()) { context in
                let callback = context.callback { _ in try context.perform("Chain", "viaCallback") }
                return try callback()
            }
            Action("forward", .context(), .required("target", String.self), .required("action", String.self)) {
                context, target, action in try context.perform(target, action)
            }
            Action("forwardLater", .context(), .required("target", String.self), .required("action", String.self)) {
                context, target, action in try await context.call(target, action)
            }
            Action("waits", .context()) { context in
                try context.performAndWait("Echo", "nothingAsync", timeout: .seconds(600))
            }
        }
        ObjectType("Link", Link.self) {
            Action("again", .context()) { context in try context.perform("Chain", "viaObject") }
            Action("number", .instance(), .required("n", Int.self)) { _, n in n }
        }

        Target("Callbacks") {
            Action("make", .context()) { context in
                let callback = context.callback { arguments in .int(arguments.count) }
                return callback
            }
            Action("call", .required("callback", Callback.self), .required("times", Int.self)) { callback, times in
                for number in 0..<times { try callback(.int(number)) }
            }
            Action("link", .context()) { context in try context.object("Link", Link()) }
        }

        Target("Lost") {
            Action("known") { true }
            Action("notFound", .required("action", String.self), .required("parameters", Value.self)) {
                action, parameters -> Value in ["action": .string(action), "parameters": parameters]
            }
        }
        Target("LostForever") {
            Action(
                "notFound", .context(), .required("action", String.self), .required("parameters", Value.self)
            ) { context, _, _ in try context.perform("LostForever", "gone") }
        }

        Intercept("mark") { call, next in ["marked": try next(call)] }
        Intercept("linger") { call, next in
            let deadline = ContinuousClock.now + .milliseconds(50)
            while ContinuousClock.now < deadline {}
            return try next(call)
        }

        Subscribe {
            Action("fixture.sync", .context(), .optional("item", String.self)) { context, item in
                context.log(.info, "sync \(item ?? "nothing")")
            }
            Action("fixture.async", .context(), .optional("item", String.self)) { context, item in
                // If the item is a path, the file must exist first.
                repeat {
                    try await Task.sleep(for: .milliseconds(10))
                } while item?.first == "/" && access(item!, F_OK) != 0
                context.log(.info, "async \(item ?? "nothing")")
            }
            Action("host.suspended", .context()) { context in context.log(.info, "heard that it is suspended") }
            Action("host.resumed", .context()) { context in context.log(.info, "heard that it goes on") }
            Action("fixture.fails") { () async throws in throw PluginError("outOfStock", "There are no more.") }
            Action("fixture.again", .context()) { context in try context.post("fixture.again") }
            Action("fixture.swallows", .context()) { context in
                for _ in 1...2 { _ = try? context.post("fixture.swallows") }
            }
            Action("fixture.againLater", .context()) { context in try await context.post("fixture.againLater") }
        }
        Target("Poster") {
            Action("post", .context(), .required("event", String.self)) { context, event in
                let outcome = try context.post(event, ["item": "tea"])
                return outcome.delivered
            }
        }

        Target("About") {
            Action("configuration", .context()) { context -> Value in .map(context.configuration) }
            Action("program", .context()) { context -> Value in
                let program = context.hostContext
                return [
                    "environment": .string(program.environment), "tenant": program["tenant"] ?? .null,
                    "arguments": .int(program.arguments.count), "launchTime": .double(program.launchTime),
                ]
            }
            Action("folder", .context()) { context in context.folder }
        }
    }
}

@_cdecl("plugin_module_entry")
public func entry() -> UnsafePointer<plugin_module> { FixtureModule.export() }

struct Point: ValueCodable, Equatable {
    var x: Int
    var y: Double?
}

struct Shape: ValueCodable {
    var corners: [Point]
    var color: Color
}

enum Color: String, ValueCodable { case red, green }

enum PlainError: Error { case bad }

/// Counts the instances that were made.
final class Made: Sendable {
    let number: Int
    private static let count = Atomic(0)

    init() { number = Self.count.add(1, ordering: .relaxed).newValue }
    init(_ value: Value) throws { number = try value.get(Int.self) }
}

final class Link: Sendable {}

let kept = Mutex<[Reply<Int>]>([])
let begun = Atomic(0)
let cancelled = Atomic(0)
let overlap = Overlap()

/// Blocks a thread of the pool, so that no other task can use it.
func sleepOnThread(_ seconds: UInt32) { sleep(seconds) }

func takeKept() -> [Reply<Int>] {
    kept.withLock { replies in
        defer { replies = [] }
        return replies
    }
}

/// Detects calls that run at the same time.
final class Overlap: Sendable {
    private let inside = Atomic(0)

    /// Returns how many calls were already inside.
    func begin() -> Int { inside.add(1, ordering: .acquiringAndReleasing).oldValue }
    func end() { inside.subtract(1, ordering: .acquiringAndReleasing) }

    func enter(_ microseconds: Int) -> Int {
        let seen = begin()
        let clock = ContinuousClock()
        let end = clock.now + .microseconds(microseconds)
        while clock.now < end {}
        self.end()
        return seen
    }
}
