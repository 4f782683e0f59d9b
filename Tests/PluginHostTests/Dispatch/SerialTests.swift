import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Modules and targets that run one call at a time.
@Suite struct SerialTests {
    /// A module in C that counts the calls inside it, so that only the host keeps them apart.
    private static func counting(_ manifest: String, target: String) -> CModule {
        CModule(
            name: "Counting", moreManifest: manifest,
            code: """
                static atomic_int inside, most, runs;
                static void enter(void) {
                    int now = atomic_fetch_add(&inside, 1) + 1;
                    if (now > most) most = now;
                }
                static void leave(void) { atomic_fetch_add(&runs, 1); atomic_fetch_sub(&inside, 1); }
                static void *finish(void *data) {
                    usleep(200); leave(); reply_int((plugin_token)data, 0); return 0;
                }
                """,
            targets: [
                .init(
                    name: "S", manifest: target,
                    actions: [
                        .init(name: "run", body: "enter(); usleep(100); leave(); reply_int(call->token, 0);"),
                        .init(
                            name: "later", manifest: "\"async\":true,",
                            body: "enter(); start(finish, (void *)call->token);"),
                    ]),
                .init(
                    name: "Watch", manifest: "\"concurrency\":\"concurrent\",",
                    actions: [
                        .init(name: "most", body: "reply_int(call->token, most);"),
                        .init(name: "runs", body: "reply_int(call->token, runs);"),
                    ]),
            ])
    }

    @Test(arguments: [("\"concurrency\":\"serial\",", ""), ("", "\"concurrency\":\"serial\",")])
    func `Calls of a serial module or target never overlap, synchronous and asynchronous mixed`(
        module: String, target: String
    ) async throws {
        let test = try TestHost([Self.counting(module, target: target).build()])
        let host = test.host
        async let threads: [Void] = onThreads(4) { _ in
            for _ in 0..<50 { try host.perform("S", "run") }
        }
        async let waiting: [Void] = onThreads(2) { _ in
            for _ in 0..<25 { try host.performAndWait("S", "later", timeout: .seconds(600)) }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<100 { group.addTask { try await host.call("S", number % 2 == 0 ? "run" : "later") } }
            try await group.waitForAll()
        }
        _ = try await (threads, waiting)
        #expect(try host.perform("Watch", "most") == 1)
        #expect(try host.perform("Watch", "runs") == 350)
    }

    @Test func `Calls of a concurrent target do overlap`() async throws {
        let test = try TestHost([Self.counting("", target: "").build()])
        let host = test.host
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { try await host.call("S", "later") } }
            try await group.waitForAll()
        }
        #expect(try host.perform("Watch", "most").int! > 1)
    }

    @Test func `Waiting calls are admitted in the order of their arrival`() async throws {
        let test = try TestHost([Self.recorder.build()])
        let host = test.host
        try host.perform("Record", "start", [20])
        #expect(await becomesTrue { (try? host.perform("Record", "done")) == 20 })
        #expect(try host.perform("Record", "order") == .list((0..<20).map { .int($0) }))
    }

    /// A module with a call that makes twenty asynchronous calls while it holds the gate of another target.
    private static let recorder = CModule(
        name: "Recorder",
        code: """
            static int64_t order[64]; static atomic_int done;
            static void ignore(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)value, (void)error;
            }
            static void *fill(void *data) {
                for (int64_t i = 0; i < (intptr_t)data; i++) {
                    plugin_entry entry = {text("n"), plugin_value_int(i)};
                    plugin_request request = ask("One", "add");
                    request.parameters = &entry; request.parameter_count = 1;
                    host->call(host, 0, &request, ignore, 0);
                }
                return 0;
            }
            static void *finish(void *data) { reply_int((plugin_token)data, 0); return 0; }
            """,
        targets: [
            .init(
                name: "One", manifest: "\"concurrency\":\"serial\",",
                actions: [
                    .init(
                        name: "add", manifest: "\"async\":true,", parameters: ["n": "int"],
                        body: """
                            usleep(200);
                            order[done] = arguments[0].as.integer; atomic_fetch_add(&done, 1);
                            start(finish, (void *)call->token);
                            """)
                ]),
            .init(
                name: "Record",
                actions: [
                    .init(
                        name: "start", parameters: ["n": "int"],
                        body: "start(fill, (void *)(intptr_t)arguments[0].as.integer); reply_int(call->token, 0);"),
                    .init(name: "done", body: "reply_int(call->token, done);"),
                    .init(
                        name: "order",
                        body: """
                            plugin_value values[64];
                            for (int i = 0; i < done; i++) values[i] = plugin_value_int(order[i]);
                            reply_value(call->token, plugin_value_list(values, done));
                            """),
                ]),
        ])

    // MARK: Waiting

    @Test func `A wait for a serial target ends at the deadline`() async throws {
        let test = try TestHost([Self.counting("", target: "\"concurrency\":\"serial\",").build(), Self.stuck.build()])
        let host = test.host
        let stuck = Task { try await host.call("Stuck", "never", timeout: .milliseconds(500)) }
        await #expect(throws: PluginError.self) { try await stuck.value }
        let error = await #expect(throws: PluginError.self) {
            try await onThread { try host.perform("Stuck", "leaf", timeout: .milliseconds(20)) }
        }
        #expect(error?.code == .deadlineExceeded)
        let later = await #expect(throws: PluginError.self) {
            try await host.call("Stuck", "leaf", timeout: .milliseconds(20))
        }
        #expect(later?.code == .deadlineExceeded)
        try host.perform("Free", "finish")
        #expect(try await host.call("Stuck", "leaf") == 1)
    }

    private static let stuck = CModule(
        name: "Stuck", code: "static plugin_token kept;",
        targets: [
            .init(
                name: "Stuck", manifest: "\"concurrency\":\"serial\",",
                actions: [
                    .init(name: "never", manifest: "\"async\":true,", body: "kept = call->token;"),
                    .init(name: "leaf", body: "reply_int(call->token, 1);"),
                ]),
            .init(
                name: "Free", actions: [.init(name: "finish", body: "reply_int(kept, 1); reply_int(call->token, 1);")]),
        ])

    @Test func `A task does not block while an asynchronous call occupies the target`() async throws {
        let test = try TestHost([Self.stuck.build()])
        let host = test.host
        let stuck = Task { try await host.call("Stuck", "never") }
        #expect(await becomesTrue { test.code("Stuck", "leaf") == .blockingInTask })
        try host.perform("Free", "finish")
        #expect(try await stuck.value == 1)
    }

    @Test func `A task can perform on a serial target right after it has awaited a call of it`() async throws {
        let test = try TestHost.withFixture()
        for _ in 0..<200 {
            _ = try await test.host.call("Serial", "overlapLater", [1])
            #expect(try test.host.perform("Serial", "overlap", [0]) == 0)
        }
    }

    @Test func `A failed make for a cancelled call admits the next call`() async throws {
        let test = try TestHost.withFixture()
        let host = test.host
        for _ in 0..<50 {
            let call = Task { try await host.call("Unmakeable", "later") }
            call.cancel()
            _ = try? await call.value
        }
        let error = await #expect(throws: PluginError.self) { try await host.call("Unmakeable", "later") }
        #expect(error?.code == "noMoney")
    }
}
