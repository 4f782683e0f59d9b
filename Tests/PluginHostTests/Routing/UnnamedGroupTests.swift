import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Groups without a name, which are numbered from 0 through host and path.
@Suite struct UnnamedGroupTests {
    private let test: TestHost
    private var host: PluginHost { test.host }

    init() throws { test = try TestHost.withSamples() }

    private func code(_ body: () throws -> Void) -> PluginError.Code? {
        #expect(throws: PluginError.self, performing: body)?.code
    }

    @Test func `A group without a name is in the rest, under its number`() throws {
        try host.addRoute("app://*.files/:text/(\\d+)/*", to: "Open/search")
        #expect(
            try host.open("app://my.files/a/7/x%2Fy/z?1=9&b=2")
                == ["text": "a", "page": 1, "rest": ["0": "my", "1": "7", "2": "x/y/z", "b": "2"]])
    }

    @Test func `A group without a name reaches the parameter that the route maps it to`() throws {
        try host.addRoute("app://files/*", to: "Echo/string", groups: [0: "value"])
        #expect(try host.open("app://files/a/b%2Fc") == "a/b/c")
        try host.addRoute("app://numbers/(\\d+)/(\\d+)", to: "Open/search", groups: [1: "page", 0: "text"])
        #expect(try host.open("app://numbers/7/8?a=1") == ["text": "7", "page": 8, "rest": ["a": "1"]])
        // A group that is not mapped keeps its number.
        try host.addRoute("app://*.some/*/x", to: "Open/search", groups: [1: "text"])
        #expect(try host.open("app://a.some/b/x") == ["text": "b", "page": 1, "rest": ["0": "a"]])
    }

    @Test func `What a group without a name takes is ignored where nobody asks for it`() throws {
        try host.addRoute("app://all/*", to: "A/fetchDetail", defaults: ["key": "all"])
        #expect(try host.open("app://all/a/b")["title"] == "Detail of all")
        #expect(host.canOpen("app://all/a/b"))
    }

    @Test func `A fallback gets groups without a name under their numbers`() throws {
        try host.addRoute("app://lost/*", to: "OpenLost/page")
        #expect(try host.open("app://lost/a/b")["rest"] == ["parameters": ["0": "a/b"]])
    }

    @Test func `A group that the pattern does not have, or a name that it has, cannot be mapped to`() throws {
        #expect(code { try host.addRoute("app://x/*", to: "Echo/any", groups: [1: "value"]) } == .invalidPattern)
        #expect(code { try host.addRoute("app://x/*", to: "Echo/any", groups: [-1: "value"]) } == .invalidPattern)
        #expect(code { try host.addRoute("app://x/:a", to: "Echo/any", groups: [0: "value"]) } == .invalidPattern)
        #expect(code { try host.addRoute("app://x/:a/*", to: "Echo/any", groups: [0: "a"]) } == .invalidPattern)
        #expect(
            code { try host.addRoute("app://x/*/(b)", to: "Echo/any", groups: [0: "a", 1: "a"]) } == .invalidPattern)
        #expect(code { try host.addRoute("app://x/*", to: "Echo/any", groups: [0: ""]) } == .invalidPattern)
        #expect(code { try host.addRoute("app://x/*", to: "Echo/any", groups: [0: "1"]) } == .invalidPattern)
        #expect(code { try host.addRoute("app://", to: "Echo/any", groups: [0: "a"]) } == .invalidPattern)
    }

    @Test func `Patterns that differ in what their groups are mapped to conflict`() throws {
        try host.addRoute("app://x/*", to: "Echo/any", groups: [0: "value"])
        #expect(code { try host.addRoute("app://x/*", to: "Open/all") } == .conflict)
        try host.updateRoute("app://x/*", to: "Open/all", groups: [0: "path"])
        #expect(try host.open("app://x/a") == ["path": "a"])
        #expect(host.removeRoute("app://x/*"))
    }

    @Test func `Routes are listed with what their groups are mapped to`() throws {
        try host.addRoute("app://x/*", to: "Echo/any", groups: [0: "value"])
        #expect(host.routes.first { $0.pattern == "app://x/*" }?.groups == [0: "value"])
        #expect(host.routes.first { $0.pattern != "app://x/*" }?.groups == [:])
    }

    @Test func `Hosts that are written alike are told apart by what their groups are mapped to`() throws {
        try host.addRoute("app://*.x/a", to: "Open/all", groups: [0: "sub"])
        try host.addRoute("app://*.x/b", to: "Open/all", groups: [0: "name"])
        try host.addRoutes([("app://*.x/c", "Open/all"), ("app://*.x/d", "Open/all")])
        #expect(try host.open("app://w.x/a") == ["sub": "w"] && host.open("app://w.x/b") == ["name": "w"])
        #expect(try host.open("app://w.x/c") == ["0": "w"] && host.open("app://w.x/d") == ["0": "w"])
    }

    @Test func `A URL is built with the names that groups are mapped to, and opens with the same`() throws {
        try host.addRoute("app://files/*", to: "Echo/string", name: "file", groups: [0: "value"])
        for route in ["file", "app://files/*"] {
            let url = try host.url(for: route, ["value": "a/b c"])
            #expect(url == "app://files/a/b%20c")
            #expect(try host.open(url) == "a/b c")
        }
        try host.addRoute("app://rest/*", to: "Open/all", name: "rest")
        #expect(try host.open(host.url(for: "rest", ["0": "a/b", "c": "d"])) == ["0": "a/b", "c": "d"])
    }

    @Test func `A module and a route file map groups, too`() throws {
        let test = try TestHost { configuration, folder in
            configuration.watches = false
            try folder.copy(built("libFixtureModule.so"), as: "plugins/Fixture.so")
            try folder.file(
                "plugins/web.routes.json",
                #"{"app://web/*": {"action": "Echo/string", "groups": {"0": "value"}}}"#)
        }
        try test.start()
        #expect(try test.host.open("app://web/a/b") == "a/b")
        try test.host.register(
            Manifest("Files", version: "1.0.0") {
                Target("Files") { Action("path", .required("path", String.self)) { path in path } }
                Route("app://files/*", to: "Files/path", groups: [0: "path"])
            })
        #expect(try test.host.open("app://files/a/b") == "a/b")
    }

    @Test(arguments: [
        (#"{"1": "value"}"#, "1"), (#"{"x": "value"}"#, "groups"), (#"{"0": 7}"#, "groups"), (#"["value"]"#, "groups"),
        (#"{"00": "value"}"#, "groups"), (#"{"-1": "value"}"#, "groups"),
    ])
    func `A route file that maps groups wrongly says what is wrong, and where`(groups: String, word: String) throws {
        let test = try TestHost { configuration, folder in
            configuration.watches = false
            try folder.file(
                "plugins/web.routes.json", #"{"app://web/*": {"action": "Echo/string", "groups": \#(groups)}}"#)
        }
        try test.start()
        let problem = try #require(test.host.problems.first)
        #expect(problem.code == .invalidRouteFile && problem.message.contains("app://web/*"))
        #expect(problem.message.contains(word), "\(problem)")
    }
}
