import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Routes of the program that lead to closures.
@Suite struct ClosureRoutesTests {
    private let test: TestHost
    private var host: PluginHost { test.host }

    init() throws { test = try TestHost([built("libModuleA.so")]) }

    @Test func `A closure gets the groups, the query, the caller's values, the defaults, and the URL`() throws {
        try host.addRoute("app://foo/:id", defaults: ["size": 3, "id": "none"]) { parameters in .map(parameters) }
        let got = try host.open("app://foo/a%2Fb?q=1&q=2", ["extra": [1, 2]])
        #expect(
            got == [
                "id": "a/b", "q": "2", "extra": [1, 2], "size": 3, "_url": "app://foo/a%2Fb?q=1&q=2",
                "_pattern": "app://foo/:id", "_object": false,
            ])
        try host.addRoute("app://bar/*") { $0["0"] ?? "nothing" }
        #expect(try host.open("app://bar/x/y") == "x/y")
    }

    @Test func `A closure may be asynchronous, have no result, and fail`() async throws {
        let opened = Mutex<[String]>([])
        try host.addRoute("app://later/:id") { (parameters) async throws -> Value in
            await Task.yield()
            return parameters["id"] ?? nil
        }
        try host.addRoute("app://quiet/:id") { parameters in
            opened.withLock { $0.append(parameters["id"]?.string ?? "") }
        }
        try host.addRoute("app://fails") { _ throws -> Value in throw PluginError("closed", "The shop is closed.") }
        #expect(try await host.open("app://later/7") == "7")
        #expect(error("app://later/7")?.code == .asynchronousAction)
        #expect(try openNow("app://quiet/8") == nil)
        #expect(opened.withLock { $0 } == ["8"])
        #expect(error("app://fails")?.code == "closed")
    }

    /// Opens a URL as a caller that cannot wait.
    private func openNow(_ url: String) throws(PluginError) -> Value { try host.open(url) }

    private func error(_ url: String) -> PluginError? {
        do throws(PluginError) { _ = try openNow(url) } catch { return error }
        return nil
    }

    @Test func `Closures are listed, named, overridden and removed like other routes`() throws {
        try host.addRoute("app://foo/:id", name: "foo", summary: "Foos") { _ in "one" }
        let route = try #require(host.routes.first { $0.pattern == "app://foo/:id" })
        #expect(route.action == "(closure)" && route.owner == "the program" && route.summary == "Foos")
        #expect(route.problem == nil && host.problems.isEmpty)
        #expect(try host.url(for: "foo", ["id": "x", "color": "red"]) == "app://foo/x?color=red")
        let conflict = #expect(throws: PluginError.self) { try host.addRoute("app://foo/:other") { _ in "two" } }
        #expect(conflict?.code == .conflict)
        try host.updateRoute("app://foo/:id", to: "A/fetchDetail", defaults: ["key": "k"])
        #expect(try host.open("app://shop/detail/x")["page"] == 1)
        #expect(host.removeRoute("app://foo/:id") && !host.canOpen("app://foo/x"))
        try host.addRoute("app://foo/:id") { _ in "three" }
        #expect(try host.open("app://foo/x") == "three" && host.canOpen("app://foo/x"))
        #expect(host.resolve("app://foo/x").action == "(closure)")
    }

    @Test func `A removed closure is released`() throws {
        final class Token: Sendable {}
        weak var weakToken: Token?
        do {
            let token = Token()
            weakToken = token
            try host.addRoute("app://held") { _ in withExtendedLifetime(token) { "held" } }
        }
        #expect(try host.open("app://held") == "held" && weakToken != nil)
        host.removeRoute("app://held")
        #expect(eventually { weakToken == nil })
    }

    @Test func `Other programs open closures that are declared remote, and the guard sees what they demand`() throws {
        try host.addRoute("app://inner") { _ in "inner" }
        try host.addRoute("app://outer/:id", isRemote: true, requires: ["login"]) { $0["id"] ?? nil }
        let seen = Mutex<[RemoteCall]>([])
        host.onRemoteCall { call in
            seen.withLock { $0.append(call) }
            return .pass
        }
        #expect(try host.open("app://outer/7", origin: .remote) == "7")
        let call = try #require(seen.withLock { $0.last })
        #expect(call.target == nil && call.route == "app://outer/:id" && call.demands == ["login"])
        #expect(call.parameters["id"] == "7")
        let error = #expect(throws: PluginError.self) { try (host.open("app://inner", origin: .remote) as Value) }
        #expect(error?.code == .noRoute && test.messages.last?.contains("closure is not remote") == true)
        #expect(try host.open("app://inner") == "inner")
    }

    @Test func `A closure route may be the fallback of its scheme`() throws {
        try host.addRoute("app://", isRemote: true) { $0["_url"] ?? nil }
        #expect(try host.open("app://nobody/at/home", origin: .remote) == "app://nobody/at/home")
    }
}
