import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Actions that reply later.
@Suite(.serialized) struct AsynchronousTests {
    let test: TestHost
    var host: PluginHost { test.host }

    init() throws { test = try TestHost.withSamples() }

    @Test func `An asynchronous action is awaited`() async throws {
        #expect(try await host.call("B", "slowly", ["text": "abc", "milliseconds": 1]) == "cba")
        #expect(try await host.call("Echo", "nothingAsync") == nil)
    }

    @Test func `call accepts synchronous actions as well as asynchronous ones`() async throws {
        #expect(try await host.call("B", "greet", ["x"]) == "Hello, x!")
        await #expect(throws: PluginError.self) { try await host.call("B", "greet") }
    }

    @Test func `perform refuses an asynchronous action`() throws {
        let error = try test.failure("B", "slowly", ["x"])
        #expect(error.code == .asynchronousAction && error.message.contains("B/slowly"))
    }

    @Test func `The error of an asynchronous closure is the error of the call`() async throws {
        let error = await #expect(throws: PluginError.self) { try await host.call("Failing", "later") }
        #expect(error == PluginError("outOfStock", "There are no more.", source: "FixtureModule"))
    }

    @Test func `performAndWait blocks a thread until the reply`() async throws {
        let host = host
        let result = try await onThread {
            try host.performAndWait("B", "slowly", ["text": "ab", "milliseconds": 1], timeout: .seconds(600))
        }
        #expect(result == "ba")
        let waited = try await onThread { try host.performAndWait("Chain", "waits", timeout: .seconds(600)) }
        #expect(waited == nil)
    }

    @Test(.disabled(if: modulesAreIsolated, "Tasks of another process are not known."))
    func `performAndWait in a task is refused`() throws {
        let error = #expect(throws: PluginError.self) {
            try host.performAndWait("B", "slowly", ["x"], timeout: .seconds(600))
        }
        #expect(error?.code == .blockingInTask)
        #expect(try test.failure("Chain", "waits").code == .blockingInTask)
    }

    @Test func `performAndWait ends at its deadline`() async throws {
        let host = host
        let error = await #expect(throws: PluginError.self) {
            try await onThread {
                try host.performAndWait("Later", "untilCancelled", timeout: .milliseconds(20))
            }
        }
        #expect(error?.code == .deadlineExceeded)
    }

    // MARK: Reply handles

    @Test func `A reply can be given before the action returns`() async throws {
        #expect(try await host.call("Later", "atOnce") == 1)
        #expect(test.staleReplies == 0)
    }

    @Test func `A reply can be given later and from another call`() async throws {
        let call = Task { [host] in try await host.call("Later", "keep") }
        try await untilKept { try host.perform("Later", "resolveKept", [7]) }
        #expect(try await call.value == 7)
        #expect(test.staleReplies == 0)
    }

    @Test func `A reply can be an error`() async throws {
        let call = Task { [host] in try await host.call("Later", "keep") }
        try await untilKept { try host.perform("Later", "rejectKept") }
        await #expect(throws: PluginError("rejected", "No.", source: "FixtureModule")) { try await call.value }
    }

    @Test func `A reply handle that is dropped rejects the call`() async throws {
        let call = Task { [host] in try await host.call("Later", "keep") }
        try await untilKept { try host.perform("Later", "dropKept") }
        let error = await #expect(throws: PluginError.self) { try await call.value }
        #expect(error?.code == .noReply)
    }

    @Test func `A second reply does nothing, and is logged once`() async throws {
        #expect(try await host.call("Later", "twice") == 1)
        #expect(await becomesTrue { test.staleReplies == 1 })
        let entry = try #require(test.log.last)
        #expect(entry.module == "FixtureModule")
        #expect(entry.message.contains("replied to a call of Later/twice that is over"), "\(entry.message)")
        #expect(!entry.message.contains("token"))
    }

    // MARK: Deadlines and cancellation

    @Test func `A call that is never answered ends at its deadline`() async throws {
        let error = await #expect(throws: PluginError.self) {
            try await host.call("Later", "keep", timeout: .milliseconds(20))
        }
        #expect(error?.code == .deadlineExceeded && error?.message.contains("Later/keep") == true)
        try host.perform("Later", "resolveKept", [1])
        #expect(try await host.call("Later", "atOnce") == 1)
    }

    @Test func `An asynchronous call without a timeout has the host's default`() async throws {
        let brief = try TestHost([built("libFixtureModule.so")]) { $0.asyncTimeout = .milliseconds(500) }
        let error = await #expect(throws: PluginError.self) { try await brief.host.call("Later", "untilCancelled") }
        #expect(error?.code == .deadlineExceeded)
        #expect(await becomesTrue { (try? brief.host.perform("Later", "cancelled")) == 1 })
    }

    @Test func `A synchronous call that takes too long is reported when it returns`() throws {
        let error = #expect(throws: PluginError.self) {
            try host.perform("Serial", "overlap", [2000], timeout: .microseconds(100))
        }
        #expect(error?.code == .deadlineExceeded && error?.message.contains("Serial/overlap") == true)
    }

    @Test func `An extremely long timeout means no timeout`() async throws {
        #expect(try host.perform("B", "greet", ["x"], timeout: .seconds(Int64.max)) == "Hello, x!")
        #expect(try await host.call("Echo", "nothingAsync", timeout: .seconds(Int64.max)) == nil)
    }

    @Test func `Cancelling the task ends the call and reaches the module`() async throws {
        let host = host
        let call = Task { try await host.call("Later", "untilCancelled") }
        #expect(await becomesTrue { (try? host.perform("Later", "begun")) == 1 })
        call.cancel()
        let error = await #expect(throws: PluginError.self) { try await call.value }
        #expect(error?.code == .cancelled)
        #expect(await becomesTrue { (try? host.perform("Later", "cancelled")) == 1 })
    }

    @Test func `A module can cancel its own calls, but not those of others`() async throws {
        let waits = CModule(
            name: "Waits", code: "static _Atomic plugin_token waiting;",
            targets: [
                .init(
                    name: "Waits",
                    actions: [
                        .init(name: "wait", manifest: "\"async\":true,", body: "waiting = call->token;"),
                        .init(name: "token", body: "reply_int(call->token, (int64_t)waiting);"),
                        .init(name: "end", body: "reply_int(waiting, 7); reply_int(call->token, 0);"),
                    ])
            ])
        let meddles = CModule(
            name: "Meddles", code: "static plugin_token own;",
            targets: [
                .init(
                    name: "Meddles",
                    actions: [
                        .init(
                            name: "cancel", parameters: ["token": "int"],
                            body:
                                "host->cancel(host, (plugin_token)arguments[0].as.integer); reply_int(call->token, 0);"),
                        .init(
                            name: "callAndCancel", manifest: "\"async\":true,",
                            body: """
                                plugin_request request = ask("Waits", "wait");
                                own = host->call(host, call->token, &request, pass_on, (void *)call->token);
                                host->cancel(host, own);
                                """),
                    ])
            ])
        let test = try TestHost([waits.build(), meddles.build()])
        let host = test.host
        let call = Task { try await host.call("Waits", "wait") }
        #expect(await becomesTrue { (try? host.perform("Waits", "token")) != 0 })
        try host.perform("Meddles", "cancel", [try host.perform("Waits", "token")])
        try host.perform("Waits", "end")
        #expect(try await call.value == 7)
        let error = await #expect(throws: PluginError.self) { try await host.call("Meddles", "callAndCancel") }
        #expect(error?.code == .cancelled)
    }

    @Test func `A call in a task that is already cancelled is cancelled`() async throws {
        let host = host
        let call = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await host.call("Later", "untilCancelled")
        }
        let error = await #expect(throws: PluginError.self) { try await call.value }
        #expect(error?.code == .cancelled)
    }

    @Test func `A caller that blocks when its deadline passes does not delay other deadlines`() async throws {
        let module = CModule(
            name: "Blocker",
            code: """
                static atomic_int told; static atomic_int release_all;
                static void wait_long(void *data, const plugin_value *value, const plugin_error *error) {
                    (void)data, (void)value, (void)error;
                    atomic_fetch_add(&told, 1);
                    while (!release_all) usleep(1000);
                }
                """,
            targets: [
                .init(
                    name: "Blocker",
                    actions: [
                        .init(name: "never", manifest: "\"async\":true,", body: ""),
                        .init(
                            name: "block",
                            body: """
                                plugin_request request = ask("Blocker", "never");
                                request.timeout = 1000000;
                                host->call(host, 0, &request, wait_long, 0);
                                host->call(host, 0, &request, wait_long, 0);
                                reply_int(call->token, 0);
                                """),
                        .init(name: "told", body: "reply_int(call->token, told);"),
                        .init(name: "release", body: "release_all = 1; reply_int(call->token, 0);"),
                    ])
            ])
        let blocked = try TestHost([module.build()])
        try blocked.host.perform("Blocker", "block")
        #expect(await becomesTrue { (try? blocked.host.perform("Blocker", "told")) == 2 })
        try blocked.host.perform("Blocker", "release")
    }

    // MARK: -

    /// Waits until the module has kept a reply handle, and then resolves it.
    private func untilKept(_ answer: () throws -> Value) async throws {
        #expect(await becomesTrue { (try? host.perform("Later", "kept")) == 1 })
        _ = try answer()
    }
}
