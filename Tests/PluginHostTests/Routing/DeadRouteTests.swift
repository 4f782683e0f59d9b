import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Routes that cannot lead to their actions.
@Suite struct DeadRouteTests {
    private func host() throws -> TestHost { try TestHost([built("libModuleA.so")]) }

    private func problem(_ pattern: String, _ host: PluginHost) -> String? {
        host.routes.first { $0.pattern == pattern }?.problem?.message
    }

    @Test func `A route is dead while nobody offers its action, or the action does not take its groups or defaults`()
        throws
    {
        let test = try host()
        let host = test.host
        #expect(host.problems.isEmpty && host.routes.allSatisfy { $0.problem == nil })
        try host.addRoute("app://d/target", to: "Gone/x")
        try host.addRoute("app://d/action", to: "A/fetchDetai")
        try host.addRoute("app://d/group/:kei", to: "A/fetchDetail")
        try host.addRoute("app://d/default", to: "A/fetchDetail", defaults: ["pag": 1])
        try host.addRoute("app://d/type/:key", to: "A/fetchDetail", defaults: ["page": "two"])
        try host.addRoute("app://d/reserved/:_url", to: "A/fetchDetail")
        try host.addRoute("app://d/alive/:key/*", to: "A/fetchDetail", defaults: ["page": 2.0])
        for (pattern, words) in [
            ("app://d/target", "No module offers the target “Gone”"), ("app://d/action", "Did you mean “fetchDetail”?"),
            ("app://d/group/:kei", "has no parameter “kei”, which is a group of the route. Did you mean “key”?"),
            ("app://d/default", "has no parameter “pag”, for which the route has a default"),
            ("app://d/type/:key", "declared int; the route's default for it is a value of type string"),
            ("app://d/reserved/:_url", "Rename it"),
        ] {
            let message = try #require(problem(pattern, host), "\(pattern)")
            #expect(message.contains("“\(pattern)” of the program is dead") && message.contains(words), "\(message)")
            #expect(host.problems.contains { $0.code == .deadRoute && $0.message == message })
        }
        #expect(problem("app://d/alive/:key/*", host) == nil && host.problems.count == 6)
        // The route is alive again once its action exists.
        try host.register(Manifest("Gone", version: "1.0.0") { Target("Gone") { Action("x") { 1 } } })
        #expect(problem("app://d/target", host) == nil && host.problems.count == 5)
        try host.unregister("Gone")
        #expect(host.problems.count == 6)
    }

    @Test func `A default for what only the host sets is dead, whatever the action takes`() throws {
        let test = try host()
        let host = test.host
        try host.register(
            Manifest("Loose", version: "1.0.0") { Target("Loose") { Action("all", .rest()) { $0.count } } })
        try host.addRoute("app://rest", to: "Loose/all", defaults: ["_url": "x"])
        try host.addRoute("app://alive", to: "Loose/all", defaults: ["url": "x"])
        #expect(problem("app://rest", host)?.contains("“_url”, which only the host sets. Remove it.") == true)
        #expect(problem("app://alive", host) == nil)
    }

    @Test func `The status of a module lists its dead routes`() throws {
        let test = try host()
        try test.host.register(
            Manifest("Odd", version: "1.0.0") {
                Target("Odd") { Action("x", .optional("a", Int.self)) { $0 ?? 0 } }
                Route("app://odd/:b", to: "Odd/x")
                Route("app://odd/even/:a", to: "Odd/x")
            })
        let status = try #require(test.host.modules.first { $0.name == "Odd" })
        #expect(status.problems.map(\.code) == [.deadRoute])
        #expect(status.problems.first?.message.contains("“app://odd/:b” of module Odd is dead") == true)
        #expect(test.host.modules.first { $0.name == "ModuleA" }?.problems.isEmpty == true)
    }

    @Test func `A thousand dead routes of one owner are counted`() throws {
        let test = try host()
        try test.host.addRoutes((0..<1_000).map { ("app://d/\($0)", "Gone/x") })
        let problems = test.host.problems
        #expect(problems.count == 11 && problems.last?.message.contains("990 more routes of the program") == true)
        #expect(test.host.routes.count { $0.problem != nil } == 1_000)
    }
}
