import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Isolated modules with many calls at the same time, and calls that return too late.
@Suite struct ChannelTests {
    /// A module with a shared instance or one for each call. All 128 calls of `hold` return when a file exists.
    private func module(_ instance: String, make: String = "") -> CModule {
        CModule(
            name: "Busy",
            code: """
                static _Atomic int made, destroyed, held;
                static void *make(void *data, const plugin_call *call) {
                    (void)data, (void)call;
                    \(make)
                    made++;
                    return &made;
                }
                static void destroy(void *data, void *instance) { (void)data, (void)instance; destroyed++; }
                """,
            targets: [
                .init(
                    name: "S", manifest: "\"instance\":\"\(instance)\",",
                    actions: [.init(name: "run", body: "reply_int(call->token, 1);")]),
                .init(
                    name: "Busy",
                    actions: [
                        .init(
                            name: "hold", parameters: ["folder": "string"],
                            body: """
                                char path[1024];
                                int length = snprintf(path, 1000, "%.*s", (int)arguments[0].count, arguments[0].as.string);
                                strcpy(path + length, "/full");
                                if (++held == 128) close(open(path, O_CREAT | O_WRONLY, 0600));
                                strcpy(path + length, "/free");
                                while (access(path, F_OK) != 0) usleep(1000);
                                reply_int(call->token, 1);
                                """),
                        .init(name: "made", body: "reply_int(call->token, made);"),
                        .init(name: "destroyed", body: "reply_int(call->token, destroyed);"),
                    ]),
            ], makers: "{{\"S\", 1}, make, destroy, 0}")
    }

    private func host(
        _ modules: [CModule], callTimeout: Duration = .seconds(60)
    ) throws -> TestHost {
        try TestHost(modules.map { try $0.build() }) { configuration in
            configuration.isolation.modules = .all
            configuration.isolation.callTimeout = callTimeout
            var rule = IsolationRule("*")
            rule.writablePaths = [NSTemporaryDirectory()]
            configuration.isolation.rules = [rule]
        }
    }

    @Test func `An instance that is dropped while all channels are in use is destroyed`() async throws {
        let host = try host([module("shared")])
        #expect(try await onThread { try host.host.perform("S", "run") } == 1)
        let folder = try TemporaryFolder()
        let path = folder.path
        async let holding = onThreads(128) { _ in try host.host.perform("Busy", "hold", [.string(path)]) }
        #expect(await becomesTrue { access("\(path)/full", F_OK) == 0 })
        #expect(try host.host.release("S"))
        _ = try folder.file("free")
        _ = try await holding
        #expect(await becomesTrue { (try? host.host.perform("Busy", "destroyed")) == 1 })
    }

    @Test func `An instance that was made too late is destroyed`() throws {
        let host = try host([module("perCall", make: "usleep(200000);")])
        let error = #expect(throws: PluginError.self) {
            try host.host.perform("S", "run", timeout: .milliseconds(20))
        }
        #expect(error?.code == .deadlineExceeded)
        #expect(eventually { (try? host.host.perform("Busy", "destroyed")) == 1 })
        #expect(try host.host.perform("Busy", "made") == 1)
        #expect(host.host.modules.first?.restarts == 0)
    }

    @Test(
        .disabled(if: sanitizer == "thread", "The worker's sanitizer does not know the threads of a module."),
        arguments: ["Slow", "Many"])
    func `140 threads of a module can wait for calls at a time`(_ target: String) async throws {
        let module = CModule(
            name: "Many",
            code: """
                static _Atomic int ended;
                static plugin_token token;
                static void count(void *data, const plugin_value *value, const plugin_error *error) {
                    (void)data;
                    if (value && !error && ++ended == 140) reply_int(token, ended);
                }
                static void *ask_slow(void *data) {
                    plugin_request request = ask("\(target)", "slow");
                    host->perform(host, 0, &request, count, data);
                    return 0;
                }
                """,
            targets: [
                .init(
                    name: "Many",
                    actions: [
                        .init(
                            name: "ask", manifest: "\"async\":true,",
                            body: """
                                token = call->token;
                                for (int index = 0; index < 140; index++) start(ask_slow, 0);
                                """),
                        .init(name: "slow", body: "usleep(100000); reply_int(call->token, 1);"),
                    ])
            ])
        let slow = CModule(name: "Slow", actions: [("slow", "usleep(100000); reply_int(call->token, 1);")])
        let host = try host([module, slow])
        let count = try await host.host.call("Many", "ask", timeout: .seconds(20))
        #expect(count == 140)
    }

    @Test func `The state is handed over when no call runs any more, not even one that was too late`() throws {
        let module = CModule(
            name: "Bad",
            actions: [
                ("slow", "sum = 1; usleep(300000); sum = 2; reply_int(call->token, 1);"),
                ("sum", "reply_int(call->token, sum);"),
            ],
            code: "static _Atomic int64_t sum;",
            hooks: ["suspend": "reply_int(call->token, sum);", "resume": "sum = arguments[0].as.integer;"])
        let host = try host([module])
        let error = #expect(throws: PluginError.self) {
            try host.host.perform("Bad", "slow", timeout: .milliseconds(20))
        }
        #expect(error?.code == .deadlineExceeded)
        try host.host.restart("Bad")
        #expect(try host.host.perform("Bad", "sum") == 2)
    }

    @Test func `activate may take as long as a hook, not only as long as a call`() throws {
        var module = CModule()
        module.activate = "usleep(400000);"
        let host = try host([module], callTimeout: .milliseconds(100))
        #expect(host.answer() == "yes")
    }
}
