import PluginABI
import Testing

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

    @Test func `values of the declared types are passed, and a module that keeps its declarations passes`() throws {
        let report = try check(built("libDesk.so")).report
        for name in ["description", "manifest", "parameters", "hostile", "replies"] {
            #expect(result(name, of: report)?["outcome"] == "pass", "\(result(name, of: report) ?? nil)")
        }
    }
}
