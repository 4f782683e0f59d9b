import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// What modules do with URLs: query, build and open them, and reply with objects.
@Suite struct ModuleURLTests {
    @Test("modules ask whether a URL opens, and build URLs, as the program does")
    func modulesAsk() throws {
        let test = try TestHost([built("libModuleA.so")])
        let host = test.host
        try host.register(
            Manifest("Asks", version: "1.0.0") {
                Target("Asks") {
                    Action("canOpen", .context(), .required("url", String.self), .required("remote", Bool.self)) {
                        context, url, isRemote in
                        context.canOpen(url, origin: isRemote ? .remote : .local)
                    }
                    Action("url", .context(), .required("route", String.self), .required("values", Value.self)) {
                        context, route, values in
                        try context.url(for: route, values.map ?? [:])
                    }
                    Action("release", .context(), .required("target", String.self)) { context, target in
                        try context.release(target)
                    }
                }
            })
        #expect(try host.perform("Asks", "canOpen", ["app://A/nativeSecret", false]) == true)
        #expect(try host.perform("Asks", "canOpen", ["app://A/nativeSecret", true]) == false)
        #expect(try host.perform("Asks", "canOpen", ["app://shop/detail/lamp/two", false]) == false)
        let built = try host.perform("Asks", "url", ["detail", ["key": "a/b", "page": 2] as Value])
        #expect(built == "app://shop/detail/a%2Fb/2")
        let error = #expect(throws: PluginError.self) { try host.perform("Asks", "url", ["detail", [:] as Value]) }
        #expect(error?.code == .missingParameter && error?.message.contains("key") == true)
        try host.perform("Counter", "add", ["n": 2])
        #expect(try host.perform("Asks", "release", ["Counter"]) == true)
        #expect(try host.perform("Counter", "add", ["n": 2]) == 2)
        let unknown = #expect(throws: PluginError.self) { try host.perform("Asks", "release", ["Count"]) }
        #expect(unknown?.code == .unknownTarget)
    }

    @Test("a module in C can do the same")
    func modulesAskInC() throws {
        let module = CModule(
            name: "Asks",
            targets: [
                .init(
                    name: "Asks",
                    actions: [
                        .init(
                            name: "canOpen", parameters: ["url": "string"],
                            body: """
                                const plugin_routes *routes = host->get_extension(host, PLUGIN_STRING(PLUGIN_ROUTES_EXTENSION));
                                plugin_request request = {.size = sizeof request,
                                    .target = {arguments[0].as.string, arguments[0].count}};
                                reply_int(call->token, routes->can_open(host, 0, &request));
                                """),
                        .init(
                            name: "url", parameters: ["key": "string"],
                            body: """
                                const plugin_routes *routes = host->get_extension(host, PLUGIN_STRING(PLUGIN_ROUTES_EXTENSION));
                                plugin_entry key = {PLUGIN_STRING("key"), arguments[0]};
                                plugin_request request = ask("detail", 0);
                                request.parameters = &key; request.parameter_count = 1;
                                routes->build(host, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "open", parameters: ["url": "string"],
                            body: """
                                plugin_entry page = {PLUGIN_STRING("page"), plugin_value_int(4)};
                                plugin_request request = {.size = sizeof request, .address = PLUGIN_ADDRESS_URL,
                                    .target = {arguments[0].as.string, arguments[0].count},
                                    .parameters = &page, .parameter_count = 1};
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "bad",
                            body: """
                                const plugin_routes *routes = host->get_extension(host, PLUGIN_STRING(PLUGIN_ROUTES_EXTENSION));
                                plugin_request request = ask("\\xFF", 0);
                                if (routes->can_open(host, 0, 0) || routes->can_open(host, 0, &request)) abort();
                                routes->build(host, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "release",
                            body: """
                                const plugin_instances *instances =
                                    host->get_extension(host, PLUGIN_STRING(PLUGIN_INSTANCES_EXTENSION));
                                instances->release(host, text("Counter"), pass_on, (void *)call->token);
                                """),
                    ])
            ])
        let test = try TestHost([built("libModuleA.so"), module.build()])
        #expect(try test.host.perform("Asks", "canOpen", ["app://shop/detail/lamp"]) == 1)
        #expect(try test.host.perform("Asks", "canOpen", ["app://shop/lamp"]) == 0)
        #expect(try test.host.perform("Asks", "url", ["lamp"]) == "app://shop/detail/lamp")
        #expect(try test.host.perform("Asks", "open", ["app://shop/detail/lamp"])["page"] == 4)
        #expect(try test.failure("Asks", "open", ["app://shop/lamp"]).code == .unknownTarget)
        #expect(try test.failure("Asks", "bad").code == .invalidValue)
        #expect(try test.host.perform("Asks", "release") == false)
    }

    private final class Thing: Sendable {
        let id: Int
        init(_ id: Int) { self.id = id }
    }

    private func hostWithThings() throws -> TestHost {
        let test = try TestHost([])
        try test.host.register(Self.things)
        return test
    }

    private static let things = Manifest("Things", version: "1.0.0") {
        Target("Things") {
            Action(
                "thing", .context(), .required("id", Int.self), .optional("_object", Bool.self),
                .optional("_pattern", String.self)
            ) { context, id, asksForObject, pattern -> Value in
                guard asksForObject == true else { return .string("\(id) by \(pattern ?? "-")") }
                return .object(try context.object("Thing", Thing(id)))
            }
            Action("use", .required("thing", Object.self), .required("tell", Callback.self)) { thing, tell -> Value in
                try tell(thing.perform("id"))
            }
            Action("fails") { () throws -> Value in throw PluginError("broken", "It is broken.") }
        }
        ObjectType("Thing", Thing.self) { Action("id", .instance()) { $0.id } }
    }

    @Test("if a caller requests an object for a URL, any other result is an error")
    func objects() async throws {
        let test = try hostWithThings()
        let host = test.host
        try host.addRoute("app://by-number/:id", to: "Things/thing")
        #expect(try await host.open("app://by-number/3") == "3 by app://by-number/:id")
        #expect(try await host.open("app://Things/thing?id=4") == "4 by -")
        #expect(try await host.object(for: "app://by-number/3").perform("id") == 3)
        try host.register(
            Manifest("Asks", version: "1.0.0") {
                Target("Asks") {
                    Action("object", .context(), .required("url", String.self)) { context, url async throws in
                        try await context.object(for: url).perform("id")
                    }
                }
            })
        #expect(try await host.call("Asks", "object", ["app://by-number/5"]) == 5)
        try host.register(
            Manifest("Plain", version: "1.0.0") { Target("Plain") { Action("number") { 7 } } })
        let error = await #expect(throws: PluginError.self) { try await host.object(for: "app://Plain/number") }
        #expect(error?.code == .invalidResult)
    }

    @Test("modules open URLs, also with objects and callbacks as parameters, and get one outcome")
    func modulesOpen() async throws {
        let test = try hostWithThings()
        let host = test.host
        try host.addRoute("app://use", to: "Things/use")
        try host.register(
            Manifest("Opens", version: "1.0.0") {
                Target("Opens") {
                    Action("now", .context(), .required("url", String.self)) { context, url -> Value in
                        try context.open(url)
                    }
                    Action("later", .context(), .required("url", String.self)) { context, url async throws -> Value in
                        try await context.open(url)
                    }
                    Action("with", .context(), .required("thing", Object.self)) { context, thing -> Value in
                        let tell = context.callback { arguments in .list(arguments + ["told"]) }
                        return try context.open("app://use", ["thing": .object(thing), "tell": tell.value])
                    }
                }
            })
        for action in ["now", "later"] {
            #expect(try await host.call("Opens", action, ["app://Things/thing?id=3"]) == "3 by -")
            for (url, code) in [
                ("app://Things/fails", "broken"), ("app://Things/thing?id=x", "mistypedParameter"),
                ("app://nowhere", "invalidURL"), ("app://Things/%zz", "invalidURL"), ("app://No/one", "unknownTarget"),
            ] as [(String, PluginError.Code)] {
                let error = await #expect(throws: PluginError.self) {
                    try await host.call("Opens", action, [.string(url)])
                }
                #expect(error?.code == code, "\(url)")
            }
        }
        let thing = try await host.object(for: "app://Things/thing?id=9")
        #expect(try host.perform("Opens", "with", [.object(thing)]) == [9, "told"])
        #expect(test.staleReplies == 0)
    }
}
