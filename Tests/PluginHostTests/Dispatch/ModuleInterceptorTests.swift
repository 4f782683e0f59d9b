import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Interceptors of modules, which the configuration names.
@Suite(.timeLimit(.minutes(30))) struct ModuleInterceptorTests {
    /// A module that offers interceptors of every kind.
    private static let guardian = Manifest("Guard", version: "1.0.0") {
        Target("Guard") {
            Action("seen") { seen.withLock { $0 } }
        }
        Intercept("measure") { call, next in
            seen.withLock { $0.append("\(call.target)/\(call.action) \(call.origin) \(call.route ?? "-")") }
            return try next(call)
        }
        Intercept("change") { call, next in
            var call = call
            call.parameters["b"] = 40
            return try next(call)
        }
        .summary("Makes every sum larger.")
        Intercept("answer") { call, _ in .string("answer to \(call.action)") }
        Intercept("refuse") { call, _ in throw PluginError("tired", "\(call.action) is refused.") }
        Intercept("fail") { _, _ in throw CancellationError() }
        Intercept("again") { call, next in
            for _ in 0..<2 {
                seen.withLock { $0.append("try \(call.action)") }
                if let value = try? next(call) { return value }
            }
            return try next(call)
        }
        Intercept("later") { call, next async throws -> Value in
            try await Task.sleep(for: .milliseconds(1))
            return ["later": try await next(call)]
        }
        Intercept("endless") { call, _ in
            try call.context.perform(call.target, call.action, Parameters(call.parameters))
        }
        Intercept("slow") { call, next in
            usleep(1_000_000)
            return try next(call)
        }
        Intercept("lazy") { call, next async throws -> Value in
            try? await Task.sleep(for: .seconds(600))
            return try await next(call)
        }
        Intercept("spend") { call, next in
            let value = try next(call)
            usleep(1_000_000)
            return value
        }
    }
    private static let seen = Mutex<[String]>([])

    let test: TestHost
    var host: PluginHost { test.host }

    init() throws {
        test = try TestHost.withSamples()
        try test.host.register(Self.guardian)
    }

    private func rule(_ name: String, _ scope: InterceptionScope, priority: Int = 0) -> InterceptorRule {
        InterceptorRule("Guard", name, for: scope, priority: priority)
    }

    @Test func `An interceptor of a module changes, answers, refuses and fails calls only if a rule names it`() throws {
        #expect(try host.perform("C", "add", [2, 3]) == 5)
        #expect(host.interceptors.isEmpty)
        try host.updateInterceptors([rule("change", .action("C", "add"))])
        #expect(try host.perform("C", "add", [2, 3]) == 42)
        try host.updateInterceptors([rule("answer", .target("Failing"))])
        #expect(try host.perform("C", "add", [2, 3]) == 5)
        #expect(try host.perform("Failing", "coded") == "answer to coded")
        try host.updateInterceptors([rule("refuse", .target("C"))])
        let refused = try test.failure("C", "add", [2, 3])
        #expect(refused.code == "tired" && refused.source == "Guard")
        try host.updateInterceptors([rule("fail", .target("C"))])
        #expect(try test.failure("C", "add", [2, 3]).source == "Guard")
        try host.updateInterceptors([])
        #expect(try host.perform("C", "add", [2, 3]) == 5)
    }

    @Test func `An interceptor of a module sees the caller and the route, and can retry`() async throws {
        try host.addRoute("app://measured/:a/:b", to: "C/add")
        try host.updateInterceptors([rule("measure", .route("app://measured/:x/:y"))])
        #expect(try await host.open("app://measured/1/2") == 3)
        #expect(try host.perform("C", "add", [1, 2]) == 3)
        #expect(Self.seen.withLock { $0.filter { $0.contains("measured") } } == ["C/add local app://measured/:a/:b"])
        try host.updateInterceptors([rule("again", .action("Failing", "coded"))])
        #expect(try test.failure("Failing", "coded").code == "outOfStock")
        try host.updateInterceptors([rule("measure", .all)])
        let passedOn = try test.failure("C", "add", ["a": "one"])
        #expect(passedOn.code == .mistypedParameter && passedOn.source == nil)
        let later = await #expect(throws: PluginError.self) { try await host.call("Nobody", "knows") }
        #expect(later?.code == .unknownTarget)
        #expect(Self.seen.withLock { $0.count { $0 == "try coded" } } == 2)
    }

    @Test func `The order is by priority, then by the list of rules, with interceptors of the program last`() throws {
        func nesting(_ rules: [InterceptorRule]) throws -> [String] {
            try host.updateInterceptors(rules)
            return host.interceptors.map { $0.name ?? "program" }
        }
        let all = InterceptionScope.target("C")
        let own = host.intercept(all) { call, next in .int(try next(call).int! + 1) }
        #expect(
            try nesting([rule("change", all), rule("measure", all, priority: 2), rule("again", all)])
                == ["measure", "change", "again", "program"])
        #expect(try host.perform("C", "add", [2, 3]) == 43)
        #expect(try nesting([rule("measure", all, priority: -1)]) == ["program", "measure"])
        own.remove()
    }

    @Test func `Both kinds of interceptors work with both kinds of actions`() async throws {
        let echo = InterceptionScope.target("Echo")
        try host.updateInterceptors([rule("again", echo), rule("later", echo), rule("measure", echo)])
        #expect(try await host.call("Echo", "any", ["x"]) == ["later": "x"])
        #expect(try await host.call("Echo", "nothingAsync") == ["later": nil])
        #expect(try test.failure("Echo", "any", ["x"]).code == .asynchronousAction)
        try host.updateInterceptors([rule("measure", .all), rule("change", .target("C"))])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                let host = host
                group.addTask {
                    let text = try await host.call("B", "slowly", ["text": .string("\(number)x")])
                    let overlap = try await host.call("Serial", "overlap", [1])
                    let sum = try host.perform("C", "add", [.int(number), 1])
                    #expect(text.string?.first == "x" && overlap == 0 && sum == .int(number + 40))
                }
            }
            try await group.waitForAll()
        }
        let error = await #expect(throws: PluginError.self) { try await host.call("Failing", "later") }
        #expect(error?.code == "outOfStock" && error?.source == "FixtureModule")
    }

    @Test func `An interceptor that calls what it intercepts ends at the depth limit`() async throws {
        try host.updateInterceptors([rule("endless", .target("C"))])
        #expect(try test.failure("C", "add", [1, 2]).code == .recursionLimit)
        let error = await #expect(throws: PluginError.self) { try await host.call("C", "add", [1, 2]) }
        #expect(error?.code == .recursionLimit)
    }

    @Test func `A serial module that intercepts a call which needs that module is a circular wait`() async throws {
        try host.register(
            Manifest("Doorman", version: "1.0.0") {
                Target("Doorman") {
                    Action("greet") { "welcome" }
                }
                Intercept("hold") { call, next in try next(call) }
            }
            .concurrency(.serial))
        try host.register(
            Manifest("Guest", version: "1.0.0") {
                Target("Guest") {
                    Action("enter", .context()) { context in try context.perform("Doorman", "greet") }
                    Action("enterLater", .context()) { (context) async throws -> Value in
                        try await context.call("Doorman", "greet")
                    }
                }
            })
        try host.updateInterceptors([InterceptorRule("Doorman", "hold", for: .target("Guest"))])
        #expect(try test.failure("Guest", "enter").code == .circularWait)
        for action in ["enter", "enterLater"] {
            let error = await #expect(throws: PluginError.self) { try await host.call("Guest", action) }
            #expect(error?.code == .circularWait)
        }
    }

    @Test func `Calls are refused while the interceptor's module is missing, or pass if the rule is optional`()
        async throws
    {
        var rule = rule("change", .target("C"))
        try host.updateInterceptors([rule])
        #expect(try host.perform("C", "add", [2, 3]) == 42)
        try host.unregister("Guard")
        let error = try test.failure("C", "add", [2, 3])
        #expect(error.code == .interceptorMissing && error.message.contains("change of Guard, for the target C"))
        let later = await #expect(throws: PluginError.self) { try await host.call("C", "add", [2, 3]) }
        #expect(later?.code == .interceptorMissing)
        #expect(host.interceptors.map(\.isMissing) == [true])
        rule.isOptional = true
        try host.updateInterceptors([rule])
        #expect(try host.perform("C", "add", [2, 3]) == 5)
        #expect(try await host.call("Echo", "nothingAsync") == nil)
        try host.register(Self.guardian)
        #expect(try host.perform("C", "add", [2, 3]) == 42)
        #expect(host.interceptors.map(\.isMissing) == [false])
    }

    @Test func `An interceptor that exceeds the deadline is named in the status, while it runs and afterwards`()
        async throws
    {
        try host.updateInterceptors([
            rule("slow", .target("C")), rule("spend", .target("Echo")), rule("lazy", .target("Later")),
        ])
        for (target, action, parameters) in [("C", "add", [1, 2] as Parameters), ("Echo", "any", ["x"])] {
            let error = #expect(throws: PluginError.self) {
                try host.perform(target, action, parameters, timeout: .milliseconds(500))
            }
            #expect(error?.code == .deadlineExceeded)
        }
        #expect(host.interceptors.map(\.overruns) == [1, 1, 0])
        #expect(host.interceptors.map(\.lastOverrun) == ["C/add", "Echo/any", nil])
        #expect(test.log.contains { $0.message.contains("slow of Guard, for the target C ran past the deadline") })

        let late = await #expect(throws: PluginError.self) {
            try await host.call("Later", "atOnce", timeout: .milliseconds(500))
        }
        #expect(late?.code == .deadlineExceeded)
        #expect(await becomesTrue { host.interceptors.last?.overruns == 1 })
        #expect(host.interceptors.last?.lastOverrun == "Later/atOnce")
        #expect(await becomesTrue { host.interceptors.allSatisfy { $0.overdueCalls.isEmpty } })

        let (began, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let own = host.intercept(.target("B")) { call, next in
            began.signal()
            mayEnd.wait()
            return try next(call)
        }
        let guarded = host
        async let call: [PluginError.Code?] = onThreads(1) { _ in
            do throws(PluginError) {
                try guarded.perform("B", "greet", ["x"], timeout: .milliseconds(500))
            } catch { return error.code }
            return nil
        }
        // The test must not block here: the other call begins on a thread of tasks.
        #expect(await becomesTrue { began.wait(timeout: .now()) == .success })
        #expect(await becomesTrue { host.interceptors.last?.overdueCalls == ["B/greet"] })
        mayEnd.signal()
        #expect(try await call == [.deadlineExceeded])
        #expect(host.interceptors.last?.overdueCalls == [] && host.interceptors.last?.overruns == 1)
        own.remove()
    }

    @Test func `Code that an interceptor calls past the deadline is named while it runs, and not afterwards`()
        async throws
    {
        let (began, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try host.updateInterceptors([rule("later", .target("Later"))])
        let own = host.intercept(.target("Later")) { call, next in
            began.signal()
            mayEnd.wait()
            mayEnd.signal()
            return try next(call)
        }
        // On a busy machine, the deadline may pass before the program's interceptor has begun.
        var timeout = Duration.milliseconds(200)
        repeat {
            let late = await #expect(throws: PluginError.self) {
                try await host.call("Later", "atOnce", timeout: timeout)
            }
            #expect(late?.code == .deadlineExceeded)
            timeout *= 2
        } while began.wait(timeout: .now()) != .success
        #expect(host.interceptors.map(\.overdueCalls) == [[], ["Later/atOnce"]])
        mayEnd.signal()
        #expect(await becomesTrue { host.interceptors.allSatisfy(\.overdueCalls.isEmpty) })
        own.remove()
    }

    @Test func `An interceptor cannot continue a call after it has ended`() throws {
        let module = CModule(
            name: "Keeper",
            body: """
                plugin_request request = plugin_request_object(kept, PLUGIN_STRING("call"), NULL, 0);
                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                return;
                """,
            moreManifest: "\"interceptors\": [{\"name\": \"keep\"}],",
            code: """
                static plugin_object kept;
                static void keep(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
                    (void)data, (void)count;
                    kept = arguments[1].as.object;
                    host->object_retain(host, kept);
                    reply(call, "kept");
                }
                """,
            moreFunctions: "{TEXT(\"~keep\"), keep, NULL}")
        let test = try TestHost([built("libModuleC.so"), module.build()])
        try test.host.updateInterceptors([InterceptorRule("Keeper", "keep", for: .target("C"))])
        #expect(try test.host.perform("C", "add", [1, 2]) == "kept")
        let error = try test.failure("Keeper", "answer")
        #expect(error.code == .cancelled && error.message.contains("has ended"))
    }

    @Test func `An interceptor in C changes a call and passes its outcome on`() throws {
        var module = CModule(
            name: "CGuard", moreManifest: "\"interceptors\": [{\"name\": \"add\"}, {\"name\": \"bad\"}],",
            moreFunctions: "{TEXT(\"~add\"), add, NULL}, {TEXT(\"~bad\"), bad, NULL}")
        module.code = """
            static void go_on(const plugin_call *call, plugin_object next, plugin_value parameters) {
                plugin_entry entry = {{NULL, 0}, parameters};
                plugin_request request =
                    plugin_request_object(next, PLUGIN_STRING(PLUGIN_INTERCEPTED_CONTINUE), &entry, 1);
                host->perform(host, call->token, &request, pass_on, (void *)call->token);
            }
            /* Passes 1 and 2, whatever the caller passed. */
            static void add(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
                (void)data, (void)count;
                plugin_entry given[2] = {{PLUGIN_STRING("a"), plugin_value_int(1)}, {PLUGIN_STRING("b"), plugin_value_int(2)}};
                go_on(call, arguments[1].as.object, plugin_value_map(given, 2));
            }
            /* Passes a value that is not a map. */
            static void bad(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
                (void)data, (void)count;
                go_on(call, arguments[1].as.object, plugin_value_int(3));
            }
            """
        let test = try TestHost([built("libModuleC.so"), module.build()]) {
            $0.interceptors = [InterceptorRule("CGuard", "add", for: .action("C", "add"))]
        }
        #expect(try test.host.perform("C", "add", [20, 30]) == 3)
        try test.host.updateInterceptors([InterceptorRule("CGuard", "bad", for: .action("C", "add"))])
        #expect(try test.failure("C", "add", [20, 30]).code == .mistypedParameter)
        #expect(test.host.modules.contains { $0.interceptors == ["add", "bad"] })
    }

    @Test func `Rules of which one is invalid are refused as a whole, and a host does not start with them`() throws {
        try host.updateInterceptors([rule("change", .target("C"))])
        let error = #expect(throws: PluginError.self) {
            try host.updateInterceptors([rule("measure", .all), rule("refuse", .route("app://x/(a"))])
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(host.interceptors.map(\.name) == ["change"])
        let other = try TestHost { configuration, _ in
            configuration.interceptors = [InterceptorRule("Guard", "refuse", for: .route("app://x/(a"))]
        }
        #expect(throws: PluginError.self) { try other.start() }
    }

    @Test func `Rules are read from JSON, and an error says what is wrong with one`() throws {
        #expect(
            try InterceptorRule(["module": "M", "interceptor": "i", "target": "T", "priority": 3, "optional": true])
                == InterceptorRule("M", "i", for: .target("T"), priority: 3, optional: true))
        #expect(
            try InterceptorRule(["module": "M", "interceptor": "i", "action": "T/a"])
                == InterceptorRule("M", "i", for: .action("T", "a")))
        #expect(
            try InterceptorRule(["module": "M", "interceptor": "i", "route": "app://x/:y"])
                == InterceptorRule("M", "i", for: .route("app://x/:y")))
        #expect(try InterceptorRule(["module": "M", "interceptor": "i"]) == InterceptorRule("M", "i"))
        let wrong: [(Value, String)] = [
            (1, "not an object"), (["module": "M"], "interceptor"), (["module": "M", "interceptor": 1], "strings"),
            (["module": "M", "interceptor": "i", "taget": "T"], "Did you mean “target”?"),
            (["module": "M", "interceptor": "i", "target": "T", "route": "/x"], "only one"),
            (["module": "M", "interceptor": "i", "action": "T"], "target/action"),
            (["module": "M", "interceptor": "i", "action": "T/"], "target/action"),
            (["module": "M", "interceptor": "i", "action": "/T/a"], "target/action"),
            (["module": "M", "interceptor": "i", "priority": "high"], "whole number"),
            (["module": "M", "interceptor": "i", "optional": 1], "true or false"),
            (["module": "M", "interceptor": "i", "route": "app://x/(a"], "is not valid"),
        ]
        for (value, text) in wrong {
            let error = #expect(throws: PluginError.self) { try InterceptorRule(value) }
            #expect(error?.code == .invalidConfiguration && error?.message.contains(text) == true, "\(value)")
        }
    }
}
