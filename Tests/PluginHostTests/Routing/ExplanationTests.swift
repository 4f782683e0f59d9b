import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Explanations of where a URL leads.
@Suite struct ExplanationTests {
    private let test: TestHost
    private var host: PluginHost { test.host }

    init() throws {
        test = try TestHost(["ModuleA", "ModuleB"].map { built("lib\($0).so") })
    }

    private func others(_ url: String, _ origin: CallOrigin = .local) -> [String: String] {
        Dictionary(uniqueKeysWithValues: host.resolve(url, origin: origin).others.map { ($0.pattern, $0.reason) })
    }

    @Test func `A URL is explained by what it reaches, with which parameters, and nothing is called`() throws {
        host.intercept(.all) { _, _ in throw PluginError("called", "Something was called.") }
        host.onRemoteCall { _ in .refuse("The guard was asked.") }
        let route = host.resolve("app://shop/detail/red%20lamp/2")
        #expect(route.action == "A/fetchDetail" && route.module == "ModuleA" && route.error == nil)
        #expect(route.route?.hasPrefix("app://shop/detail/:key") == true && route.fallback == nil)
        #expect(route.parameters == ["key": "red lamp", "page": 2])
        let named = host.resolve("app://A/fetchDetail?key=x", ["page": 7], origin: .remote)
        #expect(named.action == "A/fetchDetail" && named.route == nil && named.error == nil)
        #expect(named.parameters == ["key": "x", "page": 7])
        let fallback = host.resolve("app://A/nothing?x=1")
        #expect(fallback.action == "A/nothing" && fallback.fallback == "notFound")
    }

    @Test func `The destination of a URL is what it reaches, without the rest of the explanation`() throws {
        try host.addRoute("r://h/:key", to: "A/fetchDetail")
        try host.addRoute("r://h/*", to: "A/fetchDetail")
        try host.addRoute("r://h/post", to: "A/fetchDetail", method: .post)
        for url in [
            "app://shop/detail/red%20lamp/2", "app://A/fetchDetail", "app://A/nothing", "r://h/x", "other://a/b",
        ] {
            for origin in [CallOrigin.local, .remote] {
                let whole = host.resolve(url, origin: origin)
                let found = try? host.destination(of: url, origin: origin)
                #expect(found?.route == whole.route, "\(url) \(origin)")
                #expect(found?.module == whole.module && found?.fallback == whole.fallback)
                #expect(found.map { $0.action == whole.action } ?? (whole.error != nil))
            }
        }
        #expect(try host.destination(of: "r://h/post", method: .post, origin: .remote).route == "r://h/post")
        #expect(try host.destination(of: "r://h/post", origin: .remote).route == "r://h/:key")
        func error(_ url: String, _ origin: CallOrigin = .local) -> PluginError? {
            do throws(PluginError) { _ = try host.destination(of: url, origin: origin) } catch { return error }
            return nil
        }
        #expect(error("app://A/fetchDetail") == nil && error("app://A/nativeSecret") == nil)
        #expect(error("app://A/nativeSecret", .remote)?.code == .noRoute)
        #expect(error("app://%GG")?.code == .invalidURL)
    }

    @Test func `Destinations are equal if the same route leads to the same action of the same version`() throws {
        try host.addRoute("r://h/:key", to: "A/fetchDetail")
        try host.addRoute("r://i/:key", to: "A/fetchDetail")
        func destination(_ url: String) throws -> URLDestination { try host.destination(of: url, origin: .remote) }
        let found = try destination("r://h/x")
        let same = try destination("r://h/y?page=2")
        #expect(found == same && Set([found, same]).count == 1)
        #expect(try found != destination("r://i/x"))
        #expect(try found != destination("app://A/fetchDetail"))
        #expect(try destination("app://A/fetchDetail") == destination("app://A/fetchDetail?key=x"))
        #expect(try host.destination(of: "app://A/nothing") != host.destination(of: "app://A/other"))
        try host.updateRoute("r://h/:key", to: "A/fetchDetail")
        #expect(try found != destination("r://h/x"))
    }

    @Test func `A URL that leads nowhere is explained by the reason`() throws {
        func error(_ url: String, _ origin: CallOrigin = .local) -> PluginError? {
            host.resolve(url, origin: origin).error
        }
        #expect(error("app://A/fetchDetail")?.code == .missingParameter)
        #expect(host.resolve("app://A/fetchDetail").action == "A/fetchDetail")
        #expect(error("app://shop/detail/x/two")?.code != nil)
        #expect(error("app://%GG")?.code == .invalidURL && error("")?.code == .invalidURL)
        #expect(error("other://a/b")?.code == .invalidURL && error("app://Nobody/x")?.code == .unknownTarget)
        let secret = error("app://A/nativeSecret", .remote)
        #expect(secret?.code == .noRoute && secret?.message.contains("is not declared remote") == true)
        #expect(error("app://A/nativeSecret") == nil)
        try host.addRoute("app://dead", to: "Gone/x")
        let dead = host.resolve("app://dead")
        #expect(dead.route == "app://dead" && dead.action == "Gone/x" && dead.error?.code == .unknownTarget)
    }

    @Test func `The routes that match, too, are shown with the rule by which they lost`() throws {
        for pattern in [
            "r://h/x/:key", "r://h/:a/:key", "r://h/:a([a-z])/:key", "r://h/*", "r://:a/x/:key", "//h/x/:key", "r://",
        ] {
            try host.addRoute(pattern, to: "A/fetchDetail")
        }
        #expect(host.resolve("r://h/x/1").route == "r://h/x/:key")
        let others = others("r://h/x/1")
        #expect(
            others == [
                "r://h/:a([a-z])/:key": "segment 1 is a group with an expression, which a literal precedes",
                "r://h/:a/:key": "segment 1 is a named group, which a literal precedes",
                "r://h/*": "segment 1 is “*”, which a literal precedes",
                "r://:a/x/:key": "its host is a pattern, which a literal precedes",
                "//h/x/:key": "it is for any scheme, the other for this one",
                "r://": "it is the fallback of its scheme, for URLs that nothing else matches",
            ])
        try host.addRoute("r://e/:b([a-z]+)", to: "A/fetchDetail")
        try host.addRoute("r://e/:a([a-z]+x?)", to: "A/fetchDetail")
        #expect(host.resolve("r://e/b").route == "r://e/:a([a-z]+x?)")
        #expect(self.others("r://e/b")["r://e/:b([a-z]+)"]?.contains("its text sorts after that of the other") == true)
        // A declared route precedes the action that the URL itself names.
        try host.addRoute("app://a/:key", to: "A/fetchDetail")
        #expect(self.others("app://A/price")["app://A/price"]?.contains("a declared route precedes") == true)
    }

    @Test func `For a remote caller, what is not remote is shown as passed over`() throws {
        try host.addRoute("r://h/:key", to: "A/nativeSecret")
        try host.addRoute("r://h/*", to: "A/fetchDetail", defaults: ["key": "all"])
        #expect(host.resolve("r://h/x").route == "r://h/:key")
        #expect(host.resolve("r://h/x", origin: .remote).route == "r://h/*")
        let closed = "it leads to A/nativeSecret, which other programs may not open: it is not declared remote"
        #expect(others("r://h/x", .remote) == ["r://h/:key": closed])
        try host.addRoute("r://i/:key", to: "A/absent")
        try host.addRoute("r://i/*", to: "A/fetchDetail", defaults: ["key": "all"])
        let absent = "it leads to A/absent, which no module offers to other programs"
        #expect(others("r://i/x", .remote) == ["r://i/:key": absent])
    }

    @Test func `A list of hundreds of matching routes is cut off, and the explanation says so`() throws {
        for number in 0..<120 { try host.addRoute("r://h/:a(b{0,\(number)}b)", to: "A/price") }
        let explanation = host.resolve("r://h/b")
        #expect(explanation.others.count == 100 && !explanation.othersAreComplete)
        #expect(host.resolve("app://A/price?key=apple").othersAreComplete)
    }

    @Test func `What it explains is what opening does`() throws {
        try host.addRoute("app://c/:key") { _ in "closure" }
        for url in [
            "app://shop/detail/a", "app://shop/detail/a/2", "app://A/fetchDetail?key=1", "app://A/nothing", "app://c/1",
            "app://B/greet", "app://nobody/x", "x", "app://A/nativeSecret",
        ] {
            for origin in [CallOrigin.local, .remote] {
                let error = host.resolve(url, origin: origin).error
                #expect(
                    host.canOpen(url, origin: origin) == (error == nil), "\(url) \(origin): \(error?.message ?? "")")
            }
        }
    }
}
