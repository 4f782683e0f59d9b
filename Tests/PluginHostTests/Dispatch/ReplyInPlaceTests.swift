import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Results that a synchronous action writes where the host has a place for them, instead of calling `resolve`.
@Suite(.serialized) struct ReplyInPlaceTests {
    let test: TestHost
    var host: PluginHost { test.host }

    init() throws { test = try TestHost([Self.module.build()]) }

    @Test(
        arguments: [
            ("null", nil), ("bool", true), ("int", -5), ("double", 2.5), ("string", "text"), ("bytes", .bytes([1, 2])),
            ("list", [1]),
        ] as [(String, Value)])
    func `plugin_reply passes on any result`(kind: String, value: Value) throws {
        #expect(try host.perform("Place", "reply", [.string(kind)]) == value)
        #expect(test.staleReplies == 0)
    }

    @Test func `An action that runs on its caller's thread can write its result in place`() async throws {
        #expect(try host.perform("Place", "isThere") == true)
        #expect(try await host.call("Place", "isThere") == true)
        #expect(try host.perform("Place", "isThere", timeout: .seconds(600)) == true)
        #expect(try host.bind("Place", "isThere").perform() == true)
        #expect(try host.perform("Instances", "isThere") == true)
    }

    @Test func `Asynchronous actions and factories cannot write in place, and plugin_reply resolves instead`()
        async throws
    {
        #expect(try await host.call("Place", "later") == 3)
        #expect(try host.perform("Instances", "wasThereForFactory") == false)
    }

    @Test(arguments: ["string", "list", "object", "unknown"])
    func `A result of any other kind in place fails with invalidResult`(kind: String) throws {
        let error = try test.failure("Place", "write", [.string(kind)])
        #expect(error.code == .invalidResult && error.source == "Place" && error.message.contains("Place/write"))
        #expect(try host.perform("Place", "reply", ["int"]) == -5)
    }

    @Test func `Of two replies, the one that reaches the host first counts, and the other is stale`() throws {
        #expect(try host.perform("Place", "twice", ["resolve"]) == 1)
        #expect(test.staleReplies == 1)
        #expect(try test.failure("Place", "twice", ["reject"]).code == "first")
        #expect(test.staleReplies == 2)
        #expect(try host.perform("Place", "twice", ["reply"]) == 2)
        #expect(test.staleReplies == 3)
        #expect(try test.failure("Place", "twice", ["rejectAndWriteText"]).code == "first")
        #expect(test.staleReplies == 4)
        #expect(try host.bind("Place", "twice")("resolve") == 1)
        #expect(test.staleReplies == 5)
    }

    @Test func `A second reply from within the completion, on the same thread, is stale`() throws {
        #expect(try host.perform("Place", "replyWithin") == 1)
        #expect(test.staleReplies == 1)
    }

    @Test func `Of a result in place and a simultaneous reply by another thread, one is accepted`() throws {
        let calls = 2_000
        var taken = [0, 0]
        let typed = host.bind("Place", "contested")
        for call in 0..<calls {
            taken[try #require(call % 2 == 0 ? try host.perform("Place", "contested").int : try typed())] += 1
        }
        #expect(try host.perform("Place", "takenFromRival").int == taken[1])
        #expect(taken[0] + taken[1] == calls && test.staleReplies == calls)
    }

    @Test(.disabled(if: modulesAreIsolated, "The thread that waits for a reply also receives it."))
    func `A result in place waits for a reply that another thread is making`() throws {
        #expect(try host.perform("Place", "overtaken") == 2)
        #expect(test.staleReplies == 1)
        #expect(try host.bind("Place", "overtaken")() == 2)
        #expect(test.staleReplies == 2)
    }

    @Test func `A result in place after the deadline fails with deadlineExceeded`() throws {
        let error = #expect(throws: PluginError.self) {
            try host.perform("Place", "slow", timeout: .milliseconds(20))
        }
        #expect(error?.code == .deadlineExceeded)
        #expect(try host.perform("Place", "slow", timeout: .seconds(600)) == 4)
    }

    private static let module = CModule(
        name: "Place",
        code: """
            static int is_there_for_factory = -1;
            static _Atomic plugin_token contested;
            static atomic_int rival_replied, is_replying;
            static int taken, status;
            static plugin_token inner_token;
            static plugin_value value_of(plugin_string kind) {
                static const uint8_t bytes[] = {1, 2};
                static const plugin_value list[] = {{PLUGIN_KIND_INT, 0, {.integer = 1}}};
                #define is(name) plugin_string_equals(kind, name)
                if (is("bool")) return plugin_value_bool(1);
                if (is("int")) return plugin_value_int(-5);
                if (is("double")) return plugin_value_double(2.5);
                if (is("string")) return plugin_value_string("text", 4);
                if (is("bytes")) return plugin_value_bytes(bytes, 2);
                if (is("list")) return plugin_value_list(list, 1);
                if (is("object")) return plugin_value_object(1);
                if (is("unknown")) return (plugin_value){99, 0, {0}};
                return plugin_value_null();
            }
            static plugin_string argument(const plugin_value *value) { return plugin_string_of(value); }
            static int has_place(const plugin_call *call) {
                return (call->flags & PLUGIN_CALL_IN_PLACE) && call->result && call->result->kind == PLUGIN_KIND_NONE;
            }
            static void reject(plugin_token token) {
                plugin_error error = {text("first"), text("It was first."), {0, 0}};
                host->reject(host, token, &error);
            }
            /* Replies to each contested call at about the moment when its action does. */
            static void *rival(void *data) {
                (void)data;
                while (1) {
                    plugin_token token;
                    while (!(token = atomic_exchange(&contested, 0))) sched_yield();
                    if (token == 1) return 0;
                    plugin_value value = plugin_value_int(1);
                    if (host->resolve(host, token, &value) == PLUGIN_REPLY_ACCEPTED) taken++;
                    atomic_store(&rival_replied, 1);
                }
            }
            static void reply_again(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)value, (void)error;
                plugin_value second = plugin_value_int(9);
                status = host->resolve(host, inner_token, &second);
            }
            static void *overtake(void *token) { reply_int((plugin_token)token, 2); return 0; }
            /* The completion of `slowlyReplied`, on the thread that replies: the action has returned, or soon will. */
            static void pass_on_slowly(void *data, const plugin_value *value, const plugin_error *error) {
                atomic_store(&is_replying, 1);
                usleep(20000);
                pass_on(data, value, error);
            }
            static void *make(void *data, const plugin_call *call) {
                is_there_for_factory = (call->flags & PLUGIN_CALL_IN_PLACE) != 0;
                return malloc(1);
            }
            static void destroy(void *data, void *instance) { free(instance); }
            """,
        targets: [
            .init(
                name: "Place",
                actions: [
                    .init(
                        name: "reply", parameters: ["kind": "string"],
                        body: "plugin_reply(host, call, value_of(argument(arguments)));"),
                    .init(name: "isThere", body: "plugin_reply(host, call, plugin_value_bool(has_place(call)));"),
                    .init(
                        name: "later", manifest: "\"async\": true,",
                        body: "plugin_reply(host, call, plugin_value_int(call->flags & PLUGIN_CALL_IN_PLACE ? 0 : 3));"),
                    .init(
                        name: "write", parameters: ["kind": "string"],
                        body: "*call->result = value_of(argument(arguments));"),
                    .init(
                        name: "twice", parameters: ["first": "string"],
                        body: """
                            plugin_string kind = argument(arguments);
                            if (is("resolve")) reply_int(call->token, 1);
                            if (is("reject") || is("rejectAndWriteText")) reject(call->token);
                            if (is("reply")) plugin_reply(host, call, plugin_value_int(1));
                            if (is("rejectAndWriteText")) *call->result = plugin_value_string("text", 4);
                            else plugin_reply(host, call, plugin_value_int(2));
                            """),
                    .init(
                        name: "contested",
                        body: """
                            static unsigned round;
                            if (round++ == 0) start(rival, 0);
                            atomic_store(&rival_replied, 0);
                            atomic_store(&contested, call->token);
                            while (atomic_load(&contested) != 0) sched_yield(); // Now both have arrived.
                            for (volatile int wait = round % 64; wait > 0; wait--) {}
                            plugin_reply(host, call, plugin_value_int(0));
                            if (round % 2) while (!atomic_load(&rival_replied)) sched_yield();
                            """),
                    .init(
                        name: "takenFromRival",
                        body: """
                            atomic_store(&contested, 1); // Ends the thread once it has replied.
                            while (atomic_load(&contested) != 0) sched_yield();
                            plugin_reply(host, call, plugin_value_int(taken));
                            """),
                    .init(
                        name: "inner", body: "inner_token = call->token; plugin_reply(host, call, plugin_value_int(1));"
                    ),
                    .init(
                        name: "replyWithin",
                        body: """
                            plugin_request request = ask("Place", "inner");
                            host->perform(host, call->token, &request, reply_again, 0);
                            plugin_reply(host, call, plugin_value_int(status));
                            """),
                    .init(
                        name: "slowlyReplied",
                        body: """
                            start(overtake, (void *)call->token);
                            while (!atomic_load(&is_replying)) sched_yield();
                            plugin_reply(host, call, plugin_value_int(1));
                            """),
                    .init(
                        name: "overtaken",
                        body: """
                            plugin_request request = ask("Place", "slowlyReplied");
                            atomic_store(&is_replying, 0);
                            host->perform(host, call->token, &request, pass_on_slowly, (void *)call->token);
                            """),
                    .init(name: "slow", body: "usleep(60000); plugin_reply(host, call, plugin_value_int(4));"),
                ]),
            .init(
                name: "Serial", manifest: "\"concurrency\": \"serial\",",
                actions: [.init(name: "isThere", body: "plugin_reply(host, call, plugin_value_bool(has_place(call)));")]
            ),
            .init(
                name: "Instances", manifest: "\"instance\": \"shared\",",
                actions: [
                    .init(name: "isThere", body: "plugin_reply(host, call, plugin_value_bool(has_place(call)));"),
                    .init(
                        name: "wasThereForFactory",
                        body: "plugin_reply(host, call, plugin_value_bool(is_there_for_factory));"),
                ]),
        ], makers: "{{\"Instances\", 9}, make, destroy, 0}")
}
