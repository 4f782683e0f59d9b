import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Instances that are released, and instances made for one call.
@Suite(.timeLimit(.minutes(30))) struct ReleaseTests {
    let test: TestHost
    var host: PluginHost { test.host }

    init() throws {
        let module = CModule(
            name: "Counted",
            code: """
                static atomic_int made, destroyed, destructions, held, isLet;
                static atomic_bool isDestroyed[4096];
                static void *make(void *data, const plugin_call *call) {
                    (void)data, (void)call; return (void *)(intptr_t)(atomic_fetch_add(&made, 1) + 1);
                }
                static void destroy(void *data, void *instance) {
                    (void)data; atomic_store(&destroyed, (int)(intptr_t)instance);
                    atomic_store(&isDestroyed[(intptr_t)instance % 4096], true);
                    atomic_fetch_add(&destructions, 1);
                }
                static void *finish(void *data) {
                    while (!isLet) usleep(1000);
                    reply_int((plugin_token)data, destroyed);
                    return 0;
                }
                """,
            targets: [
                .init(
                    name: "S", manifest: "\"instance\":\"shared\",",
                    actions: [
                        .init(name: "number", body: "reply_int(call->token, (int64_t)(intptr_t)call->instance);"),
                        .init(
                            name: "use",
                            body: """
                                if (!isDestroyed[(intptr_t)call->instance % 4096]) usleep(10);
                                reply_int(call->token, isDestroyed[(intptr_t)call->instance % 4096]);
                                """),
                        .init(
                            name: "hold",
                            body: """
                                atomic_fetch_add(&held, 1);
                                reply_int(call->token, destroyed); /* It has replied, and still runs. */
                                while (!isLet) usleep(1000);
                                """),
                        .init(
                            name: "later", manifest: "\"async\":true,",
                            body: "atomic_fetch_add(&held, 1); start(finish, (void *)call->token);"),
                        .init(
                            name: "fail",
                            body: "plugin_fail(host, call, \"no\", \"No.\");"),
                    ]),
                .init(
                    name: "Count",
                    actions: [
                        .init(name: "made", body: "reply_int(call->token, made);"),
                        .init(name: "destroyed", body: "reply_int(call->token, destroyed);"),
                        .init(name: "destructions", body: "reply_int(call->token, destructions);"),
                        .init(name: "held", body: "reply_int(call->token, held);"),
                        .init(name: "let", body: "isLet = 1; reply_int(call->token, 1);"),
                        .init(
                            name: "fresh",
                            body: """
                                plugin_request request = ask("S", "number"); request.flags = PLUGIN_REQUEST_FRESH;
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                    ]),
            ], makers: "{{\"S\", 1}, make, destroy, 0}")
        test = try TestHost([module.build()])
    }

    @Test func `A released instance is destroyed, and the next call makes another`() throws {
        #expect(try !host.release("S"))
        #expect(try host.perform("S", "number") == 1)
        #expect(try host.release("S"))
        #expect(try host.perform("Count", "destroyed") == 1)
        #expect(try host.perform("S", "number") == 2)
    }

    @Test(arguments: ["hold", "later"])
    func `A released instance lives until the calls that use it have ended`(action: String) async throws {
        let host = host
        async let outcome = onThread {
            action == "hold"
                ? try host.perform("S", "hold") : try host.performAndWait("S", "later", timeout: .seconds(600))
        }
        #expect(await becomesTrue { (try? host.perform("Count", "held")) == 1 })
        #expect(try host.release("S"))
        #expect(try host.perform("S", "number") == 2)
        try await Task.sleep(for: .milliseconds(30))
        #expect(try host.perform("Count", "destroyed") == 0)
        try host.perform("Count", "let")
        #expect(try await outcome == 0)
        #expect(await becomesTrue { (try? host.perform("Count", "destroyed")) == 1 })
        #expect(try host.perform("S", "number") == 2)
    }

    @Test func `Calls on many threads never get an instance that is destroyed`() async throws {
        let host = host
        let uses = try await onThreads(4) { thread in
            var uses = 0  // Uses of destroyed instances.
            for _ in 0..<200 {
                if thread == 0 { try host.release("S") } else { uses += try host.perform("S", "use") == 0 ? 0 : 1 }
            }
            return uses
        }
        #expect(uses == [0, 0, 0, 0])
        try host.release("S")
        // Each one is destroyed once, in any order: a call may have kept an earlier instance longer than a later one.
        let made = try host.perform("Count", "made")
        #expect(await becomesTrue { (try? host.perform("Count", "destructions")) == made })
    }

    @Test func `A failed call does not evict the instance`() throws {
        #expect(try host.perform("S", "number") == 1)
        #expect(test.code("S", "fail") == "no")
        #expect(try host.perform("S", "number") == 1)
    }

    @Test func `A fresh call has its own instance, which is destroyed afterwards`() async throws {
        #expect(try host.perform("S", "number") == 1)
        #expect(try host.fresh.perform("S", "number") == 2)
        #expect(try host.perform("Count", "destroyed") == 2)
        #expect(try await host.fresh.call("S", "number") == 3)
        #expect(try await host.fresh.open("app://S/number") == 4)
        #expect(try host.perform("Count", "fresh") == 5)
        #expect(try host.perform("S", "number") == 1)
        #expect(try host.fresh.perform("Count", "made") == 5)
    }

    @Test func `A fresh call has its own instance even if it is intercepted`() async throws {
        host.intercept(.all) { call, next in try next(call) }
        #expect(try host.perform("S", "number") == 1)
        #expect(try host.fresh.perform("S", "number") == 2)
        #expect(try await host.fresh.call("S", "number") == 3)
        #expect(try host.perform("S", "number") == 1)
        #expect(try host.perform("Count", "destroyed") == 3)
    }

    @Test func `An unknown target cannot be released, and one without instances has none to release`() throws {
        let error = #expect(throws: PluginError.self) { try host.release("Cont") }
        #expect(error?.code == .unknownTarget && error?.message.contains("“Count”") == true)
        #expect(try !host.release("Count"))
    }
}
