import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct TypedResultTests: Checking {
    @Test func `a result that is not of its declared type is found, with the path of the part`() throws {
        let module = CModule(
            moreManifest: #"""
                "values": [{"name": "Draft", "fields": [{"name": "title", "type": "string"}]}],
                """#,
            targets: [
                .init(
                    name: "Drafts",
                    actions: [
                        .init(
                            name: "all", manifest: #""result": "list<Draft>", "#,
                            body: """
                                plugin_entry title = {PLUGIN_STRING("title"), plugin_value_int(1)};
                                plugin_value draft = plugin_value_map(&title, 1);
                                plugin_reply(host, call, plugin_value_list(&draft, 1));
                                """)
                    ])
            ])
        let (outcome, report) = try check(module.build())
        #expect(outcome.code == 65)
        let replies = try #require(result("replies", of: report))
        #expect(
            replies.json.contains(
                "Drafts/all is declared to return list<Draft>, but result[0].title is of type int, not string."),
            "\(replies)")
    }

    @Test func `an argument of a wide type has a limited size`() throws {
        func size(_ value: Value) -> Int {
            1 + (value.list ?? []).reduce(0) { $0 + size($1) } + (value.map ?? [:]).reduce(0) { $0 + size($1.value) }
        }
        let records: [Value] = (0..<4).map { level in
            let type: Value = level == 3 ? "string" : .string("list<R\(level + 1)>")
            return [
                "name": .string("R\(level)"),
                "fields": .list((0..<60).map { ["name": .string("f\($0)"), "type": type] }),
            ]
        }
        let types = CheckedTypes(["name": "M", "version": "1.0.0", "values": .list(records)])
        let host = try TestHost([])
        let object = host.host.callback { arguments in arguments.first ?? nil }.object
        var seeded = SeededValues(seed: 1)
        // The complete value would consist of more than 10 million values.
        let value = types.ordinary("R0", &seeded, object: object)
        #expect(value.map?.count == 60)
        #expect((500...3000).contains(size(value)), "\(size(value))")
    }

    @Test func `values of the declared types are passed, and a module that keeps its declarations passes`() throws {
        let report = try check(built("libDesk.so")).report
        for name in ["description", "manifest", "parameters", "hostile", "replies"] {
            #expect(result(name, of: report)?["outcome"] == "pass", "\(result(name, of: report) ?? nil)")
        }
    }
}
