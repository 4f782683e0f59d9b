import Foundation
import PluginABI
import Testing

@testable import PluginFacades
@testable import PluginHost
@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct FacadeTests {
    /// The façade of a module beside the tests.
    private func facade(of module: String) throws -> String {
        let report = try PluginHost.inspect(file: built("lib\(module).so"), trustsEveryone: true).derivingTypes()
        return try Facade(manifest: #require(report.json["manifest"]).json).text
    }

    private func facade(_ manifest: String) throws -> String { try Facade(manifest: manifest).text }

    @Test(arguments: [("ModuleA", "ModuleB"), ("ModuleB", "ModuleA")])
    func `the façades through which the samples call each other are up to date`(module: String, user: String) throws {
        let committed = "\(repository)/Plugins/\(user)/\(module)Facade.swift"
        #expect(
            try String(contentsOfFile: committed, encoding: .utf8) == facade(of: module),
            "Make it again: pluginhost facade .build/debug/lib\(module).so > Plugins/\(user)/\(module)Facade.swift")
    }

    @Test(arguments: ["PluginABI", "PluginHost"], [false, true])
    func `a façade of the nastiest manifest compiles, for modules and for programs`(
        library: String, isPublic: Bool
    ) throws {
        let text = try Facade(manifest: nastyManifest, isPublic: isPublic).text
        let caller = library == "PluginHost" ? "PluginHost" : "HostContext"
        let use = """
            import PluginABI
            import \(library)
            func use(_ caller: \(caller)) async throws(PluginError) {
                let target = NastyModuleV2Facade.Class(caller, timeout: .seconds(1))
                try target.default(in: 1)
                try target.init_()
                let number: Int = try target.self_()
                let text: String = try await target.func()
                try NastyModuleV2Facade.Sendable_(caller).defaults()
                let rest = try NastyModuleV2Facade.String_(caller).rest(rest: [:], rest_: ["more": 1])
                try await NastyModuleV2Facade.String_(caller).restOnly(rest: rest)
                _ = try NastyModuleV2Facade.Routes.all(_0: "a/b", page: 7, key: text, flag: true).url(caller)
                let url = try NastyModuleV2Facade.Routes.default(key: text, page: number, flag: true).url(caller)
                try await NastyModuleV2Facade.Routes.go().open(caller, ["_url": .string(url)])
                let typed = NastyModuleV2Facade.Typed(caller)
                let record = NastyModuleV2Facade.Self_(init_: .two, aB: [], field: 1, Cursor_: .none)
                let all = try typed.inOut(written: record, in: [.default], d: .deFault, rest: [:])
                let first: NastyModuleV2Facade.Self_? = all?.first?["x"] ?? nil
                let numbers: [NastyModuleV2Facade.Number] = try typed.Number_()
                let bytes: Bytes? = try typed.written_()
                _ = try typed.cursor()?.next()
                _ = (first, numbers, bytes)
                let client = try caller.service(NastyModuleV2Facade.GoServiceClient_.self)
                try await (client as any NastyModuleV2Facade.GoService).aB_3()
            }
            """
        try SwiftSource.check([text, use])
    }

    @Test(arguments: ["ModuleA", "ModuleB", "ModuleC", "FixtureModule"])
    func `a façade of each module compiles, with warnings as errors`(module: String) throws {
        try SwiftSource.check([facade(of: module)])
    }

    @Test func `the compiler refuses what does not fit the manifest`() throws {
        let facade = try facade(of: "ModuleA")
        for call in [
            "fetchDetail()", "fetchDetail(key: 1)", "fetchDetail(key: \"\", pages: 1)", "fetchDetails(key: \"\")",
        ] {
            let use = "import PluginABI\nfunc use(_ c: HostContext) throws { try ModuleAFacade.A(c).\(call) }"
            #expect(throws: Tool.Failed.self) { try SwiftSource.check([facade, use]) }
        }
    }

    @Test func `parameters have the types and the defaults of the manifest, and their documentation`() throws {
        let text = try facade(
            """
            {"name": "M", "version": "1.0.0", "targets": [{"name": "T", "actions": [
              {"name": "act", "summary": "Acts.", "result": "int", "async": true, "parameters": [
                {"name": "key", "type": "string", "required": true, "summary": "Which."},
                {"name": "page", "type": "int", "default": 1}, {"name": "more", "type": "map"}]}]}]}
            """)
        let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(
            lines.contains(
                "func act(key: String, page: Int = 1, more: [String: Value]? = nil) async throws(PluginError) -> Int {")
        )
        #expect(lines.contains("/// Acts.") && lines.contains("///   - key: Which."))
        #expect(lines.contains("if let more { given.append((\"more\", .map(more))) }"))
    }

    @Test func `a rest is the last argument, and its entries are passed by their names`() throws {
        let text = try facade(
            """
            {"name": "M", "version": "1.0.0", "targets": [{"name": "T", "actions": [
              {"name": "act", "rest": true, "result": "int", "parameters": [
                {"name": "key", "type": "string", "required": true}]}]}]}
            """)
        let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(lines.contains("func act(key: String, rest: [String: Value] = [:]) throws(PluginError) -> Int {"))
        #expect(lines.contains("given += rest.map { ($0.key, $0.value) }"))
    }

    @Test func `what a façade passes as a rest arrives as the rest`() throws {
        let file = "\(repository)/Tests/PluginFacadesTests/SearchFacade.swift"
        #expect(try String(contentsOfFile: file, encoding: .utf8) == facade(searchManifest))
        let test = try TestHost.withFixture()
        let open = SearchFacade.Open(test.host)
        #expect(
            try open.search(text: "x", rest: ["a": 1, "text": "y"]) == ["text": "x", "page": 1, "rest": ["a": 1]])
        #expect(try open.search(text: "x", page: 2) == ["text": "x", "page": 2, "rest": [:]])
        #expect(try open.all(rest: ["a": 1]) == ["a": 1])
    }

    @Test func `names do not change when others are added after them`() throws {
        func names(_ actions: [String]) throws -> [String] {
            var names = SwiftNames()
            return names.take(actions)
        }
        #expect(try names(["a-b", "a.b", "a_b"]) == ["aB", "aB_", "a_b"])
        #expect(try names(["a-b", "a.b", "a_b", "new", "x-y"]) == ["aB", "aB_", "a_b", "new", "xY"])
        #expect(try names(["a-b", "aB", "a.b"]) == ["aB_", "aB", "aB_2"])
        #expect(try names(["init", "0", "-"]) == ["init_", "_0", "__"])
    }

    @Test func `a name that is not an identifier and a text that is not a manifest are refused`() {
        #expect(throws: PluginError.self) { try Facade(manifest: "{") }
        for name in ["", "a b", "1a", "self", "a-b"] {
            let error = #expect(throws: PluginError.self) { try Facade(manifest: nastyManifest, name: name) }
            #expect(error?.code == .invalidValue)
        }
    }

    @Test func `a program calls through a façade as a module does`() async throws {
        let test = try TestHost.withSamples()
        let host = test.host
        #expect(try ModuleAFacade.A(host).currencyName(code: "CHF") == "franc")
        #expect(try ModuleAFacade.A(host).price(key: "apple") == "0.5 euro")
        #expect(try ModuleAFacade.A(host).fetchDetail(key: "x").page == 1)
        #expect(try await ModuleBFacade.B(host).slowly(text: "abc", milliseconds: 1) == "cba")
        #expect(try ModuleBFacade.B(host).sum(data: [1, 2, 3]) == 6)
        #expect(try ModuleBFacade.B(host).advertise(key: "lamp") == "Look: Detail of lamp!")
        let cursor = try ModuleAFacade.Counter(host).search(text: "ap")
        #expect(try cursor.next() == "apple")
    }

    @Test func `errors and deadlines are those of the call`() async throws {
        let test = try TestHost.withSamples()
        let error = #expect(throws: PluginError.self) {
            try ModuleAFacade.A(test.host).currencyName(code: "none")
        }
        #expect(error?.code == "unknownCurrency" && error?.source == "ModuleA")
        let slow = ModuleBFacade.B(test.host, timeout: .milliseconds(1))
        let late = await #expect(throws: PluginError.self) { try await slow.slowly(text: "x", milliseconds: 60_000) }
        #expect(late?.code == .deadlineExceeded)
    }

    @Test func `a route is built and opened with its parameters`() async throws {
        let test = try TestHost.withSamples()
        let route = ModuleAFacade.Routes.detail(key: "a/b c", page: 3)
        #expect(try route.url(test.host) == "app://shop/detail/a%2Fb%20c/3")
        #expect(try await route.open(test.host) == ["title": "Detail of a/b c", "page": 3])
        #expect(try ModuleAFacade.Routes.detail(key: "k").url(test.host) == "app://shop/detail/k")
        #expect(try await ModuleAFacade.Routes.fetchDetail().open(test.host)["page"] == 7)
    }

    @Test func `a service is requested by its type, and can be replaced by a fake`() throws {
        struct Fake: ModuleAFacade.HomeService {
            func fetchDetail(key: String, page: Int) -> ModuleAFacade.Detail {
                ModuleAFacade.Detail(title: "fake", page: page)
            }
            func nativeSecret() -> String { "" }
            func price(key: String) -> String { "" }
            func buy(key: String) -> Int { 0 }
            func currencyName(code: String) -> String { "" }
            func article(key: String, note: String?) throws(PluginError) -> ModuleAFacade.Article {
                throw PluginError(.unknownAction, "There are no articles.")
            }
        }
        let test = try TestHost.withSamples()
        let services: [any ModuleAFacade.HomeService] = [
            try test.host.service(ModuleAFacade.HomeServiceClient.self), Fake(),
        ]
        #expect(try services.map { try $0.fetchDetail(key: "k", page: 1).title } == ["Detail of k", "fake"])
    }

    @Test func `a result of an undeclared type is an error that names the action`() throws {
        let error = #expect(throws: PluginError.self) { try Value("text").result(of: "A/b", as: Int.self) }
        #expect(error?.code == .invalidResult && error?.message.contains("A/b") == true)
        let none = #expect(throws: PluginError.self) { try Value(1).result(of: "A/b") as Object }
        #expect(none?.code == .invalidResult)
    }
}
