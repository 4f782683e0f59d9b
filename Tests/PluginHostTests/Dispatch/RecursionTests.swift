import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// How deep calls can be nested.
@Suite struct RecursionTests {
    @Test(arguments: ["forever", "viaObject", "viaCallback"])
    func `Endless recursion is an error, long before the stack overflows`(action: String) async throws {
        let test = try TestHost.withFixture()
        let host = test.host
        let error = await #expect(throws: PluginError.self) { try await onThread { try host.perform("Chain", action) } }
        #expect(error?.code == .recursionLimit)
        #expect(try host.perform("Echo", "int", [1]) == 1)
    }

    @Test func `Endless asynchronous recursion is an error`() async throws {
        let test = try TestHost.withFixture()
        let error = await #expect(throws: PluginError.self) { try await test.host.call("Chain", "foreverLater") }
        #expect(error?.code == .recursionLimit)
        #expect(try test.host.perform("Echo", "int", [1]) == 1)
    }

    @Test func `A notFound that leads to itself ends at the depth limit`() throws {
        let test = try TestHost.withFixture()
        #expect(try test.failure("LostForever", "x").code == .recursionLimit)
    }

    @Test func `A handler of missing targets that leads to itself ends`() throws {
        let test = try TestHost.withFixture()
        let context = test.host
        context.onMissingTarget { [unowned context] target, action, _, _ in try context.perform(target, action) }
        #expect(try test.failure("Gone", "x").code == .recursionLimit)
    }

    @Test func `Calls can be nested 128 deep, but not 129`() throws {
        let test = try TestHost([Self.nesting.build()])
        #expect(try test.host.perform("Nest", "down", [128]) == 128)
        #expect(try test.failure("Nest", "down", [129]).code == .recursionLimit)
        #expect(try test.host.perform("Nest", "down", [128]) == 128)
    }

    private static let nesting = CModule(
        name: "Nesting",
        targets: [
            .init(
                name: "Nest",
                actions: [
                    .init(
                        name: "down", parameters: ["n": "int"],
                        body: """
                            int64_t n = arguments[0].as.integer;
                            if (n == 1) { reply_int(call->token, 128); return; }
                            plugin_entry entry = {text("n"), plugin_value_int(n - 1)};
                            plugin_request request = ask("Nest", "down");
                            request.parameters = &entry; request.parameter_count = 1;
                            host->perform(host, 0, &request, pass_on, (void *)call->token);
                            """)
                ])
        ])
}
