import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Literals of named values accept Swift values: in URLs, routes, and replies to events.
@Suite struct NamedValuesTests {
    private let test: TestHost
    private var host: PluginHost { test.host }
    private let text = "a b"
    private let number = 7
    private let missing: String? = nil

    init() throws {
        test = try TestHost([])
        let (text, number) = (text, number)
        try test.host.register(
            Manifest("Named", version: "1.0.0") {
                Target("T") {
                    Action("show", .required("key", String.self), .optional("n", Int.self), .rest()) { key, n, rest in
                        ["key": .string(key), "n": n.map(Value.int) ?? .null].merging(rest) { own, _ in own }
                    }
                    Action("url", .context()) { context in
                        try context.url(for: "named", ["key": text, "n": number + 1])
                    }
                    Action("readyURL", .context(), .rest()) { context, rest in try context.url(for: "named", rest) }
                }
                Route("app://named/:key", to: "T/show", defaults: ["n": number, "note": text]).named("named")
                Route("app://ready/:key", to: "T/show", defaults: ["n": 3] as [String: Value])
            })
    }

    @Test func `A URL is built from variables, and from a ready map`() throws {
        #expect(try host.url(for: "named", ["key": text, "n": number * 2]) == "app://named/a%20b?n=14")
        let ready: [String: Value] = ["key": "x"]
        #expect(try host.url(for: "named", ready) == "app://named/x")
        #expect(try host.perform("T", "url") == "app://named/a%20b?n=8")
        #expect(try host.perform("T", "readyURL", ["key": text]) == "app://named/a%20b")
        let large = #expect(throws: PluginError.self) { try host.url(for: "named", ["key": text, "n": UInt.max]) }
        #expect(large?.code == .invalidValue && large?.message.contains("“n”") == true, "\(large as Any)")
    }

    @Test func `Defaults of routes are variables, or a ready map`() throws {
        #expect(try host.open("app://named/k") == ["key": "k", "n": 7, "note": "a b"])
        #expect(try host.open("app://ready/k") == ["key": "k", "n": 3])
        try host.addRoute("app://more/:key", to: "T/show", defaults: ["n": number + 1, "note": text, "none": missing])
        #expect(try host.open("app://more/k") == ["key": "k", "n": 8, "note": "a b", "none": nil])
        try host.updateRoute("app://more/:key", to: "T/show", defaults: ["n": number])
        #expect(try host.open("app://more/k") == ["key": "k", "n": 7])
        let ready: [String: Value] = ["n": 2]
        try host.updateRoute("app://more/:key", to: "T/show", defaults: ready)
        #expect(try host.open("app://more/k") == ["key": "k", "n": 2])
        try host.addRoute("app://most/:key", to: "T/show", defaults: ready)
        #expect(try host.open("app://most/k") == ["key": "k", "n": 2])
    }

    @Test func `A default that cannot be converted is an error with its name`() throws {
        let added = #expect(throws: PluginError.self) {
            try host.addRoute("app://large/:key", to: "T/show", defaults: ["n": UInt.max])
        }
        #expect(added?.code == .invalidValue && added?.message.contains("“n”") == true)
        let declared = #expect(throws: PluginError.self) {
            try host.register(
                Manifest("Large", version: "1.0.0") {
                    Target("Large") { Action("a", .rest()) { rest in rest.count } }
                    Route("app://large", to: "Large/a", defaults: ["n": UInt.max])
                })
        }
        #expect(declared?.code == .invalidManifest && declared?.message.contains("“n”") == true, "\(declared as Any)")
    }

    @Test func `Replies to events take variables`() throws {
        let (text, number) = (text, number)
        let handlers = [
            host.handle("named.text") { _ in .handled(text) },
            host.handle("named.none") { _ in .handled(String?.none) },
            host.handle("named.passed") { _ in .passedOn(["a": text, "n": number]) },
            host.handle("named.large") { _ in .handled(UInt.max) },
            host.handle("named.failed") { _ in .failed(PluginError("closed", "The shop is closed.")) },
        ]
        #expect(try host.emit("named.text").result == "a b")
        let none = try host.emit("named.none")
        #expect(none.isHandled && none.result == nil)
        let passed = try host.emit("named.passed")
        #expect(!passed.isHandled && passed.parameters == ["a": "a b", "n": 7])
        let large = try host.emit("named.large")
        #expect(!large.isHandled && large.failures.map(\.code) == [.invalidValue])
        #expect(try host.emit("named.failed").failures.map(\.code) == ["closed"])
        for handler in handlers { handler.cancel() }
    }

    @Test func `A module's handler that replies that it has failed is one that has thrown`() throws {
        try host.register(
            Manifest("Fails", version: "1.0.0") {
                Target("Fails") {
                    Action("emit", .context()) { context in try context.emit("fails.now") }
                    Action.handle("fails.now") { _ in .failed(PluginError("closed", "The shop is closed.")) }
                }
            })
        #expect(try ChainOutcome(host.perform("Fails", "emit")).failures.map(\.code) == ["closed"])
    }

    @Test func `A route's closure returns any result`() async throws {
        let text = text
        try host.addRoute("app://lost") { _ in text }
        #expect(try openNow("app://lost") == "a b")
        try host.addRoute("app://id/:id") { parameters in parameters["id"]?.string }
        #expect(try openNow("app://id/7") == "7")
        try host.addRoute("app://number/:id", defaults: ["text": text]) { $0.count }
        #expect(try openNow("app://number/7") == 5)
        try host.addRoute("app://later") { _ in
            await Task.yield()
            return [text]
        }
        #expect(try await host.open("app://later") == ["a b"])
    }

    private func openNow(_ url: String) throws(PluginError) -> Value { try host.open(url) }
}
