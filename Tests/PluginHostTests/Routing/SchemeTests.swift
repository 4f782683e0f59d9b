import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// Text without a scheme has the first scheme that the program has configured, whether it is a URL, the pattern of a
/// route of the program, a module or a file, or the pattern of an interceptor.
@Suite struct SchemeTests {
    private func host(_ schemes: [String]) throws -> TestHost {
        let test = try TestHost([]) { $0.schemes = schemes }
        try test.host.register(
            Manifest("M", version: "1.0.0") {
                Target("T") {
                    Action("page", .optional("page", String.self), .optional("_url", String.self)) { page, url in
                        "\(page ?? "-") of \(url ?? "-")"
                    }
                }
            })
        return test
    }

    @Test func `URLs and routes are the same with the first scheme and without one`() throws {
        let test = try host(["Shop", "app"])
        let host = test.host
        try host.addRoute("home/:page", to: "T/page", name: "home")
        for url in ["home/x", "home/x#y", "//home/x", "shop://home/x", "SHOP://Home/x"] {
            #expect(try host.open(url) == .string("x of \(url)"))
            #expect(host.canOpen(url))
        }
        #expect(!host.canOpen("app://home/x") && !host.canOpen("/home/x"))
        let conflict = #expect(throws: PluginError.self) { try host.addRoute("shop://home/:other", to: "T/page") }
        #expect(conflict?.code == .conflict)
        #expect(try host.url(for: "home", ["page": "a b"]) == "shop://home/a%20b")
        #expect(try host.url(for: "home/:page", ["page": "x"]) == "shop://home/x")
        try host.updateRoute("shop://home/:page", to: "T/page", defaults: ["page": "other"])
        #expect(host.routes.map(\.pattern) == ["shop://home/:page"])
        #expect(!host.removeRoute("home/:other") && !host.removeRoute("app://home/:page"))
        #expect(host.removeRoute("home/:page") && !host.canOpen("home/x"))
    }

    @Test func `A URL without a scheme names target and action`() throws {
        let test = try host(["shop", "app"])
        for url in ["T/page?page=1", "//T/page?page=1", "shop://T/page?page=1", "app://T/page?page=1"] {
            #expect(try test.host.open(url) == .string("1 of \(url)"))
        }
        #expect(!test.host.canOpen("t/page") && !test.host.canOpen("/T/page") && !test.host.canOpen("T"))
    }

    @Test func `A port is one in URLs and patterns without a scheme`() throws {
        let test = try host(["shop"])
        let host = test.host
        try host.addRoute("localhost:8080/:page", to: "T/page")
        for url in ["localhost:8080/q", "//localhost:8080/q", "shop://localhost:8080/q"] {
            #expect(try host.open(url) == .string("q of \(url)"))
        }
        #expect(!host.canOpen("localhost:81/q") && !host.canOpen("localhost/q"))
        for url in ["mailto:ann", "localhost:x/q", "localhost:123456/q", "localhost:/q"] {
            let error = #expect(throws: PluginError.self) { try host.open(url) }
            #expect(error?.code == .invalidURL && error?.message.contains("no // after its scheme") == true, "\(url)")
        }
    }

    @Test func `Two slashes in a pattern stand for any scheme, and a third for any host`() throws {
        let test = try host(["shop"])
        let host = test.host
        try host.addRoute("//any/:page", to: "T/page")
        try host.addRoute("///everywhere", to: "T/page")
        try host.addRoute("/here", to: "T/page")
        for url in [
            "any/x", "//any/x", "web://any/x", "shop://any/x", "web://a/everywhere", "/everywhere", "b/everywhere",
        ] {
            #expect(host.canOpen(url), "\(url)")
        }
        #expect(host.canOpen("/here") && host.canOpen("a/here") && host.canOpen("shop://b/here"))
        #expect(!host.canOpen("web://b/here") && !host.canOpen("web:///here"))
    }

    @Test func `Routes of modules, keys of files and interceptors agree`() throws {
        let test = try host(["shop"])
        let host = test.host
        try host.register(
            Manifest("R", version: "1.0.0") {
                Target("R") { Action("page", .optional("page", String.self)) { $0 } }
                Route("module/:page", to: "R/page")
            })
        #expect(try host.open("module/1") == "1")
        #expect(try host.open("shop://module/2") == "2")
        #expect(!host.canOpen("app://module/2"))
        let interceptor = host.intercept(.route("shop://module/:page")) { call, next in .string("seen") }
        #expect(try host.open("module/1") == "seen")
        interceptor.remove()
        host.intercept(.route("module/:any")) { call, next in .string("seen, too") }
        #expect(try host.open("shop://module/1") == "seen, too")

        let file = try RouteFile.entries(
            Array(#"{"file/:page": "T/page", "//any": "T/page"}"#.utf8), path: "x.routes.json", scheme: "shop")
        #expect(file.map(\.pattern.scheme) == [nil, "shop"])
        let twice = #expect(throws: PluginError.self) {
            try RouteFile.entries(
                Array(#"{"file/:page": "T/page", "shop://file/:p": "T/page"}"#.utf8), path: "x.routes.json",
                scheme: "shop")
        }
        #expect(twice?.message.contains("match the same URLs") == true)
    }

    @Test func `Where no scheme is configured, text without one is an error that says so`() throws {
        let test = try TestHost([]) { $0.schemes = [] }
        let host = test.host
        let pattern = #expect(throws: PluginError.self) { try host.addRoute("home/:page", to: "T/page") }
        #expect(pattern?.code == .invalidPattern && pattern?.message.contains("no scheme is configured") == true)
        for url in ["home/x", "//home/x", "/x", "x"] {
            let error = #expect(throws: PluginError.self) { try host.open(url) }
            #expect(error?.code == .invalidURL && error?.message.contains("no scheme is configured") == true, "\(url)")
        }
        let file = #expect(throws: PluginError.self) {
            try RouteFile.entries(Array(#"{"file/:page": "T/page"}"#.utf8), path: "x.routes.json", scheme: nil)
        }
        #expect(file?.code == .invalidRouteFile && file?.message.contains("no scheme is configured") == true)
    }
}
