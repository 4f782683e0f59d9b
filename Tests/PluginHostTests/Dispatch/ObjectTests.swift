import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Objects and callbacks: handles that the host creates and counts.
@Suite struct ObjectTests {
    let test: TestHost
    var host: PluginHost { test.host }

    init() throws { test = try TestHost.withSamples() }

    // MARK: Objects

    @Test func `A result can be an object with actions of its own`() throws {
        let cursor = try #require(try host.perform("Counter", "search", ["text": "ap"]).object)
        #expect(try cursor.perform("next") == "apple")
        #expect(try cursor.perform("next") == "apricot")
        #expect(try cursor.perform("next") == nil)
    }

    @Test func `An unknown action of an object is an error with a suggestion`() throws {
        let cursor = try #require(try host.perform("Counter", "search", ["text": "ap"]).object)
        let error = #expect(throws: PluginError.self) { try cursor.perform("nxt") }
        #expect(error?.code == .unknownAction && error?.message.contains("Cursor") == true)
        #expect(error?.message.contains("“next”") == true)
    }

    @Test func `Parameters of an object's action are checked like any others`() throws {
        let link = try #require(try host.perform("Callbacks", "link").object)
        #expect(try link.perform("number", [3.0]) == 3)
        #expect(#expect(throws: PluginError.self) { try link.perform("number") }?.code == .missingParameter)
        #expect(#expect(throws: PluginError.self) { try link.perform("number", ["x"]) }?.code == .mistypedParameter)
    }

    @Test func `An object can be called without blocking`() async throws {
        let cursor = try #require(try host.perform("Counter", "search", ["text": "pear"]).object)
        #expect(try await cursor.call("next") == "pear")
    }

    @Test func `An object that passes through other modules comes back the same`() throws {
        let cursor = try host.perform("Counter", "search", ["text": "pear"])
        #expect(try host.perform("Echo", "object", ["value": cursor]) == cursor)
        let nested: Value = [cursor, ["c": cursor]]
        #expect(try host.perform("Echo", "any", ["value": nested]) == nested)
    }

    @Test func `An object of a type that the manifest does not declare cannot be made`() throws {
        let counting = try TestHost([Self.counting.build()])
        #expect(try counting.host.perform("Things", "undeclared") == 0)
    }

    @Test func `An object is destroyed once, when its last holder releases it, also from many threads`() async throws {
        let counting = try TestHost([Self.counting.build()])
        let host = counting.host
        for _ in 0..<20 {
            let thing = try host.perform("Things", "make")
            #expect(try thing.object?.perform("touch") == 1)
            _ = try await onThreads(4) { _ in
                for _ in 0..<50 { _ = try thing.object?.perform("touch") }
            }
        }
        #expect(await becomesTrue { (try? host.perform("Things", "destroyed")) == 20 })
    }

    @Test func `Every use of a released handle is detected`() throws {
        let counting = try TestHost([Self.counting.build()])
        #expect(try counting.host.perform("Things", "useReleased") == "unknownObject")
        #expect(try counting.host.perform("Things", "releaseAgain") == 1)
        #expect(try counting.failure("Things", "returnReleased").code == .invalidResult)
        #expect(try counting.host.perform("Things", "garbage") == 0)
        #expect(try counting.host.perform("Things", "destroyed") == 1)
    }

    @Test func `An object that is released inside its own action is destroyed when the action ends`() throws {
        let counting = try TestHost([Self.counting.build()])
        #expect(try counting.host.perform("Things", "releaseInside") == 0)
        #expect(try counting.host.perform("Things", "destroyed") == 1)
    }

    private static let counting = CModule(
        name: "Counting",
        code: """
            static atomic_int destroyed; static plugin_object mine; static char last[64];
            static void destroy(void *instance) { (void)instance; atomic_fetch_add(&destroyed, 1); }
            static plugin_object make(void) { return host->object_create(host, text("Thing"), &mine, destroy); }
            static void hear(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)value;
                memset(last, 0, sizeof last);
                if (error) memcpy(last, error->code.bytes, error->code.count);
            }
            static plugin_request ask_object(plugin_object object, const char *action) {
                plugin_request request = ask(0, action);
                request.address = PLUGIN_ADDRESS_OBJECT; request.object = object;
                return request;
            }
            """,
        targets: [
            .init(
                name: "Things",
                actions: [
                    .init(
                        name: "make",
                        body: """
                            plugin_object object = make();
                            reply_value(call->token, plugin_value_object(object));
                            host->object_release(host, object);
                            """),
                    .init(
                        name: "undeclared",
                        body: "reply_int(call->token, host->object_create(host, text(\"Other\"), 0, destroy));"),
                    .init(name: "destroyed", body: "reply_int(call->token, destroyed);"),
                    .init(
                        name: "useReleased",
                        body: """
                            mine = make();
                            host->object_release(host, mine);
                            plugin_request request = ask_object(mine, "touch");
                            host->perform(host, call->token, &request, hear, 0);
                            reply_value(call->token, plugin_value_string(last, strlen(last)));
                            """),
                    .init(
                        name: "releaseAgain",
                        body: """
                            reply_int(call->token, host->object_release(host, mine) & host->object_retain(host, mine));
                            """),
                    .init(name: "returnReleased", body: "reply_value(call->token, plugin_value_object(mine));"),
                    .init(
                        name: "garbage",
                        body: """
                            int64_t found = 0; uint64_t handle = 88172645463325252u;
                            for (int i = 0; i < 100000; i++) {
                                handle ^= handle << 13; handle ^= handle >> 7; handle ^= handle << 17;
                                found += !host->object_retain(host, handle | 1ull << 63);
                                found += !host->object_release(host, handle | 1ull << 63);
                            }
                            found += !host->object_release(host, 0) + !host->object_release(host, UINT64_MAX);
                            reply_int(call->token, found);
                            """),
                    .init(
                        name: "releaseInside",
                        body: """
                            mine = make();
                            plugin_request request = ask_object(mine, "letGo");
                            host->perform(host, call->token, &request, pass_on, (void *)call->token);
                            """),
                ])
        ],
        types: [
            (
                "Thing",
                [
                    .init(name: "touch", body: "reply_int(call->token, call->instance == &mine);"),
                    .init(
                        name: "letGo",
                        body: "host->object_release(host, mine); reply_int(call->token, destroyed);"),
                ]
            )
        ])

    // MARK: Callbacks

    @Test func `A callback is called now, later, and more than once`() async throws {
        let seen = Mutex<[Value]>([])
        let callback = host.callback { arguments in
            seen.withLock { $0 += arguments }
            return nil
        }
        try host.perform("Callbacks", "call", ["callback": .object(callback.object), "times": 3])
        #expect(seen.withLock { $0 } == [0, 1, 2])
        try host.perform("B", "remember", ["callback": .object(callback.object)])
        try host.perform("B", "remember", ["callback": .object(callback.object)])
        #expect(try await host.call("B", "callBack", ["text": "later"]) == 2)
        #expect(seen.withLock { $0 } == [0, 1, 2, "later", "later"])
    }

    @Test func `An asynchronous callback is awaited`() async throws {
        let callback = host.callback { arguments async throws -> Value in
            try await Task.sleep(for: .milliseconds(1))
            return .list(arguments.reversed())
        }
        #expect(try await callback(1, 2) == [2, 1])
        #expect(throws: PluginError.self) { try callback.object.perform("call") }
    }

    @Test func `The error of a callback is the error of its call`() throws {
        let callback = host.callback { _ throws -> Value in throw PluginError("no", "No.") }
        let error = #expect(throws: PluginError.self) {
            try host.perform("Callbacks", "call", ["callback": .object(callback.object), "times": 1])
        }
        #expect(error?.code == "no")
    }

    @Test func `A callback takes no named parameters, and has no other action`() throws {
        let callback = host.callback { _ in 1 }
        let named = #expect(throws: PluginError.self) { try callback.object.perform("call", ["a": 1]) }
        #expect(named?.code == .unknownParameter)
        let other = #expect(throws: PluginError.self) { try callback.object.perform("cal") }
        #expect(other?.code == .unknownAction)
    }

    @Test func `A callback of a module is called from the program, from many threads at once`() async throws {
        let callback = try Callback(host.perform("Callbacks", "make"))
        let counts = try await onThreads(4) { _ in
            for _ in 0..<200 { #expect(try callback(1, 2, 3) == 3) }
            return try callback()
        }
        #expect(counts == [0, 0, 0, 0])
    }

    @Test func `A callback releases what it holds when its last holder releases it`() async throws {
        final class Held: Sendable {}
        weak var held: Held?
        do {
            let value = Held()
            held = value
            let callback = host.callback { _ in
                withExtendedLifetime(value) {}
                return nil
            }
            try host.perform("B", "remember", ["callback": .object(callback.object)])
        }
        #expect(held != nil)
        _ = try await host.call("B", "callBack", ["text": ""])
        #expect(await becomesTrue { held == nil })
    }

    @Test func `A callback from C is called from a thread of its own, and destroyed once`() async throws {
        let module = CModule(
            name: "CallingBack",
            code: """
                static atomic_int destroyed, called; static plugin_object callback;
                static void invoke(void *data, const plugin_call *call, const plugin_value *values, uint32_t count) {
                    (void)values; atomic_fetch_add((atomic_int *)data, 1); reply_int(call->token, count);
                }
                static void destroy(void *data) { (void)data; atomic_fetch_add(&destroyed, 1); }
                static void ignore(void *data, const plugin_value *value, const plugin_error *error) {
                    (void)data, (void)value, (void)error;
                }
                static void *call_it(void *data) {
                    for (int i = 0; i < 100; i++) {
                        plugin_entry entries[2] = {{{0, 0}, plugin_value_int(1)}, {{0, 0}, plugin_value_int(2)}};
                        plugin_request request = ask(0, "call");
                        request.address = PLUGIN_ADDRESS_OBJECT; request.object = callback;
                        request.parameters = entries; request.parameter_count = 2;
                        host->perform(host, 0, &request, ignore, 0);
                    }
                    host->object_release(host, callback);
                    reply_int((plugin_token)data, called);
                    return 0;
                }
                """,
            targets: [
                .init(
                    name: "T",
                    actions: [
                        .init(
                            name: "run", manifest: "\"async\":true,",
                            body: """
                                callback = host->callback_create(host, invoke, &called, destroy, 0);
                                start(call_it, (void *)call->token);
                                """),
                        .init(name: "destroyed", body: "reply_int(call->token, destroyed);"),
                        .init(
                            name: "null", body: "reply_int(call->token, host->callback_create(host, 0, 0, destroy, 0));"
                        ),
                    ])
            ])
        let calling = try TestHost([module.build()])
        #expect(try await calling.host.call("T", "run") == 100)
        #expect(try calling.host.perform("T", "destroyed") == 1)
        #expect(try calling.host.perform("T", "null") == 0)
        #expect(try calling.host.perform("T", "destroyed") == 1)
    }
}
