import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Query keys that an action does not declare: URLs come from outside, and contain more than any action asks for.
@Suite struct UndeclaredQueryTests {
    private let test: TestHost
    private var host: PluginHost { test.host }

    init() throws { test = try TestHost.withSamples() }

    private func failure(
        _ url: String, _ parameters: Parameters = [:], _ origin: CallOrigin = .local
    ) throws -> PluginError {
        try #require(#expect(throws: PluginError.self) { try self.host.open(url, parameters, origin: origin) })
    }

    /// The log entries about query keys that were dropped.
    private var notes: [LogEntry] { test.log.filter { $0.message.contains("query") } }

    @Test(arguments: [CallOrigin.local, .remote])
    func `Query keys that an action does not declare are dropped`(origin: CallOrigin) throws {
        let detail: Value = ["title": "Detail of 1", "page": 1]
        for url in [
            "app://A/fetchDetail?key=1&utm_source=mail", "app://A/fetchDetail?utm_source=mail&key=1&utm_medium=",
            "app://shop/detail/1?a&b&c&a=2", "app://shop/detail/1?utm_source=%E6%BC%A2&%00=x",
        ] {
            #expect(try host.open(url, origin: origin) == detail, "\(url)")
            #expect(host.canOpen(url, origin: origin), "\(url)")
        }
    }

    @Test func `An asynchronous action can be opened by a URL with further query keys`() async throws {
        #expect(try await host.open("app://B/slowly?text=abc&milliseconds=1&utm_source=mail") == "cba")
    }

    @Test func `What the caller passes by itself must be declared, also beside a URL`() throws {
        let url = "app://A/fetchDetail?key=1"
        #expect(try failure(url, ["utm_source": "mail"]).code == .unknownParameter)
        #expect(!host.canOpen(url, ["utm_source": "mail"]))
        // The caller's value has precedence over the one in the query, so the caller's value is refused.
        #expect(try failure(url + "&utm_source=x", ["utm_source": "mail"]).code == .unknownParameter)
        #expect(try test.failure("A", "fetchDetail", ["key": "1", "utm_source": "mail"]).code == .unknownParameter)
    }

    @Test func `A group or a default of a route that the action does not declare is an error`() throws {
        try host.addRoute("app://p/:key/:color", to: "A/fetchDetail")
        #expect(try failure("app://p/1/red").code == .unknownParameter)
        try host.addRoute("app://q/:key", to: "A/fetchDetail", defaults: ["color": "red"])
        #expect(try failure("app://q/1").code == .unknownParameter)
    }

    @Test func `A missing parameter stays an error, whatever else is in the query`() throws {
        #expect(try failure("app://B/greet?nam=x").code == .missingParameter)
    }

    @Test func `Of the keys that a rest takes, only those of the host are dropped`() throws {
        try host.register(
            Manifest("Loose", version: "1.0.0") {
                Target("Loose") { Action("all", .rest()) { $0.keys.sorted().joined(separator: " ") } }
            })
        #expect(try host.open("app://Loose/all?a=1&b=&c") == "a b c")
        #expect(notes.isEmpty)
        #expect(try host.open("app://Loose/all?a=1&_url=x") == "a")
        #expect(notes.map(\.message).allSatisfy { $0.hasSuffix("“_url”.") } && notes.count == 1)
    }

    @Test func `One debug line in the log names the dropped keys, and asking writes none`() throws {
        #expect(host.canOpen("app://A/fetchDetail?key=1&utm_source=mail"))
        #expect(notes.isEmpty)
        try host.open("app://A/fetchDetail?key=1&utm_source=mail&utm_source=again")
        #expect(notes.count == 1 && notes.first?.level == .debug && notes.first?.call == "A/fetchDetail")
        let line = try #require(notes.first?.message)
        #expect(line.contains("“utm_source”") && line.contains("A/fetchDetail of ModuleA"), "\(line)")
        try host.open("app://A/fetchDetail?key=1")
        #expect(notes.count == 1)
    }

    @Test func `The line in the log is short, however many and however long the keys are`() throws {
        let long = String(repeating: "x", count: 5000)
        try host.open("app://A/fetchDetail?key=1&\(long)&" + (0..<1000).map { "k\($0)" }.joined(separator: "&"))
        #expect(notes.count == 1)
        #expect(notes.allSatisfy { $0.message.utf8.count < 1000 && $0.message.contains("997") }, "\(notes)")
    }

    @Test func `The handler of the log can make calls`() throws {
        let test = try TestHost([built("libModuleA.so")])
        try test.host.open("app://A/fetchDetail?key=1&x=1")
        #expect(try test.host.perform("A", "fetchDetail", ["2"])["title"] == "Detail of 2")
    }

    @Test func `Names that the host provides can be in a query of an action that does not declare them`() throws {
        for name in ["_url", "_pattern", "_object"] {
            #expect(try host.open("app://A/fetchDetail?key=1&\(name)=x")["page"] == 1)
            #expect(host.canOpen("app://A/fetchDetail?key=1&\(name)=x"))
        }
    }

    // MARK: The rest

    @Test func `Query keys that an action does not declare are its rest`() throws {
        let found: Value = ["text": "lamp", "page": 2, "rest": ["color": "red", "size": ""]]
        #expect(try host.open("app://Open/search?color=red&text=lamp&size&page=2", origin: .remote) == found)
        #expect(try host.open("app://Open/search?text=lamp") == ["text": "lamp", "page": 1, "rest": [:]])
        #expect(notes.isEmpty)
    }

    @Test func `In a rest the first value found wins, and of query keys that come twice the last one`() throws {
        try host.addRoute("app://o/:text/:color", to: "Open/search", defaults: ["color": "d", "size": 7])
        func rest(_ url: String, _ parameters: Parameters = [:]) throws -> Value? {
            try host.open(url, parameters)["rest"]
        }
        #expect(try rest("app://o/x/p?color=q&a=1&a=2&a=3") == ["color": "p", "size": 7, "a": "3"])
        #expect(try rest("app://o/x/p?size=q") == ["color": "p", "size": "q"])
        #expect(try rest("app://o/x/p?size=q", ["size": 1, "color": [1]]) == ["color": [1], "size": 1])
        let given: Value = ["size": 2, "b": true]
        #expect(try rest("app://o/x/p", ["y", 3, given]) == ["color": "p", "size": 2, "b": true])
    }

    @Test func `What a URL cannot set is not in a rest`() throws {
        #expect(try host.open("app://Open/all?_url=x&_pattern=y&_object=z&_event=e&_parameters=p&a=1") == ["a": "1"])
        try host.addRoute("app://o/:_url", to: "Open/all")
        #expect(try failure("app://o/x").code == .unknownParameter)
    }

    @Test func `A rest and what the host provides can be had together`() throws {
        try host.register(
            Manifest("Told", version: "1.0.0") {
                Target("Told") {
                    Action("about", .optional("_url", String.self), .rest()) { url, rest -> Value in
                        ["url": url.map(Value.string) ?? nil, "rest": .map(rest)]
                    }
                }
            })
        let url = "app://Told/about?a=1"
        #expect(try host.open(url) == ["url": .string(url), "rest": ["a": "1"]])
        #expect(try failure(url + "&_url=x").code == .unknownParameter)
    }

    @Test func `A query of as many keys as fit is a rest, and is dropped, without an error`() throws {
        let keys = (0..<3000).map { "\(String($0, radix: 36))" }
        let query = keys.joined(separator: "&")
        #expect(try host.open("app://Open/all?\(query)").map?.count == keys.count)
        #expect(try host.open("app://A/fetchDetail?key=1&key=\(keys[7])&\(query)")["title"] == "Detail of \(keys[7])")
    }

    @Test func `A fallback gets all that is in a URL`() throws {
        #expect(
            try host.open("app://OpenLost/gone?a=1&a=2&_url=x", ["b": 1])["rest"]
                == ["parameters": ["a": "2", "b": 1]])
        host.onMissingTarget { target, action, parameters, _ in .map(parameters) }
        #expect(try host.open("app://Nobody/knows?a=1", ["a": 2, "b": 3]) == ["a": 2, "b": 3])
    }

    @Test func `A URL is built with anything that an action with a rest takes, and opens with the same`() throws {
        try host.addRoute("app://o/:text", to: "Open/search", name: "search")
        let url = try host.url(for: "search", ["text": "a b", "page": 2, "color": "r&d"])
        #expect(url == "app://o/a%20b?color=r%26d&page=2")
        #expect(try host.open(url) == ["text": "a b", "page": 2, "rest": ["color": "r&d"]])
    }
}
