import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

/// Actions whose names are resolved once.
@Suite(.timeLimit(.minutes(30))) struct BoundActionTests {
    /// A module whose action `Clock/hour` gives a number.
    private func clock(_ hour: Int) -> Manifest {
        Manifest("Clock", version: "1.0.0") {
            Target("Clock") {
                Action("hour", .optional("plus", Int.self, default: 0)) { plus in hour + plus }
            }
        }
    }

    /// Both outcomes of the same call, by name and bound, in a form that can be compared.
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

    @Test func `A typed call takes and gives Swift values, and says when a result is of another type`() throws {
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

    @Test func `What is bound before its module is there works when it comes, and errs by name when it has gone`()
        throws
    {
        let test = try FolderHost()
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

    @Test func `Where another version serves, the next bound call goes to it`() throws {
        let test = try FolderHost()
        try PlainModule(version: "1.0.0", answer: "old").build(into: test.plugins, as: "1.so")
        try test.start()
        let answer = test.host.bind("Good", "answer")
        #expect(try answer() == "old")
        try PlainModule(version: "2.0.0", answer: "new").build(into: test.plugins, as: "2.so")
        #expect(eventually { test.answer() == "new" })
        #expect(try answer() == "new")
    }

    @Test func `While tables change under many threads, a bound call gets what one of the tables says`() async throws {
        let test = try TestHost.withSamples()
        let host = test.host
        let (hour, add) = (host.bind("Clock", "hour"), host.bind("C", "add"))
        let isOver = Mutex(false)
        let published = Mutex(0)
        async let changes: [Void] = onThreads(1) { _ in
            for number in 1...200 {
                try host.register(clock(number))
                published.withLock { $0 = number }
                try host.unregister("Clock")
            }
            isOver.withLock { $0 = true }
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

    @Test func `Interceptors see bound calls, serial targets let one in, and calls without end are found`() async throws
    {
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
        let overlaps = try await onThreads(4) { _ in try (0..<5).map { _ in try overlap.perform([1]) } }
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

    @Test func `A Swift module binds actions of others, and their chain is known`() throws {
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
                }
            })
        for n in 0..<3 { #expect(try test.host.perform("Adder", "twice", [.int(n)]) == .int(2 * n)) }
        #expect(try test.failure("Adder", "endless").code == .recursionLimit)
    }

    @Test func `A C module binds actions through the host's table`() throws {
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
        let test = try TestHost([builtLibrary("libModuleC.so"), module.build()])
        #expect(try test.host.perform("Binder", "bind", ["C", "add"]) == 1)
        #expect(try test.host.perform("Binder", "call", [20, 22]) == 42)
        #expect(try test.host.perform("Binder", "bindNonsense") == 0)
        for number in [0, 1_000, 131_072, -1] {
            let error = try test.failure("Binder", "callNumber", [.int(number)])
            #expect(error.code == .invalidValue && error.message.contains("bound action"))
        }
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
