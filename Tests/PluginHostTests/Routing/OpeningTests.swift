import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

/// Opening URLs with a host that has loaded the sample modules.
@Suite struct OpeningTests {
    @Test("the examples of the article on URLs do what the article says")
    func article() throws {
        try withHost("ModuleA", "ModuleB") { host throws in
            let detail = try host.open("app://shop/detail/lamp/2")
            #expect(detail["title"]?.string == "Detail of lamp" && detail["page"]?.int == 2)
            try host.addRoute("app://hello/:name", to: "B/greet")
            #expect(try host.open("app://hello/Ada").string == "Hello, Ada!")
            try host.addRoute("app://hello/:name/again") { parameters in
                "Hello again, \(parameters["name"]?.string ?? "")!"
            }
            #expect(try host.open("app://hello/Ada/again") == "Hello again, Ada!")
            #expect(host.resolve("app://shop/detail/lamp/2").parameters == ["key": "lamp", "page": 2])
            #expect(try host.url(for: "detail", ["key": "lamp", "page": 2]) == "app://shop/detail/lamp/2")
            #expect(!host.canOpen("app://shop/detail/lamp/two"))
            try host.addRoutes([("app://a/:key", "A/fetchDetail"), ("app://b/:key", "A/fetchDetail")])
            try host.updateRoute("app://a/:key", to: "A/fetchDetail", defaults: ["page": 2])
            #expect(try host.open("app://a/lamp")["page"]?.int == 2)
            host.removeRoute("app://a/:key")
            #expect(!host.canOpen("app://a/lamp") && host.canOpen("app://b/lamp"))
        }
        #expect(try URLPattern("app://shop/:id").match("app://shop/7") == ["id": "7"])
        #expect(try URLPattern("app://shop/:id(\\d+)").match("app://shop/seven") == nil)
        #expect(try URLPattern("app://shop/img-:id.png").match("app://shop/img-7.png") == ["id": "7"])
        #expect(try URLPattern("app://shop/:path+").match("app://shop/a/b") == ["path": "a/b"])
        #expect(try URLPattern("app://shop{/:page}?").match("app://shop") == ["page": nil])
        #expect(try URLPattern("app://shop/*").match("app://shop/a/b") == ["0": "a/b"])
    }

    @Test("a route of a module opens its action with the values of the groups, converted")
    func moduleRoute() throws {
        try withHost("ModuleA") { host throws in
            let detail = try host.open("app://shop/detail/red%20apple/3", origin: .remote)
            #expect(detail["title"]?.string == "Detail of red apple")
            #expect(detail["page"]?.int == 3)
            #expect(try host.open("APP://Shop/detail/x")["page"]?.int == 1)
        }
    }

    @Test("the first value found wins: the caller's, the path's, the query's, the route's, the action's")
    func precedence() throws {
        try withHost("ModuleA") { host throws in
            try host.addRoute("app://p/:key", to: "A/fetchDetail", defaults: ["page": 7])
            func page(_ url: String, _ parameters: Parameters = [:]) throws -> Value {
                try host.open(url, parameters)
            }
            #expect(try page("app://p/x?key=y&page=2")["title"]?.string == "Detail of x")
            #expect(try page("app://p/x?page=2")["page"]?.int == 2)
            #expect(try page("app://p/x")["page"]?.int == 7)
            #expect(try page("app://p/x?page=2", ["page": 9, "key": "z"])["page"]?.int == 9)
            #expect(try page("app://p/x?page=2", ["page": 9, "key": "z"])["title"]?.string == "Detail of z")
            #expect(try page("app://p/x?page=1&page=4")["page"]?.int == 4)
        }
    }

    @Test("routes are added, updated, listed and removed while the host runs")
    func changing() throws {
        try withHost("ModuleA", "ModuleB") { host throws in
            try host.addRoute("app://hello/:name", to: "B/greet", name: "hello", summary: "Greets")
            #expect(try host.open("app://hello/Ada").string == "Hello, Ada!")
            try host.addRoute("app://hello/:name/again", to: "B/greet")
            try host.updateRoute("app://hello/:key", to: "A/fetchDetail", name: "hello")
            #expect(try host.open("app://hello/Ada")["title"]?.string == "Detail of Ada")
            #expect(host.routes.map(\.pattern).contains("app://hello/:key"))
            #expect(host.routes.first { $0.pattern == "app://hello/:key" }?.owner == "the program")
            #expect(host.removeRoute("app://hello/:key"))
            #expect(!host.removeRoute("app://hello/:key"))
            #expect(!host.canOpen("app://hello/Ada"))
            #expect(try host.open("app://hello/Ada/again").string == "Hello, Ada!")
            #expect(host.removeRoutes(ofModule: "ModuleA") == 4)
            #expect(!host.canOpen("app://shop/detail/x"))
        }
    }

    @Test("the value of an unnamed group is passed to actions that ask for it")
    func unnamedGroups() throws {
        try withHost("ModuleA") { host throws in
            try host.addRoute("app://all/*", to: "A/fetchDetail", defaults: ["key": "all"])
            #expect(try host.open("app://all/a/b")["title"]?.string == "Detail of all")
            #expect(host.canOpen("app://all/a/b"))
        }
    }

    @Test("routes are added all at once or not at all")
    func manyAtOnce() throws {
        try withHost("ModuleA") { host throws in
            try host.addRoutes((0..<100).map { ("app://many/r\($0)/:key", "A/fetchDetail") })
            for number in [0, 7, 99] {
                #expect(try host.open("app://many/r\(number)/x")["title"]?.string == "Detail of x")
            }
            let count = host.routes.count
            let error = #expect(throws: PluginError.self) {
                try host.addRoutes([("app://new/:key", "A/fetchDetail"), ("app://many/r7/:other", "A/fetchDetail")])
            }
            #expect(error?.code == .conflict && host.routes.count == count && !host.canOpen("app://new/x"))
            for number in 0..<100 { #expect(host.removeRoute("app://many/r\(number)/:key")) }
            #expect(host.routes.count == count - 100 && !host.canOpen("app://many/r7/x"))
        }
    }

    @Test("a pattern that is already in use is a conflict that names both sides")
    func conflict() throws {
        try withHost("ModuleA") { host throws in
            let error = #expect(throws: PluginError.self) {
                try host.addRoute("app://shop/price/:other", to: "A/nativeSecret")
            }
            #expect(error?.code == .conflict)
            #expect(error?.message.contains("module ModuleA") == true)
            #expect(error?.message.contains("the program") == true)
        }
    }

    @Test("a declared route takes precedence over the target of its name, and the fallback comes last")
    func order() throws {
        try withHost("ModuleA", "ModuleB") { host throws in
            #expect(try host.open("app://B/greet?name=x").string == "Hello, x!")
            try host.addRoute("app://b/greet", to: "A/fetchDetail")
            #expect(try host.open("app://B/greet?key=x")["title"]?.string == "Detail of x")
            #expect(throws: PluginError.self) { try host.open("app://nobody/home?key=x") }
            try host.addRoute("app://", to: "A/fetchDetail", defaults: ["key": "lost"])
            #expect(try host.open("app://nobody/home")["title"]?.string == "Detail of lost")
            #expect(try host.open("app://x/y/z/w")["title"]?.string == "Detail of lost")
        }
    }

    @Test("canOpen says whether open would call an action, and calls nothing itself")
    func canOpen() throws {
        try withHost("ModuleA", "ModuleB") { host throws in
            #expect(host.canOpen("app://shop/detail/x"))
            #expect(host.canOpen("app://shop/detail/x/12", origin: .remote))
            #expect(!host.canOpen("app://shop/detail/x/twelve"))
            #expect(host.canOpen("app://shop/detail/x?unknown=1"))
            #expect(!host.canOpen("app://shop/detail/x", ["unknown": 1]))
            #expect(!host.canOpen("app://shop/detail/%GG"))
            #expect(!host.canOpen("app://A/nativeSecret", origin: .remote))
            #expect(host.canOpen("app://A/nativeSecret"))
            #expect(!host.canOpen("app://A/price"))
            #expect(!host.canOpen("nonsense"))
        }
    }

    @Test("canOpen and open agree on the fallback for a missing action")
    func canOpenFallbacks() throws {
        try withHost("ModuleA", "ModuleB") { host throws in
            func agrees(_ url: String, _ origin: CallOrigin = .local) -> Bool? {
                let canOpen = host.canOpen(url, origin: origin)
                return canOpen == ((try? host.open(url, origin: origin)) != nil) ? canOpen : nil
            }
            #expect(agrees("app://A/nothing?x=1") == true)
            #expect(agrees("app://A/nothing", .remote) == false)  // notFound of A is not remote.
            #expect(agrees("app://B/nothing") == false && agrees("app://Cinema/open") == false)
            host.onMissingTarget { target, _, _, origin in "\(target) from \(origin)" }
            #expect(agrees("app://Cinema/open?a=1") == true && agrees("app://Cinema/open", .remote) == true)
            #expect(agrees("app://B/nothing") == true)
            try host.addRoute("app://strict", to: "Lost/page")
            try host.register(
                Manifest("Strict", version: "1.0.0") {
                    Target("Lost") {
                        Action("notFound", .required("other", String.self)) { $0 }
                    }
                })
            #expect(agrees("app://strict") == false)
        }
    }

    @Test("the guard sees every remote call, and refuses, passes or redirects it")
    func remoteGuard() throws {
        try withHost("ModuleA", "ModuleB") { host throws in
            host.onRemoteCall { call in
                switch call.host {
                case "shop": .pass
                case "b": .refuse("Not today.")
                default: .redirect("app://shop/detail/\(call.host ?? "")")
                }
            }
            #expect(try host.open("app://shop/detail/x", origin: .remote)["title"]?.string == "Detail of x")
            let error = #expect(throws: PluginError.self) { try host.open("app://B/greet?name=x", origin: .remote) }
            #expect(error?.code == .refused)
            #expect(error?.message == "Not today.")
            #expect(try host.open("web://elsewhere/x", origin: .remote)["title"]?.string == "Detail of elsewhere")
            #expect(try host.open("app://B/greet?name=x").string == "Hello, x!")
            #expect(!host.canOpen("app://B/greet?name=x", origin: .remote))
            // The redirected call is still remote, and the guard is not asked again.
            host.onRemoteCall { call in
                call.target == "A" ? .refuse("Asked again.") : .redirect("app://A/\(call.action ?? "")")
            }
            let secret = #expect(throws: PluginError.self) { try host.open("app://B/nativeSecret", origin: .remote) }
            #expect(secret?.code == .noRoute)
            #expect(!host.canOpen("app://B/nativeSecret", origin: .remote))
            let detail = try host.open("app://B/fetchDetail", ["key": "x"], origin: .remote)
            #expect(detail["title"]?.string == "Detail of x")
        }
    }

    @Test("for a URL whose scheme only routes have, the error is that no route matches, not an unknown scheme")
    func schemesOfRoutes() throws {
        try withHost("ModuleA") { host throws in
            func message(_ url: String) throws -> String {
                try #require(#expect(throws: PluginError.self) { try host.open(url) }).message
            }
            try host.addRoute("shop://search/:q", to: "A/fetchDetail")
            try host.addRoute("other://", to: "A/fetchDetail")
            #expect(try message("shop://search").contains("none of the routes with the scheme “shop://”"))
            #expect(try message("shop://A/fetchDetail?key=x").contains("none of the routes with the scheme “shop://”"))
            #expect(try message("chop://search").contains("“chop://” is not a scheme"))
            host.removeRoute("shop://search/:q")
            #expect(try message("shop://search").contains("“shop://” is not a scheme"))
        }
    }

    @Test("errors show only the beginning of long names")
    func longNames() throws {
        let long = String(repeating: "n", count: 1 << 20)
        let test = try TestHost([])
        defer { withExtendedLifetime(test) {} }
        let host = test.host
        try host.register(
            Manifest("M", version: "1.0.0") { Target("T") { Action("a", .required("p", String.self)) { $0 } } })
        try host.addRoute("app://a/:p", to: "T/a", name: "r" + long)
        try host.addRoute("app://lost/:p", to: "T\(long)/a\(long)")
        let failures: [() throws -> Void] = [
            { try host.open("app://lost/x") },
            { try host.perform("T", "b" + long) }, { try host.perform("U" + long, "a" + long) },
            { try host.perform("T", "a", ["q" + long: 1]) },
            { try host.addRoute("app://b/:x", to: "T/a", name: "r" + long) },
            { try host.addRoute("app://a/:y", to: "T/a") }, { try host.addRoute("app://b", to: long) },
            { _ = try host.url(for: long) }, { _ = try host.url(for: "r" + long) },
            { _ = try host.url(for: "r" + long, ["p": "y", "q" + long: 1]) },
            { _ = try host.url(for: "r" + long, ["p": .list([.string(long)])]) },
        ]
        for (index, failure) in failures.enumerated() {
            let error = #expect(throws: PluginError.self, "\(index)") { try failure() }
            #expect((error?.message.utf8.count ?? 0) < 2_000, "\(index)")
        }
    }

    @Test(
        "any other text is an error of its own, not a crash",
        arguments: [
            "", " ", ":", "://", "app", "app:", "app:/", "app:shop", "app://", "app:///", "app://%", "app://%zz/x",
            "app://shop/%C3%28", "app://shop/%C0%AF", "app://shop/\u{0}", "app://a@b/x", "1app://x/y", "app://shop/a b",
            "app://A/fetchDetail?%=1", "app://A/fetchDetail?=1", "http://A/fetchDetail?key=1",
        ])
    func badURLs(url: String) throws {
        try withHost("ModuleA") { host throws in
            #expect(throws: PluginError.self) { try host.open(url) }
            #expect(!host.canOpen(url))
        }
    }

    @Test("a URL cannot contain the parameters that the host adds")
    func reservedNames() throws {
        try withHost { host throws in
            try host.register(
                Manifest("Told", version: "1.0.0") {
                    Target("Told") {
                        Action("about", .optional("_url", String.self), .optional("_object", Bool.self)) {
                            url, object in
                            "\(url ?? "-") \(object ?? true)"
                        }
                        .remote()
                    }
                })
            try host.addRoute("app://route/:_url", to: "Told/about")
            #expect(try host.open("app://Told/about") == "app://Told/about false")
            for url in ["app://Told/about?_url=x", "app://Told/about?_object=true", "app://route/x"] {
                let error = #expect(throws: PluginError.self) { try host.open(url, origin: .remote) }
                #expect(error?.code == .unknownParameter)
                #expect(!host.canOpen(url))
            }
        }
    }

    @Test("URLs are accepted up to the configured length, with any number of query items")
    func largeURLs() throws {
        for limit in [16_384, 256, 262_144] {
            try withHost("ModuleA", maximumURLLength: limit) { host throws in
                let start = "app://shop/detail/"
                let long = start + String(repeating: "x", count: limit - start.utf8.count)
                #expect(try host.open(long)["title"]?.string?.utf8.count == limit - start.utf8.count + 10)
                #expect(host.canOpen(long))
                let items = start + "x?" + String(repeating: "page=7&", count: (limit - 30) / 7) + "page=9"
                #expect(try host.open(items)["page"]?.int == 9)

                let tooLong = long + "y"
                #expect(!host.canOpen(tooLong))
                let error = #expect(throws: PluginError.self) { try host.open(tooLong) }
                #expect(error?.code == .invalidURL)
                for word in ["\(limit + 1)", "\(limit)", "maximumURLLength", "--url-length"] {
                    #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
                }
                // A URL that is too long is not examined: its invalid escape is not found.
                let broken = #expect(throws: PluginError.self) { try host.open("a b%" + tooLong) }
                #expect(broken?.message.contains("maximumURLLength") == true)
                let built = #expect(throws: PluginError.self) {
                    try host.url(for: "app://shop/detail/:key", ["key": .string(tooLong)])
                }
                #expect(built?.message.contains("maximumURLLength") == true, "\(built?.message ?? "")")
            }
        }
    }

    @Test("a call's timeout includes the search for the route; when it is over, the action is not called")
    func deadlines() async throws {
        let test = try TestHost([])
        defer { withExtendedLifetime(test) {} }
        let calls = Mutex(0)
        let host = test.host
        try host.register(
            Manifest("Counting", version: "1.0.0") {
                Target("Counting") {
                    Action("now", .optional("x", Int.self, default: 1)) { _ in calls.withLock { $0 += 1 } }
                    Action("later", .optional("x", Int.self, default: 1)) { _ async in calls.withLock { $0 += 1 } }
                }
            })
        try host.addRoute("app://h/:name(a+)/now", to: "Counting/now")
        for url in ["app://Counting/now?x=1", "app://Counting/later"] {
            let error = await #expect(throws: PluginError.self) { try await host.open(url, timeout: .nanoseconds(1)) }
            #expect(error?.code == .deadlineExceeded)
            #expect(error?.message.contains("was not called") == true, "\(error?.message ?? "")")
        }
        #expect(calls.withLock { $0 } == 0)
        try await host.open("app://Counting/now", timeout: .seconds(60))
        try await host.open("app://Counting/later", timeout: .seconds(60))
        #expect(calls.withLock { $0 } == 2)
    }

    @Test("a maximum length of URLs that is out of range makes the start fail", arguments: [0, 255, 262_145, -1])
    func lengthsOutOfRange(length: Int) throws {
        var configuration = PluginHost.Configuration(folders: [])
        configuration.maximumURLLength = length
        let error = #expect(throws: PluginError.self) { try PluginHost(configuration).start() }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains("256 to 262144") == true)
    }
}
