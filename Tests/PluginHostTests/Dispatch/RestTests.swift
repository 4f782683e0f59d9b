import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Actions with a rest: parameters that they do not declare arrive in one map.
@Suite struct RestTests {
    private func fixture() throws -> TestHost { try TestHost.withFixture() }

    @Test func `Named parameters that an action does not declare are its rest`() throws {
        let test = try fixture()
        let found = try test.host.perform("Open", "search", ["color": "red", "text": "lamp", "size": [1, 2]])
        #expect(found == ["text": "lamp", "page": 1, "rest": ["color": "red", "size": [1, 2]]])
        #expect(try test.host.perform("Open", "all", ["a": nil, "b": 1]) == ["a": nil, "b": 1])
    }

    @Test func `A rest without parameters is an empty map`() throws {
        let test = try fixture()
        #expect(try test.host.perform("Open", "search", ["text": "x"])["rest"] == [:])
        #expect(try test.host.perform("Open", "all") == [:])
    }

    @Test func `Declared parameters are checked and converted beside a rest`() throws {
        let test = try fixture()
        #expect(try test.host.perform("Open", "search", ["text": "x", "page": 3.0, "a": 3.5])["page"] == 3)
        #expect(try test.failure("Open", "search", ["a": 1]).code == .missingParameter)
        #expect(try test.failure("Open", "search", ["text": 1, "a": 1]).code == .mistypedParameter)
    }

    @Test(
        arguments: [
            ["x", 2, ["a": 1, "b": "c"] as Value], ["text": "x", "page": 2, "a": 1, "b": "c"],
            ["b": "c", "a": 1, "page": 2, "text": "x"],
        ] as [Parameters])
    func `By position, a rest is a map after the declared parameters`(parameters: Parameters) throws {
        let test = try fixture()
        let found = try test.host.perform("Open", "search", parameters)
        #expect(found == ["text": "x", "page": 2, "rest": ["a": 1, "b": "c"]])
    }

    @Test func `By position, a rest can be left out, or be null`() throws {
        let test = try fixture()
        let empty: Value = ["text": "x", "page": 2, "rest": [:]]
        for parameters: Parameters in [["x", 2], ["x", 2, nil], ["x", 2, [:] as Value]] {
            #expect(try test.host.perform("Open", "search", parameters) == empty)
        }
        #expect(try test.host.perform("Open", "all", [["a": 1]]) == ["a": 1])
    }

    @Test func `By position, a rest is a map and the last parameter, or the call is refused`() throws {
        let test = try fixture()
        let mistyped = try test.failure("Open", "search", ["x", 2, "y"])
        #expect(mistyped.code == .mistypedParameter && mistyped.message.contains("rest"))
        let tooMany = try test.failure("Open", "search", ["x", 2, [:] as Value, [:] as Value])
        #expect(tooMany.code == .unknownParameter && tooMany.message.contains("rest"))
    }

    @Test func `The entries of a rest that is given by position count as if they had been named`() throws {
        let test = try fixture()
        let positional = Parameters([("", "x"), ("", 2), ("", ["text": "y", "a": 1]), ("a", 2), ("b", 3)])
        #expect(
            try test.host.perform("Open", "search", positional)
                == ["text": "x", "page": 2, "rest": ["a": 1, "b": 3]])
        let page = Parameters([("", "x"), ("", nil), ("", ["page": 5])])
        #expect(try test.host.perform("Open", "search", page)["page"] == 1)
    }

    @Test func `Of equal names the first one counts, in a rest as elsewhere`() throws {
        let test = try fixture()
        let twice = Parameters([("text", "x"), ("a", 1), ("text", "y"), ("a", 2), ("b", 3), ("a", 4)])
        #expect(
            try test.host.perform("Open", "search", twice) == ["text": "x", "page": 1, "rest": ["a": 1, "b": 3]])
    }

    @Test func `A rest can have any number of entries`() throws {
        let test = try fixture()
        let entries = (0..<20_000).map { ("name \($0 % 15_000)", Value.int($0)) }
        let rest = try #require(try test.host.perform("Open", "all", Parameters(entries)).map)
        #expect(rest.count == 15_000 && rest["name 7"] == 7)
    }

    @Test(arguments: ["_url", "_pattern", "_object", "_event", "_parameters"])
    func `A name that is reserved for the host is never in a rest`(name: String) throws {
        let test = try fixture()
        let named = try test.failure("Open", "search", Parameters([("text", "x"), (name, 1)]))
        #expect(named.code == .unknownParameter && named.message.contains(name))
        let byPosition = try test.failure("Open", "search", ["x", 1, .map([name: 1])])
        #expect(byPosition.code == .unknownParameter)
        #expect(try test.host.perform("Open", "all", ["_other": 1]) == ["_other": 1])
    }

    @Test func `A rest has at most as many levels as a value`() throws {
        let test = try fixture()
        func nested(_ depth: Int) -> Value { (0..<depth).reduce(.int(1)) { value, _ in [value] } }
        #expect(try test.host.perform("Open", "all", ["a": nested(126)]) == ["a": nested(126)])
        #expect(try test.failure("Open", "all", ["a": nested(128)]).code == .invalidValue)
    }

    @Test func `A rest may be anywhere among the inputs of a closure`() throws {
        let test = try fixture()
        #expect(
            try test.host.perform("Open", "first", ["a": 1, "text": "x"]) == ["text": "x", "rest": ["a": 1]])
        #expect(try test.host.perform("Open", "first", ["x", ["a": 1]]) == ["text": "x", "rest": ["a": 1]])
    }

    @Test func `Asynchronous and serial actions, services and objects can have a rest`() async throws {
        let test = try fixture()
        let host = test.host
        #expect(try await host.call("Open", "later", ["text": "x", "a": [1]]) == ["text": "x", "rest": ["a": [1]]])
        #expect(try host.perform("OpenSerial", "all", ["a": 1]) == ["a": 1])
        #expect(try host.fresh.perform("OpenSerial", "all", ["a": 1]) == ["a": 1])
        try await withThrowingTaskGroup(of: (Int, Value).self) { group in
            for number in 0..<20 {
                group.addTask { (number, try await host.call("OpenSerial", "later", ["a": .int(number)])) }
            }
            for try await (number, rest) in group { #expect(rest == ["a": .int(number)]) }
        }
        #expect(try host.service("Opening").perform("all", ["a": 1]) == ["a": 1])
        let link = try #require(try host.perform("Open", "link").object)
        #expect(try link.perform("all", ["a": 1]) == ["a": 1])
        #expect(try link.perform("all") == [:])
    }

    @Test func `A bound action gets the same rest as an action that is called by name`() throws {
        let test = try fixture()
        let search = test.host.bind("Open", "search")
        #expect(try search.perform(["text": "x", "a": 1])["rest"] == ["a": 1])
        let typed: Value = try search("x", 2, ["a": 1] as Value)
        #expect(typed == ["text": "x", "page": 2, "rest": ["a": 1]])
        let without: Value = try search("x", 2)
        #expect(without["rest"] == [:])
        let all: Value = try test.host.bind("Open", "all")()
        #expect(all == [:])
    }

    @Test func `An action of a program can have a rest`() throws {
        let test = try TestHost([])
        try test.host.register(
            Manifest("Own", version: "1.0.0") {
                Target("Own") { Action("all", .context(), .rest()) { _, rest -> Value in .map(rest) } }
            })
        #expect(try test.host.perform("Own", "all", ["a": 1]) == ["a": 1])
    }

    @Test func `In C, a rest is one more argument, a map that is never null`() throws {
        let tell = """
            char text[256];
            if (count != 2 || arguments[1].kind != PLUGIN_KIND_MAP) { refuse(call, "no map"); return; }
            const plugin_value *color = plugin_map_find(&arguments[1], "color");
            plugin_string name = plugin_string_of(color);
            snprintf(text, sizeof text, "%u of %.*s: %.*s", arguments[1].count, (int)arguments[0].count,
                     arguments[0].as.string, (int)name.count, name.bytes);
            reply(call, text);
            """
        let module = CModule(
            targets: [
                .init(
                    name: "Open",
                    actions: [
                        .init(name: "tell", manifest: "\"rest\": true, ", parameters: ["text": "string"], body: tell),
                        .init(
                            name: "ask",
                            body: """
                                plugin_entry entries[] = {{PLUGIN_STRING("color"), plugin_value_text("green")},
                                    {PLUGIN_STRING("text"), plugin_value_text("bound")}};
                                plugin_request request = ask("Open", "tell");
                                request.parameters = entries; request.parameter_count = 2;
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "bound",
                            body: """
                                const plugin_bound *bound = host->get_extension(host, PLUGIN_STRING(PLUGIN_BOUND_EXTENSION));
                                plugin_bound_action action = bound->bind(host, text("Open"), text("tell"));
                                plugin_entry color = {PLUGIN_STRING("color"), plugin_value_text("blue")};
                                plugin_value both[] = {plugin_value_text("lamp"), plugin_value_map(&color, 1)};
                                bound->perform(host, action, both, 2, NULL, pass_on, (void *)call->token);
                                """),
                    ])
            ])
        let test = try TestHost([module.build()])
        #expect(try test.host.perform("Open", "tell", ["text": "x", "color": "red", "b": 1]) == "2 of x: red")
        #expect(try test.host.perform("Open", "tell", ["x"]) == "0 of x: ")
        #expect(try test.host.perform("Open", "ask") == "1 of bound: green")
        #expect(try test.host.perform("Open", "bound") == "1 of lamp: blue")
        #expect(try test.host.open("app://Open/tell?text=x&color=red") == "1 of x: red")
    }

    @Test func `An interceptor sees the rest among the parameters, and can change it`() throws {
        let test = try fixture()
        let seen = Mutex<[[String: Value]]>([])
        let interceptor = test.host.intercept(.target("Open")) { call, next in
            seen.withLock { $0.append(call.parameters) }
            var call = call
            call.parameters["color"] = "blue"
            call.parameters["extra"] = true
            return try next(call)
        }
        defer { interceptor.remove() }
        let expected: Value = ["text": "x", "page": 1, "rest": ["color": "blue", "size": 2, "extra": true]]
        #expect(try test.host.perform("Open", "search", ["text": "x", "color": "red", "size": 2]) == expected)
        #expect(try test.host.perform("Open", "search", ["x", 1, ["color": "red", "size": 2] as Value]) == expected)
        #expect(
            seen.withLock { $0 } == [
                ["text": "x", "color": "red", "size": 2], ["text": "x", "page": 1, "color": "red", "size": 2],
            ])
        #expect(try test.failure("Open", "search", ["x", 1, 2]).code == .mistypedParameter)
        #expect(try test.failure("Open", "search", ["x", 1, [:] as Value, 2]).code == .unknownParameter)
    }

    @Test func `A subscriber with a rest gets the parameters of the event that it does not declare`() throws {
        let test = try TestHost([])
        let heard = Mutex<[Value]>([])
        try test.host.register(
            Manifest("Hears", version: "1.0.0") {
                Subscribe {
                    Action("shop.sold", .optional("item", String.self), .rest()) { item, rest in
                        heard.withLock { $0.append(["item": item.map(Value.string) ?? nil, "rest": .map(rest)]) }
                    }
                }
            })
        try test.host.post("shop.sold", ["price": 2, "item": "tea", "_url": "x"])
        try test.host.post("shop.sold", ["item": "tea"])
        #expect(
            heard.withLock { $0 } == [["item": "tea", "rest": ["price": 2]], ["item": "tea", "rest": [:]]])
    }

    @Test func `A handler along the chain gets the parameters of the event that it does not declare`() throws {
        let test = try TestHost([])
        try test.host.register(
            Manifest("Handles", version: "1.0.0") {
                Target("Handles") {
                    Action("handle.shop.choose", .required("key", String.self), .rest()) { key, rest -> Value in
                        ["handled": true, "result": .map(["key": .string(key), "rest": .map(rest)])]
                    }
                    Action("emit", .context()) { context in
                        try context.emit("shop.choose", ["key": "tea", "size": 2, "_event": "x"]).result
                    }
                }
            })
        #expect(try test.host.perform("Handles", "emit") == ["key": "tea", "rest": ["size": 2]])
    }

    @Test func `A fallback with a rest gets the call's parameters as one entry of it`() throws {
        let test = try fixture()
        #expect(
            try test.host.perform("OpenLost", "gone", ["a": 1])
                == ["action": "gone", "rest": ["parameters": ["a": 1]]])
    }

    @Test func `A callback has no rest: it takes arguments by position as they are given`() throws {
        let test = try fixture()
        let callback = test.host.callback { arguments in .list(arguments) }
        #expect(try callback([1, ["a": 2]] as Value) == [[1, ["a": 2]]])
        let named = #expect(throws: PluginError.self) { try callback.object.perform("call", ["a": 1]) }
        #expect(named?.code == .unknownParameter)
    }
}
