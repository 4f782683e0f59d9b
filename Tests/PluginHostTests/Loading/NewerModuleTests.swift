import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// A module that was built with the header of a later minor version: larger structures, more functions and extensions,
/// unknown keys in the manifest.
@Suite struct NewerModuleTests {
    /// Copies the headers, and turns the copies into those of the next minor version.
    private func newerHeaders(in folder: TemporaryFolder) throws -> String {
        let copy = "\(folder.path)/include"
        try FileManager.default.copyItem(atPath: headers, toPath: copy)
        func edit(_ file: String, _ changes: KeyValuePairs<String, String>) throws {
            var text = try String(contentsOfFile: "\(copy)/\(file)", encoding: .utf8)
            for (old, new) in changes {
                try #require(text.contains(old), "\(file): \(old)")
                text = text.replacing(old, with: new)
            }
            try Data(text.utf8).write(to: URL(filePath: "\(copy)/\(file)"))
        }
        let ofModule = "    const void *(*get_extension)(void *data, plugin_string identifier);\n"
        let ofHost = "    const void *(*get_extension)(const plugin_host *host, plugin_string identifier);\n"
        let ofRequest = "    plugin_string version;\n"
        try edit(
            "plugin_abi.h",
            [
                "#define PLUGIN_ABI_MINOR 0": "#define PLUGIN_ABI_MINOR 1",
                ofModule: ofModule + "    const void *newer;\n",
                ofHost: ofHost + "    int32_t (*newer)(const plugin_host *host);\n",
                ofRequest: ofRequest + "    uint64_t newer;\n",
            ])
        try edit(
            "plugin_abi/layout.h",
            [
                "sizeof(plugin_module) == 112": "sizeof(plugin_module) == 120",
                "sizeof(plugin_request) == 96": "sizeof(plugin_request) == 104",
                "sizeof(plugin_host) == 104": "sizeof(plugin_host) == 112",
            ])
        return copy
    }

    private static func module(_ more: String = "") -> CModule {
        CModule(
            name: "Newer",
            manifest: """
                {"name": "Newer", "version": "1.0.0", \(more)"colour": "green", "hooks": ["setUp", "rainbow"],
                 "routes": [{"pattern": "app://newer/1", "action": "Newer/answer", "colour": "blue"}],
                 "targets": [{"name": "Newer", "actions": [{"name": "answer", "parameters": [], "rest": true},
                                                          {"name": "ask", "cached": true}, {"name": "newer"}]}]}
                """,
            code: "static int is_set_up;",
            setUp: "is_set_up = 1;",
            hooks: ["rainbow": "abort();"],
            targets: [
                .init(
                    name: "Newer",
                    actions: [
                        .init(name: "answer", body: "reply(call, is_set_up ? \"yes\" : \"no\");"),
                        .init(
                            name: "ask",
                            body: """
                                plugin_request request = ask("Newer", "answer");
                                request.newer = 7;
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        // The module does without what this host lacks.
                        .init(
                            name: "newer",
                            body: """
                                int has_function = host->size >= sizeof(plugin_host) && host->newer;
                                int has_extension = host->get_extension(host, text("pluginhost.newer/1")) != NULL;
                                int has_draft = host->get_extension(host, text("pluginhost.draft.newer/1")) != NULL;
                                int has_next = host->get_extension(host, text("pluginhost.log/2")) != NULL;
                                int has_log = plugin_log_of(host) != NULL;
                                reply_int(call->token, has_function + has_extension + has_draft + has_next + 10 * has_log
                                          + 100 * (host->abi_minor < PLUGIN_ABI_MINOR));
                                """),
                    ])
            ],
            entry: "module.newer = &module;")
    }

    private func host(_ module: CModule, isIsolated: Bool) throws -> TestHost {
        let folder = try TemporaryFolder()
        let library = try module.build(["-iquote", newerHeaders(in: folder)])
        let test = try TestHost { configuration, plugins in
            try plugins.copy(library, as: "plugins/newer.so")
            configuration.watches = false
            if isIsolated { configuration.isolation.modules = .all }
        }
        try test.host.start()
        return test
    }

    @Test(arguments: [false, true])
    func `It runs in this host, which has less than it knows`(isIsolated: Bool) throws {
        let test = try host(Self.module(), isIsolated: isIsolated)
        #expect(test.status("newer.so")?.error == nil)
        #expect(test.answer("Newer") == "yes")
        #expect(try test.host.perform("Newer", "ask") == "yes")
        #expect(try test.host.open("app://newer/1") == "yes")
        #expect(try test.host.perform("Newer", "newer") == 110)
    }

    @Test func `One that says it needs the later version is refused, with both versions`() throws {
        let test = try host(Self.module("\"abiMinor\": 1, "), isIsolated: false)
        let error = try #require(test.status("newer.so")?.error)
        #expect(error.code == .incompatible && error.message.contains("1.1") && error.message.contains("1.0"))
    }
}
