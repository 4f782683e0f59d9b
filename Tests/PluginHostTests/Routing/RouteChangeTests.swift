import PluginABI
import Testing

@testable import PluginHost

/// A plan finds conflicts by changing the table of routes. The tables that carry it out contain the result.
@Suite struct RouteChangeTests {
    private func entries(_ module: String, _ patterns: [String]) throws -> [RouteEntry] {
        try patterns.map { pattern in
            try RouteEntry(
                RoutePattern(pattern), to: "T/a", name: nil, summary: "", defaults: [:], owner: .module(module))
        }
    }

    private func change(_ routes: Routes, without gone: [RouteEntry], adding new: [RouteEntry]) -> RouteChange {
        var table = routes.table
        for entry in gone { table.remove(entry) }
        for entry in new { #expect(table.insert(entry) == nil) }
        return RouteChange(before: routes.table, without: gone, adding: new, after: table)
    }

    private func patterns(_ routes: Routes) -> [String] { routes.table.all.map(\.pattern.text).sorted() }

    @Test("routes that a plan has added are not added again")
    func shared() throws {
        let (old, new) = (try entries("A", ["app://a/x", "app://a/:y"]), try entries("B", ["app://a/x", "app://b/z"]))
        let first = change(Routes(), without: [], adding: old)
        let routes = Routes().with([], without: [], adding: old, as: nil)
        #expect(routes.table.root !== first.after.root)
        #expect(patterns(routes) == ["app://a/:y", "app://a/x"])

        let second = change(routes, without: old, adding: new)
        let changed = routes.with([], without: old, adding: new, as: second)
        #expect(changed.table.root === second.after.root)
        #expect(patterns(changed) == ["app://a/x", "app://b/z"])
        #expect(patterns(routes) == ["app://a/:y", "app://a/x"], "the table before has not changed")
    }

    @Test("a change of other routes, or of another table, is not used")
    func others() throws {
        let (old, new) = (try entries("A", ["app://a/x"]), try entries("B", ["app://b/y", "app://b/z"]))
        let routes = Routes().with([], without: [], adding: old, as: nil)
        let planned = change(routes, without: [], adding: new)
        let part = routes.with([], without: [], adding: [new[0]], as: planned)
        #expect(patterns(part) == ["app://a/x", "app://b/y"])
        let replaced = routes.with([], without: old, adding: new, as: planned)
        #expect(patterns(replaced) == ["app://b/y", "app://b/z"])
        var later = routes
        try later.add(entries("C", ["app://c/w"])[0], [])
        let both = later.with([], without: [], adding: new, as: planned)
        #expect(patterns(both) == ["app://a/x", "app://b/y", "app://b/z", "app://c/w"])
    }
}
