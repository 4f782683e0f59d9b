import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// For a remote caller, only routes and actions that are declared remote exist.
@Suite struct RemoteRoutesTests {
    private let test: TestHost
    private var host: PluginHost { test.host }

    init() throws {
        test = try TestHost([])
        try test.host.register(
            Manifest("Shop", version: "1.0.0") {
                Target("Shop") {
                    Action("open", .optional("id", String.self)) { "open \($0 ?? "")" }.remote()
                    Action("staff", .optional("id", String.self)) { "staff \($0 ?? "")" }
                }
                Target("Lost") {
                    Action("notFound", .required("action", String.self), .required("parameters", Value.self)) {
                        name, _ in
                        "no \(name)"
                    }.remote()
                    Action("inner") { "inner" }
                }
            })
    }

    private func open(_ url: String, _ origin: CallOrigin = .remote) -> String? {
        try? host.open(url, origin: origin).string
    }

    private func failure(_ url: String, _ origin: CallOrigin = .remote) throws -> PluginError {
        try #require(#expect(throws: PluginError.self, "\(url)") { try self.host.open(url, origin: origin) })
    }

    @Test func `The search passes over routes that are not remote`() throws {
        try host.addRoute("app://h/new", to: "Shop/staff")
        try host.addRoute("app://h/:id(\\w+)", to: "Shop/staff")
        try host.addRoute("app://h/:id", to: "Shop/open")
        #expect(open("app://h/new", .local) == "staff " && open("app://h/new") == "open new")
        #expect(open("app://h/other", .local) == "staff other" && open("app://h/other") == "open other")
        #expect(host.canOpen("app://h/new", origin: .remote))
        // The search goes on past a host with groups, past a literal host, and past the scheme.
        try host.addRoute("app://a.h/x", to: "Shop/staff")
        try host.addRoute("app://:id.h/x", to: "Shop/open")
        #expect(open("app://a.h/x", .local) == "staff " && open("app://a.h/x") == "open a")
        try host.addRoute("app://:id.i/x", to: "Shop/staff")
        try host.addRoute("/:id", to: "Shop/open")
        #expect(open("app://a.i/x", .local) == "staff a" && open("app://a.i/x") == "open x")
    }

    @Test func `A route is passed over whether its action is absent or not remote`() throws {
        try host.addRoute("app://h/:id", to: "Nobody/home")
        #expect(try failure("app://h/x").code == .noRoute)
        try host.addRoute("app://h/*", to: "Shop/open")
        #expect(open("app://h/x") == "open ")
        #expect(try failure("app://h/x", .local).code == .unknownTarget)
    }

    @Test func `scheme://target/action comes after the routes, and the fallback last, if it is remote`() throws {
        try host.addRoute("app://shop/open", to: "Shop/staff")
        #expect(open("app://Shop/open") == "open " && open("app://Shop/open", .local) == "staff ")
        try host.addRoute("app://", to: "Shop/staff")
        #expect(open("app://nobody/x", .local) == "staff ")
        #expect(try failure("app://nobody/x").code == .noRoute)
        try host.updateRoute("app://", to: "Shop/open")
        #expect(open("app://nobody/x") == "open " && open("app://Shop/staff") == "open ")
    }

    @Test func `The error does not reveal whether something is absent or not remote, and suggests nothing`() throws {
        try host.addRoute("app://staff/:id", to: "Shop/staff")
        var messages: Set<String> = []
        for url in [
            "app://Shop/staff", "app://Shop/stafff", "app://Shp/staff", "app://staff/x", "app://stuff/x", "other://a/b",
            "app://x", "app://Shop/staff?unknown=1", "app://Shop/nativeStaff",
        ] {
            let error = try failure(url)
            #expect(error.code == .noRoute && error.source == nil, "\(url): \(error)")
            messages.insert(error.message.replacing("“\(url)”", with: "URL"))
            #expect(!host.canOpen(url, origin: .remote))
        }
        #expect(messages.count == 1, "\(messages)")
        // Local callers are told everything.
        #expect(try failure("app://Shop/stafff", .local).message.contains("Did you mean"))
    }

    @Test func `The host's own log says which it was`() throws {
        try host.addRoute("app://staff/:id", to: "Shop/staff")
        for (url, words) in [
            ("app://Shop/staff", "Shop/staff of Shop is not declared remote"), ("app://Shop/gone", "no action “gone”"),
            ("app://Nobody/x", "No module offers the target “Nobody”"),
            ("app://staff/x", "the route “app://staff/:id” of the program. Shop/staff of Shop is not declared remote"),
            ("other://a/b", "other://"),
        ] {
            _ = try failure(url)
            let line = try #require(test.messages.last)
            #expect(line.contains("“\(url)”") && line.contains(words), "\(line)")
        }
        let count = test.messages.count
        #expect(!host.canOpen("app://Shop/staff", origin: .remote) && test.messages.count == count)
    }

    @Test func `A remote notFound answers for what is absent and for what is not remote`() throws {
        #expect(open("app://Lost/inner", .local) == "inner")
        #expect(open("app://Lost/inner") == "no inner" && open("app://Lost/gone") == "no gone")
        try host.addRoute("app://l/:action", to: "Lost/inner")
        #expect(open("app://l/x") == "no inner")
    }

    @Test func `The program's handler is asked last, for what is absent and for what is not remote alike`() throws {
        try host.addRoute("app://staff/:id", to: "Shop/staff")
        host.onMissingTarget { target, action, parameters, origin in
            "\(target)/\(action) \(parameters["id"]?.string ?? "-") \(origin)"
        }
        #expect(open("app://Shop/staff?id=1") == "Shop/staff 1 remote")
        #expect(open("app://Gone/x?id=1") == "Gone/x 1 remote")
        #expect(open("app://staff/7") == "Shop/staff 7 remote")
        #expect(try failure("other://a/b").code == .noRoute)
        #expect(open("app://Shop/open?id=1") == "open 1")
    }

    @Test func `The work of a search that passes over everything is bounded like that of any other`() throws {
        let most = 12_000_000
        var table = RouteTable(mostSteps: most)
        var count = 0
        while count < 200 {
            let entry = try RouteEntry(
                RoutePattern("a://h/:x(q(?:\(count))?[ab]*a[ab]{40})"), to: "T/a", name: nil, summary: "",
                defaults: [:],
                owner: .program)
            if table.insert(entry) != nil { break }
            count += 1
        }
        var (steps, seen) = (0, 0)
        try URLText.read("a://h/q" + String(repeating: "a", count: 16_300)) { url in
            let found = table.match(url, counting: &steps) { _ in
                seen += 1
                return false
            }
            #expect(found == nil)
        }
        #expect(seen == count && steps <= most)
    }
}
