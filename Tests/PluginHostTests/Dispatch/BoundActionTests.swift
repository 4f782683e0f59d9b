import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Actions whose names are resolved once.
@Suite(.timeLimit(.minutes(30))) struct BoundActionTests {
    /// A module whose action `Clock/hour` returns a number.
    private func clock(_ hour: Int) -> Manifest {
        Manifest("Clock", version: "1.0.0") {
            Target("Clock") {
                Action("hour", .optional("plus", Int.self, default: 0)) { plus in hour + plus }
            }
        }
    }

    /// The outcomes of the same call made by name and as a bound action, in a form that can be compared.
    private func outcomes(
        _ host: PluginHost, _ target: String, _ action: String, _ parameters: Parameters = [:]
    ) -> [Result<Value, PluginError>] {
        let bound = host.bind(target, action)
        return [{ try host.perform(target, action, parameters) }, { try bound.perform(parameters) }]
            .map { (call: () throws -> Value) in Result(catching: call).mapError { $0 as! PluginError } }
    }

    @Test func `A bound call has the results and the errors of a call by name`() async throws {
        let test = try TestHost.withSamples()
        let calls: [(String, String, Parameters)] = [
            ("C", "add", [1, 2]), ("C", "add", ["b": 1, "a": 4]), ("C", "add", [1]), ("C", "add", [1, 2, 3]),
            ("C", "add", ["a": 1, "c": 2]), ("C", "add", [1, 2.5]), ("Echo", "defaults", [:]),
            ("Failing", "coded", [:]),
            ("Failing", "plain", [:]), ("Failing", "tooBig", [:]), ("Later", "atOnce", [:]), ("Lost", "gone", [:]),
            ("Unmakeable", "number", [:]), ("C", "ad", [1, 2]), ("Nobody", "knows", [:]),
            ("", "", [:]),
        ]
        for (target, action, parameters) in calls {
            let both = outcomes(test.host, target, action, parameters)
            #expect(both[0] == both[1], "\(target)/\(action)")
        }
        let later = test.host.bind("Later", "atOnce")
        #expect(try await later.call() == 1)
        #expect(try await test.host.bind("Failing", "later").failure?.code == "outOfStock")
    }

    @Test func `A typed call takes and returns Swift values, and a result of another type is an error`() throws {
        let test = try TestHost.withSamples()
        let (add, any) = (test.host.bind("C", "add"), test.host.bind("Echo", "any"))
        let sum: Int = try add(2, 3)
        let text: String = try any("a text that is too long to be kept in a word")
        let list: [Int] = try any([1, 2, 3])
        let number: Double = try any(2)
        let nothing: Value = try test.host.bind("Echo", "nothing")()
        let eight: Value = try any(["a": Value.null])
        #expect(sum == 5 && text.hasPrefix("a text") && list == [1, 2, 3] && number == 2)
        #expect(nothing == .null && eight == ["a": nil])
        let wrong = #expect(throws: PluginError.self) { let _: Int = try any("five") }
        #expect(wrong?.code == .invalidResult && wrong?.message.contains("Echo/any") == true)
        let tooBig = #expect(throws: PluginError.self) { let _: Int = try add(2, UInt64.max) }
        #expect(tooBig?.code == .invalidValue)
        let missing = #expect(throws: PluginError.self) { let _: Int = try test.host.bind("Echo", "int")() }
        #expect(missing?.code == .missingParameter)
    }

    @Test func `An action that is bound before its module is added works from then until the module is removed`()
        throws
    {
        let test = try TestHost()
        let hour = test.host.bind("Clock", "hour")
        for now in 1...3 {
            let missing = outcomes(test.host, "Clock", "hour")
            #expect(throws: PluginError.self) { try missing[1].get() }
            #expect(missing[0] == missing[1])
            try test.host.register(clock(now))
            #expect(try hour.perform() == .int(now))
            #expect(try hour(10) == now + 10)
            #expect(try hour.perform(["plus": 1]) == .int(now + 1))
            try test.host.unregister("Clock")
        }
        test.host.shutdown()
        #expect(throws: PluginError.self) { try hour.perform() }
        let stopped = outcomes(test.host, "Clock", "hour")
        #expect(stopped[0] == stopped[1])
    }

    @Test func `A bound call goes to the version that serves`() throws {
        let test = try TestHost()
        try CModule(version: "1.0.0", answer: "old").build(into: test.plugins, as: "1.so")
        try test.start()
        let answer = test.host.bind("Good", "answer")
        #expect(try answer() == "old")
        try CModule(version: "2.0.0", answer: "new").build(into: test.plugins, as: "2.so")
        #expect(eventually { test.answer() == "new" })
        #expect(try answer() == "new")
    }

    @Test func `While the registry changes, bound calls of many threads use one of its states`() async throws {
        let test = try TestHost.withSamples()
        let host = test.host
        let (hour, add) = (host.bind("Clock", "hour"), host.bind("C", "add"))
        let isOver = Mutex(false)
        let published = Mutex(0)
        async let changes: [Void] = onThreads(1) { _ in
            defer { isOver.withLock { $0 = true } }
            for number in 1...200 {
                try host.register(clock(number))
                published.withLock { $0 = number }
                try host.unregister("Clock")
            }
        }
        let seen = try await onThreads(3) { _ in
            var seen = 0
            var last = 0
            while !isOver.withLock({ $0 }) {
                let sum: Int = try add(last, 1)
                #expect(sum == last + 1)
                let before = published.withLock { $0 }
                do throws(PluginError) {
                    last = try hour()
                    seen += 1
                    #expect(last >= before)
                } catch {
                    #expect(error.code == .unknownTarget)
                }
            }
            return seen
        }
        _ = try await changes
        #expect(seen.reduce(0, +) > 0)
    }

    @Test func `Bound calls pass interceptors and serial targets, and endless ones are detected`() async throws {
        let test = try TestHost.withSamples()
        let host = test.host
        let add = host.bind("C", "add")
        #expect(try add(1, 2) == 3)
        let interceptor = host.intercept(.action("C", "add")) { call, next in .int(try next(call).int! * 10) }
        #expect(try add(1, 2) == 30)
        interceptor.remove()
        #expect(try add(1, 2) == 3)

        let endless = host.intercept(.action("C", "add")) { _, _ in try add.perform([1, 2]) }
        let error = #expect(throws: PluginError.self) { try add.perform([1, 2]) }
        #expect(error?.code == .recursionLimit)
        endless.remove()

        let overlap = host.bind("Serial", "overlap")
        let overlaps = try await onThreads(4) { thread in
            try (0..<5).map { _ in thread < 2 ? try overlap(1) : try overlap.perform([1]).int }
        }
        #expect(overlaps.joined().allSatisfy { $0 == 0 })
    }

    @Test func `A deadline and a cancelled task end a bound call`() async throws {
        let test = try TestHost.withFixture()
        let later = test.host.bind("Later", "untilCancelled")
        let late = await #expect(throws: PluginError.self) { try await later.call(timeout: .milliseconds(20)) }
        #expect(late?.code == .deadlineExceeded)
        let task = Task { try await later.call() }
        task.cancel()
        let cancelled = await #expect(throws: PluginError.self) { try await task.value }
        #expect(cancelled?.code == .cancelled)
    }

    @Test func `A Swift module can bind actions of others, and the chain of calls is known`() throws {
        let test = try TestHost.withSamples()
        let sums = Mutex<[BoundAction]>([])
        try test.host.register(
            Manifest("Adder", version: "1.0.0") {
                Target("Adder") {
                    Action("twice", .context(), .required("n", Int.self)) { (context, n) throws -> Int in
                        let add = sums.withLock { sums in
                            if sums.isEmpty { sums.append(context.bind("C", "add")) }
                            return sums[0]
                        }
                        return try add(n, n)
                    }
                    Action("endless", .context()) { (context) throws -> Value in
                        try context.bind("Adder", "endless").perform(in: context)
                    }
                    Action("endlessTyped", .context()) { (context) throws -> Int in
                        try context.bind("Adder", "endlessTyped")()
                    }
                }
            })
        for n in 0..<3 { #expect(try test.host.perform("Adder", "twice", [.int(n)]) == .int(2 * n)) }
        #expect(try test.failure("Adder", "endless").code == .recursionLimit)
        #expect(try test.failure("Adder", "endlessTyped").code == .recursionLimit)
    }

    @Test func `A C module can bind actions through the host's table`() throws {
        let module = CModule(
            name: "Binder", code: "static plugin_bound_action bound;",
            targets: [
                .init(
                    name: "Binder",
                    actions: [
                        .init(
                            name: "bind", parameters: ["target": "string", "action": "string"],
                            body: """
                                const plugin_bound *table = host->get_extension(host, PLUGIN_STRING(PLUGIN_BOUND_EXTENSION));
                                plugin_string target = {arguments[0].as.string, arguments[0].count};
                                plugin_string action = {arguments[1].as.string, arguments[1].count};
                                bound = table->bind(host, target, action);
                                reply_int(call->token, bound == table->bind(host, target, action) && bound != 0);
                                """),
                        .init(
                            name: "call", parameters: ["a": "int", "b": "int"],
                            body: """
                                plugin_entry entries[2] = {{{0, 0}, arguments[0]}, {{0, 0}, arguments[1]}};
                                plugin_request request = {.size = sizeof request, .address = PLUGIN_ADDRESS_BOUND,
                                    .object = bound, .parameters = entries, .parameter_count = 2};
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "callNumber", parameters: ["number": "int"],
                            body: """
                                plugin_request request = {.size = sizeof request, .address = PLUGIN_ADDRESS_BOUND,
                                    .object = (uint64_t)arguments[0].as.integer};
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "bindNonsense",
                            body: """
                                const plugin_bound *table = host->get_extension(host, PLUGIN_STRING(PLUGIN_BOUND_EXTENSION));
                                plugin_string missing = {0, 3};
                                reply_int(call->token, (int64_t)(table->bind(host, text("\\xff"), text("x"))
                                    + table->bind(host, missing, text("x"))));
                                """),
                    ])
            ])
        let test = try TestHost([built("libModuleC.so"), module.build()])
        #expect(try test.host.perform("Binder", "bind", ["C", "add"]) == 1)
        #expect(try test.host.perform("Binder", "call", [20, 22]) == 42)
        #expect(try test.host.perform("Binder", "bindNonsense") == 0)
        for number in [0, 1_000, 131_072, -1] {
            let error = try test.failure("Binder", "callNumber", [.int(number)])
            #expect(error.code == .invalidValue && error.message.contains("bound action"))
        }
    }

    /// Performs bound actions with a place for the result. Its actions reply with a list: the return value of the
    /// host's function, what the completion received (1 for each result, 100 for each error), and the content of the
    /// place, which is true before the call.
    private let placer = CModule(
        name: "Placer",
        code: """
            static int64_t told;
            static void tell(void *place, const plugin_value *value, const plugin_error *error) {
                told += error ? 100 : 1;
                if (value && place && value->kind <= PLUGIN_KIND_DOUBLE) *(plugin_value *)place = *value;
            }
            static void place(const plugin_call *call, plugin_bound_action bound, const plugin_value *arguments,
                              uint32_t count, int has_place, plugin_completion completion) {
                const plugin_bound *table = host->get_extension(host, PLUGIN_STRING(PLUGIN_BOUND_EXTENSION));
                plugin_value result = plugin_value_bool(1);
                told = 0;
                int returned = table->perform(host, bound, arguments, count, has_place ? &result : 0, completion,
                                              has_place ? &result : 0);
                plugin_value values[] = {plugin_value_int(returned), plugin_value_int(told), result};
                reply_value(call->token, plugin_value_list(values, 3));
            }
            static plugin_bound_action bind(plugin_string target, plugin_string action) {
                const plugin_bound *table = host->get_extension(host, PLUGIN_STRING(PLUGIN_BOUND_EXTENSION));
                return table->bind(host, target, action);
            }
            """,
        targets: [
            .init(
                name: "Placer",
                actions: [
                    .init(
                        name: "perform", parameters: ["target": "string", "action": "string", "arguments": "list"],
                        body: """
                            plugin_string target = {arguments[0].as.string, arguments[0].count};
                            plugin_string action = {arguments[1].as.string, arguments[1].count};
                            place(call, bind(target, action), arguments[2].as.list, arguments[2].count, 1, tell);
                            """),
                    .init(name: "number", body: "reply_int(call->token, (int64_t)bind(text(\"C\"), text(\"add\")));"),
                    .init(
                        name: "inPlace", parameters: ["n": "int"],
                        body: "plugin_reply(host, call, plugin_value_int(arguments[0].as.integer + 1));"),
                    .init(
                        name: "byCall", parameters: ["n": "int"],
                        body: "reply_int(call->token, arguments[0].as.integer + 1);"),
                    .init(
                        name: "length", parameters: ["text": "string"],
                        body: "plugin_reply(host, call, plugin_value_int(arguments[0].count));"),
                    .init(name: "nonsense", body: "call->result->kind = 77;"),
                    .init(name: "nothing", body: ""),
                    .init(
                        name: "broken", parameters: ["how": "int"],
                        body: """
                            plugin_bound_action next = bind(text("Placer"), text("inPlace"));
                            plugin_bound_action length = bind(text("Placer"), text("length"));
                            plugin_value one = plugin_value_int(1), unknown = {99, 0, {0}};
                            plugin_value broken = plugin_value_string("\\xff", 1), missing = plugin_value_string(0, 5);
                            switch (arguments[0].as.integer) {
                            case 0: place(call, next, 0, 1, 1, tell); break;
                            case 1: place(call, next, 0, 1 << 21, 1, tell); break;
                            case 2: place(call, next, &one, 1 << 21, 1, tell); break;
                            case 3: place(call, next, &unknown, 1, 1, tell); break;
                            case 4: place(call, 1000000, &one, 1, 1, tell); break;
                            case 5: place(call, length, &broken, 1, 1, tell); break;
                            case 6: place(call, length, &missing, 1, 1, tell); break;
                            case 7: place(call, next, &one, 1, 0, tell); break;
                            case 8: place(call, next, &one, 1, 1, 0); break;
                            default: place(call, next, &unknown, 1, 0, 0);
                            }
                            """),
                ])
        ])

    @Test func `A bound call writes its result in place or calls the completion, and only once`() throws {
        let test = try TestHost([built("libFixtureModule.so"), placer.build()])
        let cases: [(String, String, [Value], Value)] = [
            ("Placer", "inPlace", [4], [1, 0, 5]), ("Placer", "byCall", [4], [0, 1, 5]),
            ("Placer", "inPlace", [4.0], [0, 1, 5]), ("Placer", "inPlace", [], [0, 100, true]),
            ("Placer", "inPlace", [4, 4], [0, 100, true]), ("Placer", "inPlace", ["4"], [0, 100, true]),
            ("Placer", "nonsense", [], [0, 100, true]), ("Placer", "nothing", [], [0, 100, true]),
            ("Echo", "any", ["a text"], [0, 1, true]), ("Echo", "any", [4], [0, 1, 4]),
            ("Echo", "int", [4], [1, 0, 4]), ("Later", "atOnce", [], [0, 100, true]),
            ("Nobody", "knows", [], [0, 100, true]),
        ]
        for (target, action, arguments, expected) in cases {
            let outcome = try test.host.perform(
                "Placer", "perform", [.string(target), .string(action), .list(arguments)])
            #expect(outcome == expected, "\(target)/\(action) \(arguments)")
        }
        #expect(test.staleReplies == 0)
        let errors = test.host.statistics.first { $0.action == "Placer/nonsense" }
        #expect(errors?.errors == 1)
        // The first two of the five calls that arrived succeeded; those that had to be converted or refused count once.
        let inPlace = test.host.statistics.first { $0.action == "Placer/inPlace" }
        #expect(inPlace?.calls == 5 && inPlace?.errors == 3)
    }

    @Test func `Bad pointers, counts and values of a bound call with a result in place are refused`() throws {
        let test = try TestHost([placer.build()])
        let outcomes = try (0..<10).map { try test.host.perform("Placer", "broken", [.int($0)]) }
        let refused: Value = [0, 100, true]
        #expect(outcomes[..<7].allSatisfy { $0 == refused }, "\(outcomes)")
        #expect(outcomes[7...] == [[0, 1, true], [1, 0, 2], [0, 0, true]])
    }

    @Test func `A host that has no more numbers for names falls back to the names`() throws {
        let test = try TestHost([built("libModuleC.so"), built("libFixtureModule.so"), placer.build()])
        for number in 1..<1 << 17 { _ = test.host.bind("Full", "\(number)") }
        #expect(try test.host.perform("Placer", "number") == 0)
        let (add, any) = (test.host.bind("C", "add"), test.host.bind("Echo", "any"))
        let sum: Int = try add(2, 3)
        let text: String = try any("a text that is too long to be kept in a word")
        let nothing: Value = try test.host.bind("Echo", "nothing")()
        #expect(sum == 5 && text.hasPrefix("a text") && nothing == .null)
        let missing = #expect(throws: PluginError.self) { let _: Int = try test.host.bind("Nobody", "knows")(1, 2, 3) }
        #expect(missing?.code == .unknownTarget)
    }
}

extension BoundAction {
    /// The error of an asynchronous call.
    fileprivate var failure: PluginError? {
        get async throws {
            do throws(PluginError) { try await call() } catch { return error }
            return nil
        }
    }
}
