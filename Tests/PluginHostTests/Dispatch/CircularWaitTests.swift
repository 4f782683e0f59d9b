import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Calls of serial modules and targets that wait for each other.
@Suite struct CircularWaitTests {
    @Test func `A serial target that calls itself is a circular wait`() throws {
        let test = try TestHost.withFixture()
        let error = try test.failure("Serial", "inner")
        #expect(error.code == .circularWait)
        // The error names the call, the running call, and the target that must wait.
        #expect(error.message.contains(" is not called: Target Serial of "), "\(error.message)")
        #expect(error.message.contains("the running call, Serial/inner of "), "\(error.message)")
        #expect(try test.host.perform("Serial", "overlap", [0]) == 0)
    }

    @Test func `A circular wait of two serial modules on one thread is an error`() throws {
        let test = try TestHost([Self.serial("M1").build(), Self.serial("M2").build()])
        #expect(try test.failure("M1", "there", ["M2", "M1"]).code == .circularWait)
        #expect(try test.host.perform("M1", "leaf") == 1)
        #expect(try test.host.perform("M2", "leaf") == 1)
    }

    @Test func `A circular wait of two serial modules across two threads always ends`() async throws {
        let test = try TestHost([Self.serial("M1").build(), Self.serial("M2").build()])
        let host = test.host
        for _ in 0..<50 {
            let codes = try await onThreads(2) { number -> String in
                let (first, second) = number == 0 ? ("M1", "M2") : ("M2", "M1")
                do { return try host.perform(first, "slow", [.string(second)]).json } catch let error as PluginError {
                    return error.code.rawValue
                }
            }
            #expect(codes.allSatisfy { ["1", "circularWait"].contains($0) }, "\(codes)")
            #expect(codes.contains("1") || codes == ["circularWait", "circularWait"])
        }
    }

    @Test func `A circular wait of asynchronous calls ends`() async throws {
        let test = try TestHost([Self.serial("M1").build(), Self.serial("M2").build()])
        let error = await #expect(throws: PluginError.self) {
            try await test.host.call("M1", "thereLater", ["M2", "M1"])
        }
        #expect(error?.code == .circularWait)
        #expect(try await test.host.call("M1", "leaf") == 1)
    }

    @Test func `A circular wait through performAndWait ends`() async throws {
        let test = try TestHost([Self.serial("M1").build(), Self.serial("M2").build()])
        let host = test.host
        let error = await #expect(throws: PluginError.self) {
            try await onThread {
                try host.performAndWait("M1", "thereLater", ["M2", "M1"], timeout: .seconds(600))
            }
        }
        #expect(error?.code == .circularWait)
    }

    @Test func `A circular wait is detected even after the call has replied, and under another parent`() throws {
        let test = try TestHost([Self.serial("M1").build(), Self.serial("M2").build()])
        #expect(try test.host.perform("M1", "replyThenCall") == 1)
        #expect(try test.host.perform("M1", "code") == "circularWait")
        #expect(try test.host.perform("M1", "callUnderAnother") == "circularWait")
        #expect(try test.host.perform("M1", "leaf") == 1)
    }

    @Test(.disabled(if: modulesAreIsolated, "A call is over before the module receives its outcome."))
    func `A call that is made while a nested call delivers its outcome is a circular wait`() throws {
        let test = try TestHost([Self.serial("M1").build(), Self.teller.build()])
        try test.host.perform("Teller", "tell")
        #expect(eventually { (try? test.host.perform("Teller", "code")) == "circularWait" })
        #expect(eventually { (try? test.host.perform("M1", "leaf")) == 1 })
    }

    /// A serial module with several ways to call others.
    private static func serial(_ name: String) -> CModule {
        CModule(
            name: name, moreManifest: "\"concurrency\":\"serial\",",
            code: """
                static char last[64];
                static void hear(void *data, const plugin_value *value, const plugin_error *error) {
                    (void)data, (void)value;
                    memset(last, 0, sizeof last);
                    if (error) memcpy(last, error->code.bytes, error->code.count);
                }
                static void *finish(void *data) { usleep(1000); reply_int((plugin_token)data, 1); return 0; }
                """,
            targets: [
                .init(
                    name: name,
                    actions: [
                        .init(name: "leaf", body: "reply_int(call->token, 1);"),
                        .init(
                            name: "leafLater", manifest: "\"async\":true,", body: "start(finish, (void *)call->token);"),
                        .init(
                            name: "slow", parameters: ["to": "string"],
                            body: """
                                usleep(500);
                                plugin_request request = ask(0, "leaf");
                                request.target = plugin_string_make(arguments[0].as.string, arguments[0].count);
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "there", parameters: ["to": "string", "back": "string"],
                            body: """
                                plugin_entry entry = {text("to"), arguments[1]};
                                plugin_request request = ask(0, "slow");
                                request.target = plugin_string_make(arguments[0].as.string, arguments[0].count);
                                request.parameters = &entry; request.parameter_count = 1;
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "slowLater", manifest: "\"async\":true,", parameters: ["to": "string"],
                            body: """
                                plugin_request request = ask(0, "leafLater");
                                request.target = plugin_string_make(arguments[0].as.string, arguments[0].count);
                                host->call(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "thereLater", manifest: "\"async\":true,",
                            parameters: ["to": "string", "back": "string"],
                            body: """
                                plugin_entry entry = {text("to"), arguments[1]};
                                plugin_request request = ask(0, "slowLater");
                                request.target = plugin_string_make(arguments[0].as.string, arguments[0].count);
                                request.parameters = &entry; request.parameter_count = 1;
                                host->call(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "replyThenCall",
                            body: """
                                reply_int(call->token, 1);
                                plugin_request request = ask("\(name)", "leaf");
                                host->perform(host, call->token, &request, hear, 0);
                                """),
                        .init(name: "code", body: "reply_value(call->token, plugin_value_string(last, strlen(last)));"),
                        .init(
                            name: "callUnderAnother",
                            body: """
                                plugin_request request = ask("\(name)", "leaf");
                                host->perform(host, 12345, &request, hear, 0);
                                reply_value(call->token, plugin_value_string(last, strlen(last)));
                                """),
                    ])
            ])
    }

    /// Calls a serial module, and calls it again from the completion of the first call.
    private static let teller = CModule(
        name: "Teller",
        code: """
            static char last[64];
            static void hear(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)value;
                if (error) memcpy(last, error->code.bytes, error->code.count); else memcpy(last, "none", 4);
            }
            static void again(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)value, (void)error;
                plugin_request request = ask("M1", "leaf");
                host->perform(host, 0, &request, hear, 0);
            }
            """,
        targets: [
            .init(
                name: "Teller",
                actions: [
                    .init(
                        name: "tell",
                        body: """
                            plugin_request request = ask("M1", "leafLater");
                            host->call(host, call->token, &request, again, 0);
                            reply_int(call->token, 1);
                            """),
                    .init(name: "code", body: "reply_value(call->token, plugin_value_string(last, strlen(last)));"),
                ])
        ])
}
