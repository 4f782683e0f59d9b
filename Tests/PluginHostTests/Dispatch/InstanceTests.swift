import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// The instances of targets.
@Suite struct InstanceTests {
    let test: TestHost
    var host: PluginHost { test.host }

    init() throws { test = try TestHost.withFixture() }

    @Test func `A shared instance is made once, and serves every call`() throws {
        let first = try host.perform("Shared", "number")
        #expect(try host.perform("Shared", "number") == first)
    }

    @Test func `A shared instance is made once, even when many threads ask at the same time`() async throws {
        let module = CModule(
            name: "Slow",
            code: """
                static atomic_int made;
                static void *make(void *data, const plugin_call *call) {
                    (void)data, (void)call; usleep(20000);
                    return (void *)(intptr_t)(atomic_fetch_add(&made, 1) + 1);
                }
                """,
            targets: [
                .init(
                    name: "S", manifest: "\"instance\":\"shared\",",
                    actions: [
                        .init(name: "number", body: "reply_int(call->token, (int64_t)(intptr_t)call->instance);"),
                        .init(
                            name: "later", manifest: "\"async\":true,",
                            body: "reply_int(call->token, (int64_t)(intptr_t)call->instance);"),
                    ])
            ], makers: "{{\"S\", 1}, make, 0, 0}")
        let slow = try TestHost([module.build()])
        let numbers = try await onThreads(8) { _ in try slow.host.perform("S", "number") }
        #expect(numbers == Array(repeating: 1, count: 8))
    }

    @Test func `Tasks that request an instance at the same time get the same one`() async throws {
        let host = host
        let numbers = try await withThrowingTaskGroup(of: Value.self) { group in
            for _ in 0..<50 { group.addTask { try await host.call("Shared", "later") } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(numbers.count == 1)
    }

    @Test func `An instance per call is made for each call`() throws {
        let first = try host.perform("PerCall", "number")
        #expect(try host.perform("PerCall", "number") != first)
    }

    @Test func `Instances per call are destroyed after the call, and a shared one at the end`() throws {
        let module = CModule(
            name: "Counted",
            code: """
                static atomic_int made, destroyed;
                static void *make(void *data, const plugin_call *call) {
                    (void)data, (void)call; atomic_fetch_add(&made, 1); return &made;
                }
                static void destroy(void *data, void *instance) {
                    (void)data, (void)instance; atomic_fetch_add(&destroyed, 1);
                }
                static void *finish(void *data) { usleep(1000); reply_int((plugin_token)data, 1); return 0; }
                """,
            targets: [
                .init(
                    name: "PerCall", manifest: "\"instance\":\"perCall\",",
                    actions: [
                        .init(name: "run", body: "reply_int(call->token, 1);"),
                        .init(name: "later", manifest: "\"async\":true,", body: "start(finish, (void *)call->token);"),
                    ]),
                .init(
                    name: "Count",
                    actions: [
                        .init(name: "made", body: "reply_int(call->token, made);"),
                        .init(name: "destroyed", body: "reply_int(call->token, destroyed);"),
                    ]),
            ], makers: "{{\"PerCall\", 7}, make, destroy, 0}")
        let counted = try TestHost([module.build()])
        for _ in 0..<3 { try counted.host.perform("PerCall", "run") }
        #expect(try counted.host.perform("Count", "made") == 3)
        #expect(try counted.host.perform("Count", "destroyed") == 3)
    }

    @Test func `The error of make is the error of the call, and the next call tries again`() async throws {
        let expected = PluginError("noMoney", "It costs too much.", source: "FixtureModule")
        for _ in 0..<3 {
            #expect(try test.failure("Unmakeable", "number") == expected)
            await #expect(throws: expected) { try await self.host.call("Unmakeable", "later") }
        }
    }

    @Test func `A make function that calls its own target is a circular wait`() async throws {
        let error = try test.failure("Selfish", "number")
        #expect(error.code == .circularWait)
        #expect(try test.failure("Selfish", "number").code == .circularWait)
    }

    @Test func `A make function that returns null fails with instanceFailed`() throws {
        let module = CModule(
            name: "Null", code: "static void *make(void *d, const plugin_call *c) { (void)d, (void)c; return 0; }",
            targets: [
                .init(
                    name: "N", manifest: "\"instance\":\"perCall\",",
                    actions: [.init(name: "run", body: "reply_int(call->token, 1);")])
            ], makers: "{{\"N\", 1}, make, 0, 0}")
        #expect(try TestHost([module.build()]).failure("N", "run").code == .instanceFailed)
    }
}
