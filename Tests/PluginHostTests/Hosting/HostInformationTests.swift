import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// The information that every module has about the program.
@Suite struct HostInformationTests {
    @Test func `A module in Swift can read the information about its host`() throws {
        let test = try TestHost([built("libFixtureModule.so")]) { configuration in
            configuration.environment = "test"
            configuration.arguments = ["program", "--fast"]
            configuration.context = ["tenant": "north"]
        }
        let told = try test.host.perform("About", "program")
        #expect(told["environment"] == "test" && told["tenant"] == "north" && told["arguments"] == 2)
        let time = try #require(told["launchTime"]?.double)
        #expect(abs(time - Date.now.timeIntervalSince1970) < 600)
    }

    @Test func `A module in C can read the information about its host`() throws {
        let test = try TestHost { configuration, _ in configuration.context = ["tenant": "north"] }
        let module = CModule(
            body: """
                const plugin_context *context = host->get_extension(host, PLUGIN_STRING(PLUGIN_CONTEXT_EXTENSION));
                if (context->size < sizeof *context) { refuse(call, "too old"); return; }
                host->resolve(host, call->token, &context->values);
                return;
                """)
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        let told = try test.host.perform("Good", "answer")
        #expect(told["values"] == ["tenant": "north"] && told["environment"] == "production")
        #expect(told["arguments"]?.list?.count == CommandLine.arguments.count)
    }
}
