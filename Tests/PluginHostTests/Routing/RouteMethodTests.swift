import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Routes that answer one HTTP method only.
@Suite struct RouteMethodTests {
    private let test: TestHost
    private var host: PluginHost { test.host }

    init() throws {
        test = try TestHost { configuration, _ in configuration.schemes = ["app", "https"] }
        try test.host.register(
            Manifest("Shop", version: "1.0.0") {
                Target("Shop") {
                    Action("show", .optional("id", String.self)) { "show \($0 ?? "")" }.remote()
                    Action("remove", .optional("id", String.self)) { "remove \($0 ?? "")" }.remote()
                    Action("any", .optional("id", String.self)) { "any \($0 ?? "")" }.remote()
                    Action("secret") { "secret" }
                    Action("home") { "home" }.remote()
                    Action("sent") { "sent" }.remote()
                }
                Route("https://*/shop/:id", to: "Shop/show").method(.get)
                Route("https://*/shop/:id", to: "Shop/remove").method(.delete)
                Route("https://*/any/:id", to: "Shop/any")
                Route("https://*/any/first", to: "Shop/show", defaults: ["id": "first"]).method(.post)
                Route("https://*/any/:id(\\d+)", to: "Shop/remove").method(.get)
                Route("https://*/only", to: "Shop/sent").method(.post).named("only")
                Route("https://*/secret", to: "Shop/secret").method(.put)
                Route("app://", to: "Shop/home").method(.get)
            })
    }

    private func open(_ url: String, _ method: RouteMethod?, origin: CallOrigin = .local) -> String {
        do throws(PluginError) {
            guard let method else { return try host.open(url, origin: origin).string ?? "" }
            return try host.open(url, method: method, origin: origin).string ?? ""
        } catch { return error.code.rawValue }
    }

    @Test(arguments: [CallOrigin.local, .remote])
    func `A route answers its method only, and a URL without a method is opened with GET`(origin: CallOrigin) {
        let cases: [(String, RouteMethod?, String)] = [
            ("https://a/shop/7", nil, "show 7"), ("https://a/shop/7", .get, "show 7"),
            ("https://a/shop/7", .delete, "remove 7"), ("https://a/shop/7", .post, "methodNotAllowed"),
            ("https://a/any/x", nil, "any x"), ("https://a/any/x", .post, "any x"), ("https://a/any/x", .patch, "any x"),
            ("https://a/any/first", .post, "show first"), ("https://a/any/first", .get, "any first"),
            ("https://a/any/7", .get, "remove 7"), ("https://a/any/7", .put, "any 7"),
            ("https://a/only", .post, "sent"), ("https://a/only", nil, "methodNotAllowed"),
            ("app://nowhere/at/all", nil, "home"), ("app://nowhere/at/all", .post, "methodNotAllowed"),
            ("app://Shop/sent", .put, "sent"), ("app://Shop/sent", nil, "sent"),
        ]
        for (url, method, expected) in cases {
            #expect(open(url, method, origin: origin) == expected, "\(url) \(method?.rawValue ?? "")")
            #expect(
                host.canOpen(url, method: method ?? .get, origin: origin) == (expected != "methodNotAllowed"),
                "\(url) \(method?.rawValue ?? "")")
        }
        #expect(open("https://a/none", .post, origin: origin) == (origin == .remote ? "noRoute" : "invalidURL"))
    }

    @Test func `The methods of a URL are listed, and the error names them`() throws {
        #expect(host.resolve("https://a/shop/7", method: .put).methods == [.get, .delete])
        #expect(host.resolve("https://a/shop/7", method: .put).error?.code == .methodNotAllowed)
        #expect(host.resolve("https://a/shop/7", method: .delete, origin: .remote).action == "Shop/remove")
        #expect(host.resolve("https://a/shop/7").action == "Shop/show")
        #expect(host.resolve("https://a/any/x").methods == RouteMethod.allCases)
        #expect(host.resolve("https://a/none").methods.isEmpty && host.resolve("app://Shop/none").methods == [.get])
        let error = #expect(throws: PluginError.self) { try host.open("https://a/shop/7", method: .patch) }
        #expect(error?.message.contains("GET, DELETE") == true)
    }

    @Test func `A remote caller does not learn of methods that are not remote`() {
        #expect(open("https://a/secret", .put) == "secret" && open("https://a/secret", .get) == "methodNotAllowed")
        #expect(open("https://a/secret", .put, origin: .remote) == "noRoute")
        #expect(open("https://a/secret", .get, origin: .remote) == "noRoute")
        #expect(host.resolve("https://a/secret", origin: .remote).methods.isEmpty)
    }

    @Test func `Routes with one pattern conflict unless each has a method of its own`() throws {
        func conflicts(_ pattern: String, _ method: RouteMethod?) -> Bool {
            do throws(PluginError) { try host.addRoute(pattern, to: "Shop/any", method: method) } catch {
                #expect(error.code == .conflict)
                return true
            }
            return false
        }
        #expect(conflicts("https://*/shop/:key", .get) && conflicts("https://*/shop/:key", .delete))
        #expect(conflicts("https://*/shop/:key", nil) && conflicts("https://*/only", nil))
        #expect(conflicts("https://*/any/:key", .get) && conflicts("https://*/any/:key", .patch))
        #expect(!conflicts("https://*/shop/:key", .put) && open("https://a/shop/7", .put) == "any ")
        #expect(host.resolve("https://a/shop/7").methods == [.get, .put, .delete])
        let listed = host.routes.filter { $0.pattern.hasPrefix("https://*/shop") }.map { $0.method?.rawValue ?? "" }
        #expect(listed.sorted() == ["DELETE", "GET", "PUT"])
        try host.updateRoute("https://*/shop/:id", to: "Shop/home", method: .delete)
        #expect(open("https://a/shop/7", .delete) == "home" && open("https://a/shop/7", .get) == "show 7")
        #expect(host.removeRoute("https://*/shop/:id"))
        #expect(host.resolve("https://a/shop/7").methods == [.put])
        #expect(host.removeRoute("https://*/shop/:key") && host.resolve("https://a/shop/7").methods.isEmpty)
        host.removeRoutes(ofModule: "Shop")
        #expect(host.routes.isEmpty)
    }

    @Test func `A module with two routes of one pattern, one of them for every method, is refused`() {
        for methods in [[nil, .get], [.post, nil], [.put, .put]] as [[RouteMethod?]] {
            let error = #expect(throws: PluginError.self) {
                try host.register(
                    Manifest("Twice", version: "1.0.0") {
                        Target("Twice") { Action("act") {} }
                        for method in methods {
                            if let method {
                                Route("app://twice/:x", to: "Twice/act").method(method)
                            } else {
                                Route("app://twice/:y", to: "Twice/act")
                            }
                        }
                    })
            }
            #expect(error?.code == .invalidManifest, "\(methods)")
        }
    }

    @Test func `A built URL opens the route for its method`() throws {
        try host.addRoute("app://sent/:x", to: "Shop/any", name: "sentTo", method: .post)
        let url = try host.url(for: "sentTo", ["x": "7"])
        #expect(url == "app://sent/7" && open(url, .post) == "any ")
    }

    @Test func `Modules and route files declare methods`() throws {
        let module = CModule(
            name: "Two",
            moreManifest: """
                "routes": [{"pattern": "app://two/:x", "action": "Two/answer", "method": "POST"},
                           {"pattern": "app://two/:x", "action": "Two/other", "method": "PUT"}],
                """,
            actions: [
                ("other", "reply(call, \"other\");"),
                (
                    "ask",
                    """
                    plugin_request request = plugin_request_action(text("app://two/1"), (plugin_string){NULL, 0}, NULL, 0);
                    request.address = PLUGIN_ADDRESS_URL;
                    request.method = PLUGIN_METHOD_PUT;
                    host->perform(host, call->token, &request, pass_on, (void *)call->token);
                    """
                ),
                (
                    "wrong",
                    """
                    plugin_request request = plugin_request_action(text("app://two/1"), (plugin_string){NULL, 0}, NULL, 0);
                    request.address = PLUGIN_ADDRESS_URL;
                    request.method = 6;
                    host->perform(host, call->token, &request, pass_on, (void *)call->token);
                    """
                ),
            ])
        let library = try module.build()
        for isolated in [false, true] {
            let test = try TestHost { configuration, folder in
                try folder.copy(library, as: "plugins/two.so")
                configuration.watches = false
                if isolated { configuration.isolation.modules = .all }
            }
            try test.put(
                "{\"app://three/:x\": {\"action\": \"Two/other\", \"method\": \"DELETE\"}}", "more.routes.json")
            try test.host.start()
            #expect(try test.host.open("app://two/1", method: .post) == "yes")
            #expect(try test.host.perform("Two", "ask") == "other")
            #expect(test.code("Two", "wrong") == .invalidValue)
            #expect(try test.host.open("app://three/1", method: .delete) == "other")
            #expect(throws: PluginError.self) { try test.host.open("app://three/1") }
        }
    }
}
