import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// URLs that a host builds from the names and patterns of routes.
@Suite struct URLBuildingTests {
    @Test("a URL that is built opens the same route with the same parameters")
    func building() throws {
        try withHost("ModuleA") { host throws in
            let url = try host.url(for: "detail", ["key": "a/b c%+é", "page": 5])
            #expect(url == "app://shop/detail/a%2Fb%20c%25%2B%C3%A9/5")
            let detail = try host.open(url)
            #expect(detail["title"]?.string == "Detail of a/b c%+é")
            #expect(detail["page"]?.int == 5)
            #expect(try host.url(for: "app://shop/price/:key", ["key": "x"]) == "app://shop/price/x")
            func code(_ route: String, _ parameters: [String: Value]) -> PluginError.Code? {
                #expect(throws: PluginError.self) { try host.url(for: route, parameters) }?.code
            }
            #expect(code("detail", ["page": 5]) == .missingParameter)
            #expect(code("detail", ["key": "x", "color": "red"]) == .unknownParameter)
            #expect(code("detail", ["key": ["x"]]) == .mistypedParameter)
            #expect(code("detail", ["key": ""]) == .mistypedParameter)
            #expect(code("detail", ["key": ".."]) == .mistypedParameter)
            #expect(code("detail", ["key": "x", "page": "five"]) == .mistypedParameter)
            // A URL that was built opens the same route; if it would not, building it is an error.
            try host.addRoute("app://shop/detail/new", to: "A/fetchDetail", defaults: ["key": "new"])
            let error = #expect(throws: PluginError.self) { try host.url(for: "detail", ["key": "new"]) }
            #expect(error?.code == .conflict && error?.message.contains("app://shop/detail/new") == true)
            #expect(try host.url(for: "detail", ["key": "new", "page": 2]) == "app://shop/detail/new/2")
        }
    }

    @Test("a name that no route has is an error that suggests a similar name, whatever the name contains")
    func unknownNames() throws {
        try withHost("ModuleA") { host throws in
            for name in ["detial", "det(ail", ""] {
                let error = #expect(throws: PluginError.self) { try host.url(for: name, ["key": "x"]) }
                #expect(error?.code == .invalidURL && error?.message.contains("There is no route") == true, "\(name)")
                #expect(error?.message.contains("Did you mean “detail”?") == !name.isEmpty, "\(error?.message ?? "")")
            }
        }
    }

    @Test("a value that the action would refuse is an error")
    func mistypedValues() throws {
        try withHost("ModuleA") { host throws in
            try host.register(
                Manifest("Typed", version: "1.0.0") {
                    Target("Typed") {
                        Action(
                            "all", .required("s", String.self), .optional("b", Bytes.self), .optional("d", Double.self)
                        ) {
                            s, b, d in s + "\(b.map { Array($0) } ?? []) \(d ?? 0)"
                        }
                    }
                    Route("app://typed/:s", to: "Typed/all").named("typed")
                })
            let good: [String: Value] = ["s": "x", "b": .bytes([1, 2, 3]), "d": 2]
            #expect(try host.open(host.url(for: "typed", good)) == "x[1, 2, 3] 2.0")
            for (name, value) in [("b", "!!"), ("d", "x"), ("d", "true")] {
                let error = #expect(throws: PluginError.self) {
                    try host.url(for: "typed", good.merging([name: .string(value)]) { $1 })
                }
                #expect(error?.code == .mistypedParameter && error?.message.contains("“\(value)”") == true)
            }
        }
    }

    @Test("a group without a name needs a value, like any other group")
    func buildingUnnamedGroups() throws {
        try withHost("ModuleA") { host throws in
            for pattern in ["app://u/*", "app://u/(\\d+)", "app://u/a-*", "app://*/u", "app://u/*+"] {
                let error = #expect(throws: PluginError.self) { try host.url(for: pattern) }
                #expect(error?.code == .missingParameter, "\(pattern): \(error?.message ?? "")")
                #expect(error?.message.contains("“0”") == true)
                #expect(try host.url(for: pattern, ["0": 7]).contains("7"))
            }
            #expect(try host.url(for: "app://u/*", ["0": ""]) == "app://u/")
            #expect(try host.url(for: "app://u/*?") == "app://u")
            #expect(try host.url(for: "app://u{/*}?") == "app://u")
        }
    }

    @Test("parameters that only the host sets are not built into a URL, and lists of texts are")
    func buildingQueries() throws {
        let test = try TestHost([])
        defer { withExtendedLifetime(test) {} }
        let host = test.host
        try host.register(
            Manifest("Takes", version: "1.0.0") {
                Target("Takes") {
                    Action(
                        "all", .optional("_url", String.self), .optional("list", [String].self),
                        .optional("any", Value.self),
                        .optional("text", String.self)
                    ) { _, list, any, text -> Value in
                        ["list": .list((list ?? []).map(Value.string)), "any": any ?? nil]
                    }
                }
            })
        try host.addRoute("app://all", to: "Takes/all", name: "all")
        try host.addRoute("app://group/:list", to: "Takes/all", name: "group")
        try host.addRoute("app://reserved/:_url", to: "Takes/all", name: "reserved")
        func code(_ route: String, _ parameters: [String: Value]) -> PluginError.Code? {
            #expect(throws: PluginError.self, "\(parameters)") { try host.url(for: route, parameters) }?.code
        }
        #expect(code("all", ["_url": "x"]) == .unknownParameter)
        #expect(code("all", ["_object": true]) == .unknownParameter)
        #expect(code("reserved", ["_url": "x"]) == .unknownParameter)
        let url = try host.url(for: "all", ["list": ["b&", "a", ""], "text": "t"])
        #expect(url == "app://all?list=b%26&list=a&list=&text=t")
        #expect(try host.open(url)["list"] == ["b&", "a", ""])
        let group = try host.url(for: "group", ["list": ["x/y"]])
        #expect(group == "app://group/x%2Fy")
        #expect(try host.open(group)["list"] == ["x/y"])
        for list in [[], [1], ["a", 2], [["a"]], [nil]] as [Value] {
            #expect(code("all", ["list": list]) == .mistypedParameter)
        }
        #expect(code("all", ["any": ["a"]]) == .mistypedParameter)
        #expect(code("all", ["text": ["a"]]) == .mistypedParameter)
        #expect(code("all", ["other": ["a"]]) == .unknownParameter)
        #expect(code("group", ["list": ["a", "b"]]) == .mistypedParameter)
    }

    @Test("random values survive a round trip through a URL")
    func roundTrip() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SplitMix(seed: seed)
        try withHost("ModuleA") { host throws in
            let letters = Array("ab/:%?#&=+ .é\u{1F600}*{}()\\\"<>\u{1}~")
            for _ in 0..<300 {
                let count = Int.random(in: 1...6, using: &generator)
                let key = String((0..<count).map { _ in letters.randomElement(using: &generator)! })
                guard key != ".", key != ".." else { continue }
                let url = try host.url(for: "detail", ["key": .string(key)])
                #expect(try host.open(url)["title"]?.string == "Detail of \(key)", "seed \(seed): \(url)")
            }
        }
    }
}
