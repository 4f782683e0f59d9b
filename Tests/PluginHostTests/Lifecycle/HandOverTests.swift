import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// State that is handed over to the next generation, and calls that wait for the hand-over.
@Suite(.timeLimit(.minutes(30)), .serialized) struct HandOverTests {
    let test: TestHost

    init() throws {
        test = try TestHost { configuration, _ in configuration.handOverTimeout = .seconds(600) }
    }

    /// A counter: `answer` returns its version and counts.
    private func counter(_ version: String, _ hooks: KeyValuePairs<String, String>? = nil) -> CModule {
        var module = CModule(name: "Counter", version: version)
        module.code = "static int64_t total;"
        module.body = """
            char text[64]; snprintf(text, sizeof text, "\(version) %ld", (long)__atomic_add_fetch(&total, 1, 5));
            reply(call, text); return;
            """
        module.hooks = hooks ?? Self.keeping
        return module
    }

    private static let give =
        "plugin_value state = plugin_value_int(total); host->resolve(host, call->token, &state); return;"
    private static let keeping: KeyValuePairs = [
        "suspend": give, "resume": "total = arguments[0].as.integer;", "unsuspend": "",
    ]

    private func put(_ module: CModule) throws { try module.build(into: test.plugins, as: "counter.so") }

    @Test func `A module that hands over its state continues to count in its next version`() throws {
        try put(counter("1.0.0"))
        try test.start()
        #expect(test.answer("Counter") == "1.0.0 1" && test.answer("Counter") == "1.0.0 2")
        try put(counter("2.0.0"))
        #expect(eventually { test.status("counter.so")?.version == "2.0.0" })
        #expect(test.answer("Counter") == "2.0.0 3")
    }

    @Test func `The successor knows which version has handed over the state`() throws {
        try put(counter("1.4.2"))
        try test.start()
        try put(
            counter(
                "2.0.0",
                [
                    "resume": """
                    total = plugin_string_equals(plugin_string_of(&arguments[1]), "1.4.2") ? 100 : -100;
                    """
                ]))
        #expect(eventually { test.status("counter.so")?.version == "2.0.0" })
        #expect(test.answer("Counter") == "2.0.0 101")
    }

    @Test(arguments: [
        ("suspend", "refuse(call, \"not now\"); return;", true),
        ("resume", "refuse(call, \"not this\"); return;", false),
        ("init", "refuse(call, \"not ready\"); return;", false),
    ])
    func `A hand-over that fails leaves the old generation as it was`(hook: String, body: String, isOld: Bool) throws {
        let notes = "\(test.folder.path)/notes"
        var old = counter("1.0.0")
        old.hooks = [
            "suspend": isOld ? body : Self.give, "unsuspend": "note(\"\(notes)\", \"unsuspend \");",
        ]
        try put(old)
        try test.start()
        #expect(test.answer("Counter") == "1.0.0 1")
        var new = counter("2.0.0")
        if !isOld { new.hooks = hook == "init" ? ["resume": "", "init": body] : ["resume": body] }
        try put(new)
        #expect(eventually { test.status("counter.so")?.error?.code == .activationFailed })
        #expect(test.status("counter.so")?.error?.message.contains("\(hook) of Counter") == true)
        #expect(test.answer("Counter") == "1.0.0 2")
        #expect(try String(contentsOfFile: notes, encoding: .utf8) == "unsuspend ")
    }

    @Test func `Running calls end before the hand-over, and new calls wait for the successor`() async throws {
        let (notes, gate) = ("\(test.folder.path)/notes", "\(test.folder.path)/gate")
        var old = counter("1.0.0")
        old.hooks = [
            "suspend": """
            note("\(notes)", "suspend "); while (access("\(gate)", F_OK) != 0) usleep(1000);
            \(Self.give)
            """, "unsuspend": "",
        ]
        try put(old)
        try test.start()
        try put(counter("2.0.0"))
        #expect(await becomesTrue { access(notes, F_OK) == 0 })
        let host = test.host
        let answer = host.bind("Counter", "answer")
        async let blocking = onThreads(4) { thread in
            thread < 2 ? try host.perform("Counter", "answer").string : try answer() as String
        }
        async let first = host.call("Counter", "answer")
        async let second = host.call("Counter", "answer")
        // A call whose deadline passes while it waits has never run.
        await #expect(throws: PluginError.self) {
            try await host.call("Counter", "answer", timeout: .milliseconds(50))
        }
        try test.folder.file("gate")
        let answers = try await blocking.compactMap(\.self) + [first.string, second.string].compactMap(\.self)
        #expect(answers.sorted() == (1...6).map { "2.0.0 \($0)" })
    }

    @Test func `A module that is called by a call that it runs is not a circular wait`() throws {
        let gate = "\(test.folder.path)/gate"
        var old = counter("1.0.0")
        let begun = "\(test.folder.path)/begun"
        old.actions = [
            (
                "nested",
                """
                note("\(begun)", "x"); while (access("\(gate)", F_OK) != 0) usleep(1000);
                plugin_request request = {.size = sizeof request, .target = PLUGIN_STRING("Counter"),
                    .action = PLUGIN_STRING("answer")};
                host->perform(host, call->token, &request, forward, (void *)call); return;
                """
            )
        ]
        old.code += """

            static void forward(void *data, const plugin_value *value, const plugin_error *error) {
                const plugin_call *call = data;
                plugin_pass_on(host, call->token, value, error);
            }
            """
        try put(old)
        try test.start()
        let nested = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [host = test.host] in
            #expect((try? host.perform("Counter", "nested").string) == "1.0.0 1")
            nested.signal()
        }
        #expect(eventually { access(begun, F_OK) == 0 })
        try put(counter("2.0.0"))
        try test.folder.file("gate")
        nested.wait()
        #expect(eventually { test.status("counter.so")?.version == "2.0.0" })
        #expect(test.answer("Counter") == "2.0.0 2")
    }

    @Test func `A call that does not end prevents the hand-over, and is named`() throws {
        let test = try TestHost { configuration, _ in configuration.handOverTimeout = .milliseconds(100) }
        let (begun, gate) = ("\(test.folder.path)/begun", "\(test.folder.path)/gate")
        var old = counter("1.0.0")
        old.actions = [("slow", "note(\"\(begun)\", \"x\"); while (access(\"\(gate)\", F_OK) != 0) usleep(1000);")]
        try old.build(into: test.plugins, as: "counter.so")
        try test.start()
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [host = test.host] in
            _ = try? host.perform("Counter", "slow")
            ended.signal()
        }
        #expect(eventually { access(begun, F_OK) == 0 })
        try counter("2.0.0").build(into: test.plugins, as: "counter.so")
        #expect(eventually { test.status("counter.so")?.error?.code == .deadlineExceeded })
        #expect(test.status("counter.so")?.error?.message.contains("Counter/slow") == true)
        #expect(test.answer("Counter") == "1.0.0 1")
        try test.folder.file("gate")
        ended.wait()
    }

    @Test func `Calls over the limit of waiting calls are refused`() throws {
        let test = try TestHost { configuration, _ in configuration.waitingCallsLimit = 0 }
        let (notes, gate) = ("\(test.folder.path)/notes", "\(test.folder.path)/gate")
        var old = counter("1.0.0")
        old.hooks = [
            "suspend": """
            note("\(notes)", "x"); while (access("\(gate)", F_OK) != 0) usleep(1000);
            \(Self.give)
            """, "unsuspend": "",
        ]
        try old.build(into: test.plugins, as: "counter.so")
        try test.start()
        try counter("2.0.0").build(into: test.plugins, as: "counter.so")
        #expect(eventually { access(notes, F_OK) == 0 })
        #expect(test.failure("Counter")?.code == .overloaded)
        try test.folder.file("gate")
        #expect(eventually { test.answer("Counter") == "2.0.0 1" })
    }
}
