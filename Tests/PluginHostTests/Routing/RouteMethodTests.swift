import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Routes that accept only one HTTP method.
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

    @Test func `Closures of the program share a pattern if each has a method`() async throws {
        try host.addRoute("https://*/note", isRemote: true, method: .get) { _ in "read" }
        try host.addRoute("https://*/note", isRemote: true, method: .put) { _ async in "stored" }
        try host.addRoute("https://*/note", method: .delete) { (_: [String: Value]) in }
        #expect(open("https://a/note", nil) == "read" && open("https://a/note", .delete) == "")
        #expect(try await host.open("https://a/note", method: .put) == "stored")
        #expect(open("https://a/note", .post) == "methodNotAllowed")
        #expect(open("https://a/note", .delete, origin: .remote) == "methodNotAllowed")
        #expect(host.routes.filter { $0.pattern == "https://*/note" }.map(\.method) == [.get, .put, .delete])
        #expect(throws: PluginError.self) { try host.addRoute("https://*/note", method: .put) { _ in "again" } }
    }

    @Test(arguments: [CallOrigin.local, .remote])
    func `A route answers its method only, and a URL without a method is opened with GET`(origin: CallOrigin) {
        let cases: [(String, RouteMethod?, String)] = [
            ("https://a/shop/7", nil, "show 7"), ("https://a/shop/7", .get, "show 7"),
            ("https://a/shop/7", .delete, "remove 7"), ("https://a/shop/7", .post, "methodNotAllowed"),
            ("https://a/any/x", nil, "any x"), ("https://a/any/x", .post, "any x"),
            ("https://a/any/x", .patch, "any x"),
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
        #expect(open("https://a/b/none", .post, origin: origin) == (origin == .remote ? "noRoute" : "invalidURL"))
    }

    @Test func `The methods of a URL are listed, and the error names them`() throws {
        #expect(host.resolve("https://a/shop/7", method: .put).methods == [.get, .delete])
        #expect(host.resolve("https://a/shop/7", method: .put).error?.code == .methodNotAllowed)
        #expect(host.resolve("https://a/shop/7", method: .delete, origin: .remote).action == "Shop/remove")
        #expect(host.resolve("https://a/shop/7").action == "Shop/show")
        for origin in [CallOrigin.local, .remote] {
            let error = #expect(throws: PluginError.self) {
                try host.destination(of: "https://a/only", origin: origin)
            }
            #expect(error?.code == .methodNotAllowed)
            #expect(host.resolve("https://a/only", origin: origin).error?.code == .methodNotAllowed)
        }
        #expect(host.resolve("https://a/any/x").methods == RouteMethod.allCases)
        #expect(host.resolve("https://a/b/none").methods.isEmpty && host.resolve("app://Shop/none").methods == [.get])
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
        #expect(!conflicts("https://*/shop/:id", .put) && open("https://a/shop/7", .put) == "any 7")
        #expect(host.resolve("https://a/shop/7").methods == [.get, .put, .delete])
        let listed = host.routes.filter { $0.pattern.hasPrefix("https://*/shop") }.map { $0.method?.rawValue ?? "" }
        #expect(listed.sorted() == ["DELETE", "GET", "PUT"])
        try host.updateRoute("https://*/shop/:id", to: "Shop/any", method: .delete)
        #expect(open("https://a/shop/7", .delete) == "any 7" && open("https://a/shop/7", .get) == "show 7")
        #expect(host.removeRoute("https://*/shop/:id"))
        #expect(host.resolve("https://a/shop/7").methods.isEmpty && !host.removeRoute("https://*/shop/:id"))
        host.removeRoutes(ofModule: "Shop")
        #expect(host.routes.isEmpty)
    }

    /// Patterns that are equally specific for a URL. The text of the first one sorts first.
    @Test(arguments: [
        ("app://m/:a(\\d+)", "app://m/:z([0-9])", "app://m/7"), ("app://m/:a-7/b", "app://m/b-:x/b", "app://m/b-7/b"),
        ("app://m/:a-1/:b", "app://m/a-:b/:c", "app://m/a-1/x"), ("app://m/x{/a}?", "app://m/x{/b}?", "app://m/x"),
        ("app://:a(\\d).m/x", "app://:z([0-8]).m/x", "app://7.m/x"), ("app://m/:a-*", "app://m/b-*", "app://m/b-1"),
    ])
    func `Of equally specific routes, the one with the method wins`(all: String, one: String, url: String) throws {
        for method in [RouteMethod.get, .post] {
            for isFirst in [true, false] {
                if isFirst { try host.addRoute(one, to: "Shop/sent", method: method) }
                try host.addRoute(all, to: "Shop/home")
                if !isFirst { try host.addRoute(one, to: "Shop/sent", method: method) }
                let found = host.resolve(url, method: method)
                #expect(found.route == one)
                for other in found.others where other.pattern == all {
                    #expect(other.reason == "it is equally specific and answers every method, the other only this one")
                }
                host.removeRoute(one)
                #expect(host.resolve(url, method: method).route != one)
                host.removeRoute(all)
            }
        }
    }

    @Test func `A pattern for one method has the rank of the best of its variants that matches`() throws {
        try host.addRoute("app://s/x{/:a}?{/b}?", to: "Shop/sent", method: .post)
        try host.addRoute("app://s/x/:n(\\w)", to: "Shop/home")
        let actions = [("b", RouteMethod.post), ("c", .post), ("b", .get)].map {
            host.resolve("app://s/x/\($0)", method: $1).action
        }
        #expect(actions == ["Shop/sent", "Shop/home", "Shop/home"])
        try host.addRoute("app://s/x{/:a}?{/b}?{/c}?", to: "Shop/any", method: .get)
        let other = host.resolve("app://s/x/b").others.first
        #expect(other?.reason == "segment 2 is a group with an expression, which a literal precedes")
    }

    @Test func `A route is updated for its method, and an override stays if its owner changes the method`() throws {
        let error = #expect(throws: PluginError.self) {
            try host.updateRoute("https://*/shop/:id", to: "Shop/any")
        }
        #expect(error?.code == .invalidURL && open("https://a/shop/7", .get) == "show 7")
        #expect(throws: PluginError.self) { try host.updateRoute("https://*/any/:id", to: "Shop/sent", method: .get) }
        try host.updateRoute("https://*/any/:id", to: "Shop/show")
        #expect(open("https://a/any/x", .get) == "show x" && open("https://a/any/x", .put) == "show x")

        func module(_ version: String, _ routes: String) -> CModule {
            CModule(name: "Two", version: version, moreManifest: "\"routes\": [\(routes)],")
        }
        let test = try TestHost { configuration, _ in configuration.watches = false }
        let all = #"{"pattern": "app://two/x", "action": "Two/answer"}"#
        let some = ["POST", "GET"].map { all.dropLast() + #", "method": "\#($0)"}"# }.joined(separator: ", ")
        try module("1.0.0", all).build(into: test.plugins, as: "two.so")
        try test.put(#"{"app://three/1": {"action": "Two/answer"}}"#, "three.routes.json")
        try test.start()
        try test.host.register(
            Manifest("Own", version: "1.0.0") { Target("Own") { Action("act") { "own" } } })
        try test.host.updateRoute("app://two/x", to: "Own/act")
        try module("2.0.0", some).build(into: test.plugins, as: "two.so")
        try test.host.lifecycle.update()
        #expect(test.status("two.so")?.version == "2.0.0" && test.host.problems.isEmpty)
        for method in [RouteMethod.get, .post] { #expect(try test.host.open("app://two/x", method: method) == "own") }
        #expect(test.host.removeRoute("app://two/x"))
        try test.put(#"{"app://three/2": {"action": "Two/answer"}}"#, "more.routes.json")
        try test.host.lifecycle.update()
        #expect(test.host.resolve("app://three/2").action == "Two/answer")
        #expect(test.host.resolve("app://two/x").methods.isEmpty)
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
        try host.addRoute("app://sent/:id", to: "Shop/any", name: "sentTo", method: .post)
        let url = try host.url(for: "sentTo", ["id": "7"])
        #expect(url == "app://sent/7" && open(url, .post) == "any 7")
    }

    @Test func `Modules and route files declare methods`() throws {
        let module = CModule(
            name: "Two",
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
            ],
            moreManifest: """
                "routes": [{"pattern": "app://two/1", "action": "Two/answer", "method": "POST"},
                           {"pattern": "app://two/1", "action": "Two/other", "method": "PUT"}],
                """)
        let library = try module.build()
        for isolated in [false, true] {
            let test = try TestHost { configuration, folder in
                try folder.copy(library, as: "plugins/two.so")
                configuration.watches = false
                if isolated { configuration.isolation.modules = .all }
            }
            try test.put(
                "{\"app://three/1\": {\"action\": \"Two/other\", \"method\": \"DELETE\"}}", "more.routes.json")
            try test.host.start()
            #expect(try test.host.open("app://two/1", method: .post) == "yes")
            #expect(try test.host.perform("Two", "ask") == "other")
            #expect(test.code("Two", "wrong") == .invalidValue)
            #expect(try test.host.open("app://three/1", method: .delete) == "other")
            #expect(throws: PluginError.self) { try test.host.open("app://three/1") }
        }
    }
}
