import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Interceptors of the program.
@Suite(.timeLimit(.minutes(30))) struct InterceptorTests {
    let test: TestHost
    var host: PluginHost { test.host }

    init() throws { test = try TestHost.withSamples() }

    @Test func `An interceptor changes parameters, answers, refuses and measures`() throws {
        let seen = Mutex<[InterceptedCall]>([])
        let interceptor = host.intercept(.action("C", "add")) { call, next in
            seen.withLock { $0.append(call) }
            var call = call
            if call.parameters["a"] == 0 { return "answered" }
            if call.parameters["a"] == 1 { throw PluginError("tired", "Not today.") }
            call.parameters["b"] = 40
            return try next(call)
        }
        #expect(try host.perform("C", "add", [2, 3]) == 42)
        #expect(try host.perform("C", "add", ["a": 0]) == "answered")
        let error = try test.failure("C", "add", ["a": 1, "b": 1])
        #expect(error.code == "tired" && error.source == nil)
        let calls = seen.withLock { $0 }
        #expect(calls.count == 3 && calls[0].parameters == ["a": 2, "b": 3] && calls[0].origin == .local)
        #expect(calls[0].target == "C" && calls[0].action == "add" && calls[0].route == nil)
        interceptor.remove()
        #expect(try host.perform("C", "add", [2, 3]) == 5)
        #expect(try host.perform("C", "add", ["a": 0, "b": 0]) == 0)
    }

    @Test func `The order is by priority, then by registration`() throws {
        let order = Mutex<[String]>([])
        func note(_ name: String, _ priority: Int) {
            host.intercept(.all, priority: priority) { call, next in
                order.withLock { $0.append(name) }
                defer { order.withLock { $0.append("/" + name) } }
                return try next(call)
            }
        }
        note("c", 0)
        note("d", 0)
        note("a", 2)
        note("e", -1)
        note("b", 2)
        #expect(try host.perform("Echo", "any", ["x"]) == "x")
        #expect(order.withLock { $0 } == ["a", "b", "c", "d", "e", "/e", "/d", "/c", "/b", "/a"])
    }

    @Test func `The scope says which calls an interceptor sees`() async throws {
        let counts = Mutex<[String: Int]>([:])
        try host.addRoute("app://sum/:a/:b", to: "C/add")
        for scope: InterceptionScope in [.all, .target("C"), .action("Echo", "any"), .route("app://sum/:x/:y")] {
            host.intercept(scope) { call, next in
                counts.withLock { $0[scope.description, default: 0] += 1 }
                return try next(call)
            }
        }
        #expect(try host.perform("C", "add", [1, 2]) == 3)
        #expect(try host.perform("Echo", "any", [1]) == 1)
        #expect(try await host.open("app://sum/1/2") == 3)
        #expect(try await host.open("app://C/add?a=1&b=2", origin: .local) == 3)
        #expect(
            counts.withLock { $0 } == [
                "for all calls": 4, "for the target C": 3, "for Echo/any": 1,
                "for the route “app://sum/:x/:y”": 1,
            ])
    }

    @Test func `Calls of objects, between modules and of notFound are intercepted, but not callbacks`() throws {
        let seen = Mutex<[String]>([])
        host.intercept(.all) { call, next in
            seen.withLock { $0.append("\(call.target)/\(call.action)") }
            return try next(call)
        }
        let link = try #require(try host.perform("Callbacks", "link").object)
        #expect(try link.perform("number", [7]) == 7)
        #expect(try host.perform("C", "relay", ["name": "C"]) == "Hello, C!")
        _ = try host.perform("Lost", "gone")
        let callback = try #require(try host.perform("Callbacks", "make").object)
        #expect(try callback.perform("call", [1, 2]) == 2)
        #expect(
            seen.withLock { $0 } == [
                "Callbacks/link", "Link/number", "C/relay", "B/greet", "Lost/notFound", "Callbacks/make",
            ])
    }

    private final class Bell: Sendable {}

    /// Posts without awaiting, even from an asynchronous test.
    private func post(_ event: String, _ parameters: Parameters = [:]) throws -> EventOutcome {
        try host.post(event, parameters)
    }

    @Test func `An action is intercepted however it is addressed`() async throws {
        let seen = Mutex<[String]>([])
        host.intercept(.all) { call, next in
            seen.withLock { $0.append("\(call.target)/\(call.action)") }
            return try next(call)
        }
        try host.register(
            Manifest("Desk", version: "1.0.0") {
                Target("Desk", make: Bell.init) {
                    Action("ring", .instance()) { _ in 1 }
                }
                Target("Bare") {
                    Action("ring") { 1 }
                }
                Service("Shared", version: "1.0.0", target: "Desk", singleton: true)
                Service("Own", version: "1.0.0", target: "Desk")
                Service("Bare", version: "1.0.0", target: "Bare")
                Subscribe {
                    Action("desk.rang", .optional("n", Int.self)) { n in print(n as Any) }
                }
            })
        #expect(try host.perform("Desk", "ring") == 1)
        #expect(try await host.call("Desk", "ring") == 1)
        #expect(try await host.open("app://Desk/ring") == 1)
        #expect(try host.bind("Desk", "ring")() == 1)
        for service in ["Shared", "Own"] { #expect(try host.service(service).perform("ring") == 1) }
        #expect(seen.withLock { $0 } == Array(repeating: "Desk/ring", count: 6))
        #expect(try host.service("Bare").perform("ring") == 1)
        #expect(try await host.service("Bare").call("ring") == 1)
        #expect(try post("desk.rang", ["n": 1]).delivered == 1)
        #expect(try await host.post("desk.rang").delivered == 1)
        #expect(seen.withLock { $0.suffix(4) } == ["Bare/ring", "Bare/ring", "/desk.rang", "/desk.rang"])
    }

    @Test func `An interceptor of a subscriber can change, refuse and fail, and the poster gets the error`()
        async throws
    {
        let got = Mutex<[Int?]>([])
        try host.register(
            Manifest("Desk", version: "1.0.0") {
                Subscribe {
                    Action("desk.rang", .optional("n", Int.self)) { n in got.withLock { $0.append(n) } }
                }
            })
        let interceptors = [
            host.intercept(.event("desk.rang")) { call, next in
                var call = call
                if call.parameters["n"] == 0 { throw PluginError("quiet", "Not now.") }
                call.parameters["n"] = 7
                return try next(call)
            },
            host.intercept(.event("other")) { _, _ in throw PluginError("never", "It is for another event.") },
        ]
        #expect(try post("desk.rang", ["n": 1]) == EventOutcome(delivered: 1, failures: []))
        #expect(try await host.post("desk.rang") == EventOutcome(delivered: 1, failures: []))
        #expect(try post("desk.rang", ["n": 0]).failures.map(\.code) == ["quiet"])
        #expect(got.withLock { $0 } == [7, 7])
        interceptors[0].remove()
        let later = host.intercept(.event("desk.rang")) { call, next async throws -> Value in try await next(call) }
        // An asynchronous interceptor makes a subscriber asynchronous: its call is started but not awaited.
        #expect(try post("desk.rang", ["n": 2]) == EventOutcome(delivered: 1, failures: []))
        #expect(try await host.post("desk.rang", ["n": 3]).failures == [])
        #expect(await becomesTrue { got.withLock { $0.compactMap(\.self).sorted() } == [2, 3, 7, 7] })
        later.remove()
        // Handlers that post within each other are counted, but not their interceptors.
        host.intercept(.all) { call, next in try next(call) }
        let error = #expect(throws: PluginError.self) { try post("fixture.again") }
        #expect(error?.message.contains("within 8 nested handlers") == true)
    }

    @Test func `An interceptor can retry a call`() throws {
        let attempts = Mutex(0)
        host.intercept(.target("Failing")) { call, next in
            for _ in 0..<2 {
                attempts.withLock { $0 += 1 }
                if let value = try? next(call) { return value }
            }
            return try next(call)
        }
        let error = try test.failure("Failing", "coded")
        #expect(error.code == "outOfStock" && error.source == "FixtureModule")
        #expect(attempts.withLock { $0 } == 2)
    }

    @Test func `The caller gets the result of a later attempt`() throws {
        host.intercept(.action("C", "add")) { call, next in
            do {
                return try next(call)
            } catch let error as PluginError where error.code == .mistypedParameter {
                var call = call
                call.parameters["a"] = 1
                return try next(call)
            }
        }
        #expect(try host.perform("C", "add", ["a": "one", "b": 2]) == 3)
        #expect(try host.perform("C", "add", ["a": 2, "b": 2]) == 4)
    }

    @Test func `An asynchronous interceptor works with both kinds of actions, and perform refuses to wait`()
        async throws
    {
        host.intercept(.target("Echo")) { call, next async throws -> Value in
            try await Task.sleep(for: .milliseconds(1))
            let result = try await next(call)
            return ["result": result, "origin": .string("\(call.origin)")]
        }
        #expect(try await host.call("Echo", "any", ["x"]) == ["result": "x", "origin": "local"])
        #expect(try await host.call("Echo", "nothingAsync") == ["result": nil, "origin": "local"])
        let error = try test.failure("Echo", "any", ["x"])
        #expect(error.code == .asynchronousAction && error.message.contains("Echo/any"))
    }

    @Test func `A synchronous interceptor works with many asynchronous calls at a time`() async throws {
        let count = Mutex(0)
        host.intercept(.all) { call, next in
            let result = try next(call)
            count.withLock { $0 += 1 }
            return result
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask {
                    let text = "\(number)x"
                    let result = try await host.call("B", "slowly", ["text": .string(text)])
                    #expect(result == .string(String(text.reversed())))
                    try await host.call("Echo", "nothingAsync")
                    let overlap = try await host.call("Serial", "overlap", [1])
                    #expect(overlap == 0)
                }
            }
            try await group.waitForAll()
        }
        #expect(count.withLock { $0 } == 60)
        let error = await #expect(throws: PluginError.self) { try await host.call("Failing", "later") }
        #expect(error?.code == "outOfStock")
    }

    @Test func `A call that is refused to other programs does not reach an interceptor`() async throws {
        let count = Mutex(0)
        host.intercept(.all) { call, next in
            count.withLock { $0 += 1 }
            #expect(call.origin == .remote)
            return try next(call)
        }
        let error = await #expect(throws: PluginError.self) {
            try await host.open("app://Echo/nothing", origin: .remote)
        }
        #expect(error?.code == .noRoute && count.withLock { $0 } == 0)
        #expect(try await host.open("app://B/greet?name=x", origin: .remote) == "Hello, x!")
        #expect(count.withLock { $0 } == 1)
    }

    @Test func `An interceptor that calls what it intercepts ends at the depth limit, in both forms`() async throws {
        let host = host
        host.intercept(.action("C", "add")) { _, _ in try host.perform("C", "add", [1, 2]) }
        #expect(try test.failure("C", "add", [1, 2]).code == .recursionLimit)
        host.intercept(.action("Echo", "nothingAsync")) { _, _ async throws -> Value in
            try await host.call("Echo", "nothingAsync")
        }
        let error = await #expect(throws: PluginError.self) { try await host.call("Echo", "nothingAsync") }
        #expect(error?.code == .recursionLimit)
    }

    @Test func `The deadline ends a call whose interceptor still runs, and the log names the interceptor`()
        async throws
    {
        host.intercept(.target("C")) { call, next in
            usleep(1_000_000)
            return try next(call)
        }
        let error = #expect(throws: PluginError.self) {
            try host.perform("C", "add", [1, 2], timeout: .milliseconds(500))
        }
        #expect(error?.code == .deadlineExceeded)
        #expect(test.log.contains { $0.message.contains("for the target C ran past the deadline of a call of C/add") })
        host.intercept(.target("Later")) { call, next async throws -> Value in
            try? await Task.sleep(for: .seconds(600))
            return try await next(call)
        }
        let late = await #expect(throws: PluginError.self) {
            try await host.call("Later", "atOnce", timeout: .milliseconds(500))
        }
        #expect(late?.code == .deadlineExceeded)
        #expect(await becomesTrue { test.log.contains { $0.message.contains("for the target Later ran past") } })
    }

    @Test func `Cancelling a call reaches the action through its interceptors`() async throws {
        let host = host
        host.intercept(.action("Later", "untilCancelled")) { call, next in try next(call) }
        host.intercept(.action("Later", "untilCancelled")) { call, next async throws -> Value in try await next(call) }
        let task = Task { try await host.call("Later", "untilCancelled") }
        #expect(await becomesTrue { (try? host.perform("Later", "begun")) == 1 })
        task.cancel()
        await #expect(throws: PluginError.self) { try await task.value }
        #expect(await becomesTrue { (try? host.perform("Later", "cancelled")) == 1 })
    }

    @Test func `Interceptors can be added and removed while calls run`() async throws {
        let host = host
        let isOver = Mutex(false)
        async let changes: [Void] = onThreads(1) { _ in
            while !isOver.withLock({ $0 }) {
                let token = host.intercept(.all) { call, next in try next(call) }
                token.remove()
            }
        }
        defer { isOver.withLock { $0 = true } }
        _ = try await onThreads(3) { _ in
            for number in 0..<2000 {
                let sum = try host.perform("C", "add", [.int(number), 1])
                #expect(sum == .int(number + 1))
            }
        }
        isOver.withLock { $0 = true }
        _ = try await changes
    }

    @Test func `Every path to an action leads through its interceptors`() async throws {
        let fixture = try TestHost.withFixture()
        let (host, own) = (fixture.host, test.host)
        let seen = Mutex<[String]>([])
        @Sendable func note(_ call: InterceptedCall) { seen.withLock { $0.append("\(call.target)/\(call.action)") } }
        func taken() -> [String] {
            seen.withLock { seen in
                defer { seen = [] }
                return seen
            }
        }
        host.intercept(.all) { call, next in
            note(call)
            return try next(call)
        }
        own.intercept(.target("A")) { call, next in
            note(call)
            return try next(call)
        }
        let echo = host.bind("Echo", "int")
        let same: Int = try echo(3)
        #expect(same == 3 && taken() == ["Echo/int"])
        try echo.perform([4])
        _ = try await echo.call([5])
        #expect(taken() == ["Echo/int", "Echo/int"])
        let link = try #require(host.perform("Callbacks", "link").object)
        #expect(try link.perform("number", [7]) == 7)
        #expect(taken() == ["Callbacks/link", "Link/number"])
        #expect(try await host.post("fixture.sync").delivered == 1)
        func postOnly() throws { try host.post("fixture.sync") }
        try postOnly()
        #expect(taken() == ["/fixture.sync", "/fixture.sync"])
        #expect(try own.service("HomeService").perform("fetchDetail", ["key": "1"]) != .null)
        #expect(taken() == ["A/fetchDetail"])
    }

    @Test func `An asynchronous interceptor of all calls does not delay events that are posted without waiting`()
        async throws
    {
        let fixture = try TestHost.withFixture()
        let passed = Mutex(0)
        fixture.host.intercept(.all) { call, next async throws in
            await Task.yield()
            passed.withLock { $0 += 1 }
            return try await next(call)
        }
        func postOnly() throws { try fixture.host.post("fixture.sync") }
        try postOnly()
        #expect(await becomesTrue { fixture.log.contains { $0.message == "sync nothing" } })
        #expect(passed.withLock { $0 } == 1)
        #expect(try await fixture.host.post("fixture.sync").failures.isEmpty)
    }
}
