import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// Route files in the folder of a host that watches it.
@Suite(.timeLimit(.minutes(30))) struct RouteFileTests {
    private let host: TestHost

    init() throws {
        host = try TestHost()
        try CModule().build(into: host.plugins, as: "good.so")
    }

    private var owners: [String: String] {
        Dictionary(host.host.routes.map { ($0.pattern, ($0.owner as NSString).lastPathComponent) }) { $1 }
    }

    private func opens(_ url: String) -> Bool { host.host.canOpen(url) }
    private var problems: [String] { host.host.problems.filter { $0.code != .deadRoute }.map(\.message) }
    private var toldProblems: [String] {
        host.changes.compactMap { if case .problem(let error) = $0 { error.message } else { nil } }
    }

    @Test func `both forms of a route lead to the action, in JSON and in a property list`() async throws {
        try host.put(
            """
            {"app://a/:key": "Good/answer",
             "app://b": {"action": "Good/answer", "name": "b", "summary": "Two", "defaults": {"n": 1.5, "l": [true]}}}
            """, "x.routes.json")
        try host.put(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><dict>
              <key>app://c</key><string>Good/answer</string>
              <key>app://d</key><dict><key>action</key><string>Good/answer</string><key>defaults</key>
                <dict><key>n</key><integer>3</integer><key>b</key><true/></dict></dict>
            </dict></plist>
            """, "y.routes.plist")
        try await host.startAside()
        #expect(problems == [])
        let routes = Dictionary(host.host.routes.map { ($0.pattern, $0) }) { $1 }
        #expect(routes.count == 4)
        #expect(routes["app://b"]?.name == "b" && routes["app://b"]?.summary == "Two")
        #expect(routes["app://b"]?.defaults == ["n": 1.5, "l": [true]])
        #expect(routes["app://d"]?.defaults == ["n": 3, "b": true])
        #expect(routes["app://b"]?.owner == "the file \(host.plugins)/x.routes.json")
        #expect(opens("app://c"))
    }

    @Test func `files can be added, changed and removed while the host runs`() async throws {
        try await host.startAside()
        #expect(!opens("app://a"))
        try host.put(#"{"app://a": "Good/answer"}"#, "x.routes.json")
        #expect(await becomesTrue { opens("app://a") })
        try host.put(#"{"app://b": "Good/answer"}"#, "x.routes.json")
        #expect(await becomesTrue { opens("app://b") })
        #expect(!opens("app://a"))
        try FileManager.default.removeItem(atPath: host.plugins + "/x.routes.json")
        #expect(await becomesTrue { !opens("app://b") })
        #expect(problems == [])
    }

    @Test func `a file is read when its writer closes it`() async throws {
        try await host.startAside()
        let path = host.plugins + "/x.routes.json"
        let writer = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        _ = #"{"app://a": "Go"#.withCString { write(writer, $0, strlen($0)) }
        try host.put(#"{"app://marker": "Good/answer"}"#, "y.routes.json")
        #expect(await becomesTrue { opens("app://marker") })
        #expect(problems == [])
        _ = #"od/answer"}"#.withCString { write(writer, $0, strlen($0)) }
        close(writer)
        #expect(await becomesTrue { opens("app://a") })
    }

    @Test func `Expressions that are cheap one by one and expensive together are refused, with the limit`()
        async throws
    {
        try await host.startAside()
        func routes(_ count: Int) -> String {
            let routes = (0..<count).map { #""app://x\#($0)/:a((?:[ab]{0,10}){0,20}c)": "Good/answer""# }
            return "{\(routes.joined(separator: ", "))}"
        }
        try host.put(routes(1), "x.routes.json")
        #expect(await becomesTrue { host.host.routes.count == 1 })
        #expect(problems == [])
        try host.put(routes(1000), "x.routes.json")
        #expect(await becomesTrue { !problems.isEmpty })
        #expect(problems.first?.contains("together have more than 2000000") == true, "\(problems)")
        #expect(host.host.routes.count == 1)
    }

    @Test func `a broken file changes nothing, and is reported once, with what is wrong and where`() async throws {
        try host.put(#"{"app://a": "Good/answer"}"#, "x.routes.json")
        try await host.startAside()
        try host.put(#"{"app://b": "Good/answer", }{"#, "x.routes.json")
        #expect(await becomesTrue { toldProblems.count == 1 })
        #expect(opens("app://a") && !opens("app://b"))
        #expect(problems.count == 1 && problems[0].contains("x.routes.json is not valid JSON: "))
        try host.put(#"{"app://m": "Good/answer"}"#, "y.routes.json")
        #expect(await becomesTrue { opens("app://m") })
        #expect(toldProblems.count == 1)
        try host.put(#"{"app://b": "Good/answer"}"#, "x.routes.json")
        #expect(await becomesTrue { opens("app://b") })
        #expect(problems == [])
    }

    @Test func `of two files with one pattern, the one whose name sorts first wins, whichever was added first`()
        async throws
    {
        try host.put(#"{"app://a/:x": "Good/answer", "app://second": "Good/answer"}"#, "b.routes.json")
        try await host.startAside()
        #expect(opens("app://second"))
        try host.put(#"{"app://a/:y": "Good/answer", "app://first": "Good/answer"}"#, "a.routes.json")
        #expect(await becomesTrue { opens("app://first") })
        #expect(!opens("app://second"))
        #expect(owners == ["app://a/:y": "a.routes.json", "app://first": "a.routes.json"])
        #expect(problems.count == 1 && problems[0].contains("a.routes.json") && problems[0].contains("b.routes.json"))
        #expect(await becomesTrue { toldProblems == problems })
        try FileManager.default.removeItem(atPath: host.plugins + "/a.routes.json")
        #expect(await becomesTrue { opens("app://second") })
        #expect(problems == [] && owners["app://a/:x"] == "b.routes.json")
    }

    @Test func `a later module and the program displace a file, which is used again after them`() async throws {
        try host.put(#"{"app://a": "Good/answer", "app://mine": "Good/answer"}"#, "x.routes.json")
        try host.put(#"{"app://p": "Good/answer"}"#, "y.routes.json")
        try await host.startAside()
        #expect(owners["app://a"] == "x.routes.json")
        let manifest = """
            {"name": "R", "version": "1.0.0", "targets": [{"name": "R", "actions": [{"name": "answer"}]}],
             "routes": [{"pattern": "app://a", "action": "R/answer"}]}
            """
        try CModule(name: "R", manifest: manifest).build(into: host.plugins, as: "r.so")
        #expect(await becomesTrue { owners["app://a"] == "module R" })
        #expect(!opens("app://mine"))
        #expect(await becomesTrue { toldProblems.count == 1 })
        #expect(problems == toldProblems && problems[0].contains("module R"))

        try host.host.addRoute("app://p", to: "Good/answer")
        #expect(owners["app://p"] == "the program")
        #expect(await becomesTrue { toldProblems.count == 2 })
        host.host.removeRoute("app://p")
        #expect(owners["app://p"] == "y.routes.json")
        #expect(throws: PluginError.self) { try host.host.addRoute("app://a", to: "Good/answer") }
    }

    @Test func `a refused module leaves no routes behind, and displaces none`() async throws {
        try host.put(#"{"app://a": "Good/answer"}"#, "x.routes.json")
        try host.host.addRoute("app://p", to: "Good/answer")
        for (name, routes) in [("R", ["app://a", "app://r", "app://p"]), ("S", ["app://r"])] {
            let declared = routes.map { #"{"pattern": "\#($0)", "action": "\#(name)/answer"}"# }
            let manifest = """
                {"name": "\(name)", "version": "1.0.0", "targets": [{"name": "\(name)", "actions": [{"name": "answer"}]}],
                 "routes": [\(declared.joined(separator: ", "))]}
                """
            try CModule(name: name, manifest: manifest).build(into: host.plugins, as: "\(name).so")
        }
        try await host.startAside()
        #expect(host.states["R.so"] == "failed" && host.states["S.so"] == "active")
        #expect(owners == ["app://a": "x.routes.json", "app://p": "the program", "app://r": "module S"])
    }

    @Test func `a route of a file can be removed and updated like any other`() async throws {
        try host.put(#"{"app://a": "Good/answer", "app://b": "Good/answer"}"#, "x.routes.json")
        try await host.startAside()
        #expect(host.host.removeRoute("app://a"))
        #expect(owners == ["app://b": "x.routes.json"])
        try host.host.updateRoute("app://b", to: "Good/answer", summary: "mine")
        #expect(owners == ["app://b": "the program"] && problems == [])
    }

    private func module(_ version: String) -> CModule {
        CModule(
            name: "R",
            manifest: """
                {"name": "R", "version": "\(version)", "targets": [{"name": "R", "actions": [{"name": "answer"}]}],
                 "routes": [{"pattern": "app://a/:x", "action": "R/answer"}, {"pattern": "app://b", "action": "R/answer"}]}
                """)
    }

    private func replace(with version: String) async throws {
        try module(version).build(into: host.plugins, as: "r-\(version).so")
        #expect(await becomesTrue { host.host.modules.contains { $0.version == version && $0.state == .active } })
    }

    @Test func `a removed route of a module returns with the next generation`() async throws {
        try module("1.0.0").build(into: host.plugins, as: "r-1.0.0.so")
        try await host.startAside()
        #expect(host.host.removeRoute("app://b") && owners == ["app://a/:x": "module R"])
        try host.put(#"{"app://m": "Good/answer"}"#, "m.routes.json")
        #expect(await becomesTrue { owners["app://m"] != nil })
        #expect(owners["app://b"] == nil)
        try await replace(with: "2.0.0")
        #expect(await becomesTrue { owners["app://b"] == "module R" })
    }

    @Test func `a module's route that the program updates belongs to the program until it removes it`() async throws {
        try module("1.0.0").build(into: host.plugins, as: "r-1.0.0.so")
        try await host.startAside()
        try host.host.updateRoute("app://a/:y", to: "Good/answer")
        try await replace(with: "2.0.0")
        #expect(owners == ["app://a/:y": "the program", "app://b": "module R"] && problems == [])
        #expect(host.host.removeRoute("app://a/:y") && owners == ["app://b": "module R"])
        try await replace(with: "3.0.0")
        #expect(await becomesTrue { owners["app://a/:x"] == "module R" })
    }

    @Test func `a file's route that the program updates stays the program's when the file changes`() async throws {
        try host.put(#"{"app://a": "Good/answer", "app://b": "Good/answer"}"#, "x.routes.json")
        try await host.startAside()
        try host.host.updateRoute("app://b", to: "Good/answer", summary: "mine")
        try host.put(
            #"{"app://a": "Good/answer", "app://b": "Good/answer", "app://c": "Good/answer"}"#, "x.routes.json")
        #expect(await becomesTrue { opens("app://c") })
        #expect(owners["app://b"] == "the program" && problems == [])
    }

    @Test func `a file that others can write is not used`() async throws {
        try host.put(#"{"app://a": "Good/answer"}"#, "x.routes.json")
        chmod(host.plugins + "/x.routes.json", 0o666)
        try await host.startAside()
        #expect(!opens("app://a") && host.host.problems.map(\.code) == [.untrusted])
        chmod(host.plugins + "/x.routes.json", 0o644)
        #expect(await becomesTrue { opens("app://a") })
    }

    @Test(
        arguments: [
            ("", "is empty"), ("[]", "must be an object"), (#"{"app://a": 3}"#, "“app://a”: It must be"),
            (#"{"app://a": "nowhere"}"#, "“app://a”: The action of a route"),
            (#"{"app://(": "A/b"}"#, "route “app://(”: "), (#"{"app://a": {"summary": "x"}}"#, "\"action\" is missing"),
            (#"{"app://a": {"acton": "A/b"}}"#, "Did you mean “action”?"),
            (#"{"app://a": {"action": "A/b", "defaults": []}}"#, "\"defaults\" must be an object"),
            (#"{"app://a": "A/b", "app://a": "A/c"}"#, "has the name “app://a” twice"),
            (#"{"app://:a/x": "A/b", "app://:b/x": "A/c"}"#, "match the same URLs"),
            (#"{"app://a": {"action": "A/b", "name": "n"}, "app://b": {"action": "A/b", "name": "n"}}"#, "both named"),
            ("{\"a\": " + String(repeating: "[", count: 200), "nested more than 128"),
            (
                "{\"\u{7f}",
                "is not "
                    + "valid JSON"
            ),
        ])
    func `the error of an invalid JSON file states the position`(text: String, message: String) {
        let error = #expect(throws: PluginError.self) {
            try RouteFile.entries(Array(text.utf8), path: "/p/x.routes.json", scheme: "app")
        }
        #expect(error?.code == .invalidRouteFile)
        #expect(error?.message.contains("/p/x.routes.json") == true)
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }

    @Test(
        arguments: [
            "", "text", "<plist>", "<plist><dict><key>a</key></dict></plist>", "<plist><array/></plist>", "bplist00",
            String(repeating: "<array>", count: 100_000), "<plist><dict><key>a</key><date>2000-01-01T00:00:00Z</date>",
            "<!DOCTYPE plist [<!ENTITY a \"b\">]><plist><string>&a;</string></plist>", "<",
        ])
    func `an invalid property list is an error`(text: String) {
        let error = #expect(throws: PluginError.self) {
            try RouteFile.entries(Array(text.utf8), path: "/p/x.routes.plist", scheme: "app")
        }
        #expect(error?.code == .invalidRouteFile)
        #expect(error?.message.hasPrefix("/p/x.routes.plist") == true)
    }

    @Test func `a route file in another format is a problem that names the accepted ones, until it is removed`()
        async throws
    {
        try host.put("app://a: Good/answer", "x.routes.yaml")
        for name in ["x.routes.json~", "x.routes.json.bak", ".x.routes.yaml", "routes.yaml"] { try host.put("", name) }
        try await host.startAside()
        #expect(host.host.problems.map(\.code) == [.invalidRouteFile])
        for word in ["/x.routes.yaml is not read", ".routes.json", ".routes.plist"] {
            #expect(problems.first?.contains(word) == true, "\(problems)")
        }
        try host.put("", "y.routes.JSON")
        #expect(await becomesTrue { problems.count == 2 })
        for name in ["x.routes.yaml", "y.routes.JSON"] { unlink("\(host.plugins)/\(name)") }
        #expect(await becomesTrue { problems.isEmpty })
        #expect(toldProblems.contains { $0.contains("y.routes.JSON is not read") })
    }

    @Test func `routes that could make a URL take too long are refused, from files and from modules`() async throws {
        func patterns(_ host: String) -> [String] {
            (0..<60).map { "app://\(host)/:x(q\($0)?(?:(?:[ab]{0,20}){0,20})*)" }
        }
        let inFile = patterns("a").map { "\"\($0)\": \"Good/answer\"" }.joined(separator: ",")
        try host.put("{\(inFile)}", "x.routes.json")
        let inModule = patterns("b").map { "{\"pattern\": \"\($0)\", \"action\": \"Heavy/answer\"}" }
        var heavy = CModule(name: "Heavy")
        heavy.moreManifest = "\"routes\": [\(inModule.joined(separator: ","))], "
        try heavy.build(into: host.plugins, as: "heavy.so")
        try await host.startAside()
        #expect(host.answer() == "yes" && owners.isEmpty)
        let refusals = [problems.first, host.status("heavy.so")?.error?.message].map { $0 ?? "" }
        #expect(problems.count == 1 && refusals[0].contains("x.routes.json are not registered"), "\(problems)")
        for refusal in refusals {
            #expect(refusal.contains("at most \(SearchWork.most) are allowed"), "\(refusal)")
        }
    }

    @Test func `files that are too large or have too many routes are refused, quickly`() async throws {
        let many = (0...RouteFile.routeLimit).map { "\"app://a/\($0)\":\"Good/answer\"" }.joined(separator: ",")
        try host.put("{\(many)}", "many.routes.json")
        try host.put(Data(count: DeclarationFile.sizeLimit + 1), "large.routes.json")
        try await host.startAside()
        #expect(problems.count == 2)
        #expect(problems[0].contains("at most \(DeclarationFile.sizeLimit)") && problems[1].contains("at most 100000"))
    }
}
