import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// The configuration that modules receive, and the log entries that they write.
@Suite(.timeLimit(.minutes(30))) struct ConfigurationTests {
    @Test func `A module reads its current configuration, and changes are reported`() async throws {
        let test = try TestHost([built("libFixtureModule.so")]) {
            $0.moduleConfiguration = ["FixtureModule": ["a": 1], "Other": ["b": 2]]
        }
        let host = test.host
        var changes = host.changes.makeAsyncIterator()
        #expect(try host.perform("About", "configuration") == ["a": 1])
        host.updateConfiguration(["FixtureModule": ["a": 1], "Other": ["b": 2]])
        host.updateConfiguration(["FixtureModule": ["a": [2, 3]], "Other": ["b": 2]])
        #expect(try host.perform("About", "configuration") == ["a": [2, 3]])
        host.updateConfiguration([:])
        #expect(try host.perform("About", "configuration") == [:])
        for expected in [["FixtureModule"], ["FixtureModule", "Other"]] {
            let change = try #require(await changes.next())
            guard case .configurationChanged(let modules) = change else {
                Issue.record("\(change)")
                continue
            }
            #expect(modules == expected)
        }
    }

    @Test func `A log entry names the call that it is about`() throws {
        let module = CModule(
            actions: [
                (
                    "say",
                    """
                    const plugin_log *log = host->get_extension(host, plugin_string_make(PLUGIN_LOG_EXTENSION,
                        sizeof PLUGIN_LOG_EXTENSION - 1));
                    log->write(host, call->token, PLUGIN_LOG_INFO, plugin_string_make("within", 6));
                    log->write(host, 0, PLUGIN_LOG_ERROR, plugin_string_make("without", 7));
                    reply(call, "");
                    """
                )
            ])
        let test = try TestHost([module.build()])
        try test.host.perform("Good", "say")
        #expect(test.log.map(\.message) == ["within", "without"])
        #expect(test.log.map(\.call) == ["Good/say", nil] && test.log.map(\.module) == ["Good", "Good"])
    }
}
