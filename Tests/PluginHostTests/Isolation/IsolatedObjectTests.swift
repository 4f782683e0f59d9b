import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// What a crash leaves behind: objects, calls, and calls of other modules.
@Suite struct IsolatedObjectTests {
    /// Makes objects, and counts those that exist.
    private static let maker = CModule(
        name: "Maker",
        code: """
            static atomic_int alive;
            static void destroy(void *thing) { (void)thing; atomic_fetch_sub(&alive, 1); }
            """,
        targets: [
            .init(
                name: "Maker",
                actions: [
                    .init(
                        name: "make",
                        body: """
                            atomic_fetch_add(&alive, 1);
                            plugin_object object = host->object_create(host, text("Thing"), &alive, destroy);
                            reply_value(call->token, plugin_value_object(object));
                            host->object_release(host, object);
                            """),
                    .init(name: "alive", body: "reply_int(call->token, alive);"),
                    .init(name: "crash", body: "abort();"),
                    .init(name: "later", manifest: "\"async\":true,", body: ""),
                ])
        ], types: [("Thing", [.init(name: "touch", body: "reply_int(call->token, 1);")])])

    /// Keeps objects of other modules.
    private static let keeper = CModule(
        name: "Keeper",
        targets: [
            .init(
                name: "Keeper",
                actions: [
                    .init(
                        name: "keep", parameters: ["thing": "object"],
                        body: "reply_int(call->token, host->object_retain(host, arguments[0].as.object));"),
                    .init(name: "crash", body: "abort();"),
                    .init(
                        name: "ask", manifest: "\"async\":true,",
                        body: """
                            plugin_request request = ask("Maker", "later");
                            host->call(host, call->token, &request, pass_on, (void *)call->token);
                            """),
                ])
        ])

    private func host() throws -> TestHost {
        try TestHost([Self.maker.build(), Self.keeper.build()]) { configuration in
            configuration.isolation.modules = .all
            configuration.isolation.restartPauses = Array(repeating: .zero, count: 1000)
        }
    }

    @Test func `Calls of objects of a crashed module fail with moduleCrashed`() throws {
        let host = try host()
        let thing = try #require(try host.host.perform("Maker", "make").object)
        #expect(try thing.perform("touch") == 1)
        #expect(host.code("Maker", "crash") == .moduleCrashed)
        let error = #expect(throws: PluginError.self) { try thing.perform("touch") }
        #expect(error?.code == .moduleCrashed)
        #expect(try host.host.perform("Maker", "alive") == 0)
    }

    @Test func `What a crashed module held is released`() throws {
        let host = try host()
        do {
            let thing = try host.host.perform("Maker", "make")
            #expect(try host.host.perform("Keeper", "keep", [thing]) == 0)
        }
        #expect(try host.host.perform("Maker", "alive") == 1)
        #expect(host.code("Keeper", "crash") == .moduleCrashed)
        #expect(eventually { (try? host.host.perform("Maker", "alive")) == 0 })
    }

    @Test func `An asynchronous call that was begun ends with the crash, once`() async throws {
        let host = try host()
        let calls = (0..<20).map { number in
            Task { try await host.host.call(number % 2 == 0 ? "Maker" : "Keeper", number % 2 == 0 ? "later" : "ask") }
        }
        #expect(await becomesTrue { host.host.generations.contains { $0.name == "Maker" && $0.calls.count == 20 } })
        #expect(host.code("Maker", "crash") == .moduleCrashed)
        for call in calls {
            let error = await #expect(throws: PluginError.self) { try await call.value }
            #expect(error?.code == .moduleCrashed)
        }
        #expect(host.staleReplies == 0)
        #expect(try host.host.perform("Maker", "alive") == 0)
    }

    @Test func `Code that is notified of a crash can call the module again immediately`() async throws {
        let retrier = CModule(
            name: "Retrier",
            code: """
                static void retry(void *data, const plugin_value *value, const plugin_error *error) {
                    (void)value, (void)error;
                    plugin_request request = ask("Maker", "alive");
                    host->perform(host, 0, &request, pass_on, data);
                }
                """,
            targets: [
                .init(
                    name: "Retrier",
                    actions: [
                        .init(
                            name: "ask", manifest: "\"async\":true,",
                            body: """
                                plugin_request request = ask("Maker", "later");
                                host->call(host, call->token, &request, retry, (void *)call->token);
                                """)
                    ])
            ])
        let host = try TestHost([Self.maker.build(), retrier.build()]) { configuration in
            configuration.isolation.modules = .named(["Maker"])
        }
        let calls = (0..<20).map { _ in Task { try await host.host.call("Retrier", "ask") } }
        #expect(await becomesTrue { host.host.generations.contains { $0.name == "Maker" && $0.calls.count == 20 } })
        #expect(host.code("Maker", "crash") == .moduleCrashed)
        for call in calls {
            let answer = try await call.value
            #expect(answer == 0)
        }
    }

    @Test func `When a module crashes, each of its calls gets one outcome, and others are unaffected`() async throws {
        let host = try host()
        let outcomes = try await onThreads(4) { number -> [String: Int] in
            var outcomes: [String: Int] = [:]
            for round in 0..<100 {
                if number == 0, round % 10 == 9 { _ = host.code("Maker", "crash") }
                let (target, action) = number == 3 ? ("Keeper", "answer") : ("Maker", "alive")
                outcomes[host.code(target, action)?.rawValue ?? "value", default: 0] += 1
            }
            return outcomes
        }
        for outcome in outcomes {
            #expect(outcome.values.reduce(0, +) == 100)
            #expect(Set(outcome.keys).isSubset(of: ["value", "moduleCrashed", "unknownAction"]), "\(outcome)")
        }
        #expect(outcomes.contains(["unknownAction": 100]))
        #expect(eventually { host.host.modules.contains { $0.name == "Maker" && $0.restarts == 10 } })
    }

    @Test func `An object is not destroyed while a call that was too late still runs on it`() throws {
        let module = CModule(
            name: "Maker",
            code: """
                static atomic_int destroyed, whole;
                static void destroy(void *thing) { *(atomic_int *)thing = 0; atomic_fetch_add(&destroyed, 1); }
                """,
            targets: [
                .init(
                    name: "Maker",
                    actions: [
                        .init(
                            name: "make",
                            body: """
                                whole = 1;
                                plugin_object object = host->object_create(host, text("Thing"), &whole, destroy);
                                reply_value(call->token, plugin_value_object(object));
                                host->object_release(host, object);
                                """),
                        .init(name: "destroyed", body: "reply_int(call->token, destroyed);"),
                    ])
            ],
            types: [
                (
                    "Thing",
                    [
                        .init(
                            name: "slow",
                            body: """
                                usleep(300000);
                                if (!*(atomic_int *)call->instance) abort();
                                reply_int(call->token, 1);
                                """)
                    ]
                )
            ])
        let host = try TestHost([module.build()]) { $0.isolation.modules = .all }
        do {
            let thing = try #require(try host.host.perform("Maker", "make").object)
            let error = #expect(throws: PluginError.self) {
                try thing.perform("slow", timeout: .milliseconds(20))
            }
            #expect(error?.code == .deadlineExceeded)
        }
        #expect(eventually { (try? host.host.perform("Maker", "destroyed")) == 1 })
        #expect(host.host.modules.first?.restarts == 0)
    }

    @Test func `The text of an error is cut off if it is too long`() throws {
        let module = CModule(
            name: "Bad",
            actions: [
                (
                    "refuse",
                    """
                    static char long_text[5 << 20];
                    memset(long_text, 'x', sizeof long_text);
                    plugin_error error = {TEXT("refused"), {long_text, sizeof long_text}, {NULL, 0}};
                    host->reject(host, call->token, &error);
                    """
                )
            ])
        let host = try TestHost([module.build()]) { $0.isolation.modules = .all }
        let error = try host.failure("Bad", "refuse")
        #expect(error.code.rawValue == "refused")
        #expect(error.message.hasPrefix("xxx"))
    }

    @Test func `Output of the process becomes lines of the log`() throws {
        let host = try TestHost([crashing.build()]) { $0.isolation.modules = .all }
        #expect(try host.host.perform("Bad", "say") == "said")
        #expect(eventually { host.log.contains { $0.module == "Bad" && $0.message == "a line" } })
        #expect(eventually { host.log.contains { $0.module == "Bad" && $0.message.contains("an error") } })
    }

    @Test(arguments: ["activate", "setUp"])
    func `A crash during the start is an error of the module`(_ step: String) throws {
        var module = CModule()
        if step == "activate" { module.activate = "abort();" } else { module.setUp = "abort();" }
        let host = try TestHost { configuration, _ in
            configuration.watches = false
            configuration.isolation.modules = .all
        }
        try module.build(into: host.plugins, as: "good.so")
        try host.start()
        #expect(host.status("good.so")?.state == .failed)
        #expect(host.status("good.so")?.error?.code == .activationFailed)
        #expect(host.status("good.so")?.error?.message.contains("signal 6") == true)
    }

    @Test func `A crash while a file is opened is an error of the file`() throws {
        let host = try TestHost { configuration, _ in
            configuration.watches = false
            configuration.isolation.modules = .all
        }
        try CModule(code: "__attribute__((constructor)) static void begin(void) { abort(); }")
            .build(into: host.plugins, as: "good.so")
        try host.start()
        #expect(host.status("good.so")?.error?.code == .openFailed)
        #expect(host.status("good.so")?.error?.message.contains("signal 6") == true)
    }

    @Test func `A missing worker program is a clear error`() throws {
        let host = try TestHost { configuration, _ in
            configuration.watches = false
            configuration.isolation.modules = .all
            configuration.isolation.workerPath = "/nowhere/pluginhost-worker"
        }
        try CModule().build(into: host.plugins, as: "good.so")
        try host.start()
        #expect(host.status("good.so")?.error?.code == .openFailed)
        #expect(host.status("good.so")?.error?.message.contains("/nowhere/pluginhost-worker") == true)
    }
}
