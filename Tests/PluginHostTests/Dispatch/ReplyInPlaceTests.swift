import PluginABI
import PluginHost
import Testing

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
    func `plugin_reply passes any result on`(kind: String, value: Value) throws {
        #expect(try host.perform("Place", "reply", [.string(kind)]) == value)
        #expect(test.staleReplies == 0)
    }

    @Test func `Every way to a synchronous action has a place for its result`() async throws {
        #expect(try host.perform("Place", "isThere") == true)
        #expect(try await host.call("Place", "isThere") == true)
        #expect(try host.perform("Place", "isThere", timeout: .seconds(600)) == true)
        #expect(try host.bind("Place", "isThere").perform() == true)
        #expect(try host.perform("Instances", "isThere") == true)
    }

    @Test func `An asynchronous action and the making of an instance have none, and plugin_reply resolves`()
        async throws
    {
        #expect(try await host.call("Place", "later") == 3)
        #expect(try host.perform("Instances", "wasThereForFactory") == false)
    }

    @Test(arguments: ["string", "list", "object", "unknown"])
    func `What else is written there is invalidResult`(kind: String) throws {
        let error = try test.failure("Place", "write", [.string(kind)])
        #expect(error.code == .invalidResult && error.source == "Place" && error.message.contains("Place/write"))
        #expect(try host.perform("Place", "reply", ["int"]) == -5)
    }

    @Test func `Of two replies the one that comes first to the host counts, the other is stale`() throws {
        #expect(try host.perform("Place", "twice", ["resolve"]) == 1)
        #expect(test.staleReplies == 1)
        #expect(try test.failure("Place", "twice", ["reject"]).code == "first")
        #expect(test.staleReplies == 2)
        #expect(try host.perform("Place", "twice", ["reply"]) == 2)
        #expect(test.staleReplies == 3)
        _ = try test.failure("Place", "twice", ["rejectAndWriteText"])
        #expect(test.staleReplies == 4)
    }

    @Test func `A result in place that races with another thread's reply is taken once, or not at all`() throws {
        for number in 1...300 {
            #expect([1, 2].contains(try host.perform("Place", "racing")))
            #expect(try host.perform("Place", "join") == nil)
            #expect(test.staleReplies == number)
        }
    }

    @Test func `A result in place after the deadline is deadlineExceeded`() throws {
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
            static pthread_t racer;
            static plugin_value value_of(plugin_string kind) {
                static const uint8_t bytes[] = {1, 2};
                static const plugin_value list[] = {{PLUGIN_KIND_INT, 0, {.integer = 1}}};
                #define is(name) (kind.count == strlen(name) && memcmp(kind.bytes, name, kind.count) == 0)
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
            static plugin_string argument(const plugin_value *value) {
                return plugin_string_make(value->as.string, value->count);
            }
            static int has_place(const plugin_call *call) {
                return call->size >= sizeof *call && (call->flags & PLUGIN_CALL_IN_PLACE) && call->result
                    && call->result->kind == PLUGIN_KIND_NONE;
            }
            static void reject(plugin_token token) {
                plugin_error error = {text("first"), text("It was first."), {0, 0}};
                host->reject(host, token, &error);
            }
            static void *race(void *token) { reply_int((plugin_token)token, 2); return 0; }
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
                        name: "racing",
                        body: """
                            if (pthread_create(&racer, 0, race, (void *)call->token)) abort();
                            plugin_reply(host, call, plugin_value_int(1));
                            """),
                    .init(name: "join", body: "pthread_join(racer, 0); plugin_reply(host, call, plugin_value_null());"),
                    .init(name: "slow", body: "usleep(60000); plugin_reply(host, call, plugin_value_int(4));"),
                ]),
            .init(
                name: "Instances", manifest: "\"instance\": \"shared\",",
                actions: [
                    .init(name: "isThere", body: "plugin_reply(host, call, plugin_value_bool(has_place(call)));"),
                    .init(
                        name: "wasThereForFactory",
                        body: "plugin_reply(host, call, plugin_value_bool(is_there_for_factory));"),
                ]),
        ], factories: "{{\"Instances\", 9}, make, destroy, 0}")
}
