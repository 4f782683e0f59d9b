import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// What a module in C can do wrong: each case is an error, never a crash.
@Suite(.serialized) struct BoundaryTests {
    let test: TestHost
    var host: PluginHost { test.host }

    init() throws { test = try TestHost([Self.careless.build(), Self.thief.build(), built("libModuleB.so")]) }

    @Test(arguments: [
        "target", "action", "key", "value", "mapKey", "nullTarget", "nullText", "nullBytes", "nullList", "nullMap",
        "nullParameters", "kind", "deepList", "deepEmpty", "size", "address", "hugeCount", "hugeName", "longTarget",
        "longAction", "longKey", "nullKey", "nullLongKey", "nullKeyAsync", "object", "url",
        // To actions that declare a value of this type, so that nothing but the value is wrong.
        "own bytes", "own list", "own deep list", "own map", "own map key", "own object", "own any", "own second",
        "own async",
    ])
    func `An invalid request is refused, with the reason`(what: String) throws {
        #expect(try host.perform("Careless", "request", [.string(what)]) == "invalidValue")
    }

    @Test func `A list that is nested 128 deep passes in both directions`() throws {
        let value = try host.perform("Careless", "result", ["depth128"])
        func depth(_ value: Value) -> Int { value[0].map { 1 + depth($0) } ?? (value.list == nil ? 0 : 1) }
        #expect(depth(value) == 128)
        #expect(try host.perform("Careless", "result", ["emptyStrings"]) == ["", .bytes([]), [], [:]])
    }

    @Test(arguments: ["text", "key", "kind", "depth129", "depth129empty", "nullText", "nullList", "object"])
    func `An invalid result fails with invalidResult, and the module is notified`(what: String) throws {
        let error = try test.failure("Careless", "result", [.string(what)])
        #expect(error.code == .invalidResult && error.source == "Careless")
        #expect(try host.perform("Careless", "lastStatus") == 2)
    }

    @Test func `A null pointer as the result means null, and as the error means actionFailed`() throws {
        #expect(try host.perform("Careless", "result", ["null"]) == nil)
        let error = try test.failure("Careless", "reject", ["null"])
        #expect(error.code == .actionFailed && error.source == "Careless")
    }

    @Test func `An error's strings are repaired, and may be missing`() throws {
        let broken = try test.failure("Careless", "reject", ["broken"])
        #expect(broken.code == "bad" && broken.message.contains("\u{FFFD}"))
        let missing = try test.failure("Careless", "reject", ["missing"])
        #expect(missing.code == .actionFailed && missing.message == "")
    }

    @Test func `An error's source is the module, unless another one is named`() throws {
        #expect(try test.failure("Careless", "reject", ["plain"]).source == "Careless")
        #expect(try test.failure("Careless", "reject", ["other"]).source == "Elsewhere")
    }

    @Test func `Null pointers as request, completion and handler do no harm`() throws {
        #expect(try host.perform("Careless", "nulls") == "invalidValue")
    }

    @Test func `Invalid names find nothing`() throws {
        #expect(try host.perform("Careless", "names") == 0)
    }

    @Test func `Log lines of any kind are written`() throws {
        try host.perform("Careless", "log")
        #expect(test.log.filter { $0.module == "Careless" && $0.message.hasPrefix("line") }.count == 2)
    }

    // MARK: Replies

    @Test func `A synchronous action that does not reply is noReply`() throws {
        let error = try test.failure("Careless", "silent")
        #expect(error.code == .noReply && error.source == "Careless")
        #expect(try host.perform("Careless", "lateReply") == 1)
        #expect(test.staleReplies == 1)
    }

    @Test func `A synchronous action can reply from another thread before it returns`() throws {
        for _ in 0..<50 { #expect(try host.perform("Careless", "elsewhere") == 7) }
    }

    @Test func `A reply that races with the return of a synchronous action precedes it or is stale`() throws {
        for _ in 0..<200 {
            do { #expect(try host.perform("Careless", "racing") == 7) } catch { #expect(error.code == .noReply) }
        }
    }

    @Test func `Of simultaneous replies by a synchronous action and another thread, one is accepted`() throws {
        let calls = 2_000
        var taken = [0, 0]
        for _ in 0..<calls {
            let winner = try #require(try host.perform("Careless", "contested").int)
            taken[winner] += 1
        }
        let told = try host.perform("Careless", "contestedTaken")
        // The reply that was accepted is the one that the caller received.
        #expect(told[0]?.int == taken[0] && told[1]?.int == taken[1])
        #expect(taken[0] + taken[1] == calls && test.staleReplies == calls)
    }

    @Test func `A second reply is stale, and logged once`() throws {
        #expect(try host.perform("Careless", "twice") == 1)
        #expect(try host.perform("Careless", "lastStatus") == 1)
        #expect(test.staleReplies == 1)
        #expect(test.log.contains { $0.message.contains("replied to a call of Careless/twice that is over") })
    }

    @Test func `Of replies from many threads, one is accepted`() async throws {
        for _ in 0..<20 { _ = try await host.call("Careless", "manyReplies") }
        #expect(await becomesTrue { (try? host.perform("Careless", "accepted")) == 20 })
        #expect(await becomesTrue { test.staleReplies == 20 * 7 })
    }

    @Test func `A reply after the deadline is stale, from any thread`() async throws {
        let error = await #expect(throws: PluginError.self) {
            try await host.call("Careless", "keep", timeout: .milliseconds(500))
        }
        #expect(error?.code == .deadlineExceeded)
        #expect(try host.perform("Careless", "lateReply") == 1)
        #expect(try host.perform("Careless", "lateReply") == 1)
        #expect(test.staleReplies == 1)
    }

    @Test func `A reply by another module with a stolen token is refused`() async throws {
        let call = Task { [host] in try await host.call("Careless", "keep") }
        #expect(await becomesTrue { (try? host.perform("Careless", "keptToken")) != 0 })
        let token = try host.perform("Careless", "keptToken")
        #expect(try host.perform("Thief", "resolve", [token]) == 1)
        #expect(try host.perform("Thief", "reject", [token]) == 1)
        #expect(try host.perform("Thief", "onCancel", [token]) == 0)
        #expect(test.staleReplies == 2)
        #expect(try host.perform("Careless", "lateReply") == 0)
        #expect(try await call.value == 1)
    }

    @Test func `Garbage tokens do nothing`() throws {
        #expect(try host.perform("Thief", "garbage") == 0)
        #expect(try host.perform("B", "greet", ["x"]) == "Hello, x!")
    }

    // MARK: Cancellation

    @Test func `The cancel handler is called once with 1 when the call is cancelled`() async throws {
        let call = Task { [host] in try await host.call("Careless", "watch") }
        #expect(await becomesTrue { (try? host.perform("Careless", "keptToken")) != 0 })
        call.cancel()
        let error = await #expect(throws: PluginError.self) { try await call.value }
        #expect(error?.code == .cancelled)
        #expect(await becomesTrue { (try? host.perform("Careless", "told")) == [0, 1] })
        #expect(try host.perform("Careless", "lateReply") == 1)
        #expect(try host.perform("Careless", "told") == [0, 1])
    }

    @Test func `The cancel handler is called once with 0 when the call ends in another way`() async throws {
        let call = Task { [host] in try await host.call("Careless", "watch") }
        #expect(await becomesTrue { (try? host.perform("Careless", "keptToken")) != 0 })
        #expect(try host.perform("Careless", "lateReply") == 0)
        #expect(try await call.value == 1)
        #expect(await becomesTrue { (try? host.perform("Careless", "told")) == [1, 0] })
        call.cancel()
        #expect(try host.perform("Careless", "told") == [1, 0])
    }

    @Test func `Cancel handlers of synchronous calls and calls that are over are called at once with 0`() throws {
        #expect(try host.perform("Careless", "handlers") == 2)
    }

    @Test func `The caller of a cancelled call gets its error, and the action continues`() throws {
        #expect(try host.perform("Careless", "cancelOwn") == "cancelled")
        #expect(try host.perform("Careless", "lateReply") == 1)
    }

    /// The completion may need a lock that the canceller holds: Swift's runtime holds such a lock while it cancels a
    /// task, and acquires it to resume the task.
    @Test func `Cancelling a call does not wait for a thread that is delivering its outcome`() throws {
        let canceller = CModule(
            name: "Canceller",
            code: """
                static atomic_int is_told, is_cancelled, outcome;
                static void tell(void *data, const plugin_value *value, const plugin_error *error) {
                    (void)data, (void)error;
                    atomic_store(&is_told, 1);
                    while (!atomic_load(&is_cancelled)) usleep(100);
                    atomic_store(&outcome, value ? 1 : 2);
                }
                static void *answer(void *token) { reply_int((plugin_token)token, 5); return 0; }
                """,
            targets: [
                .init(
                    name: "Canceller",
                    actions: [
                        .init(name: "later", manifest: "\"async\":true,", body: "start(answer, (void *)call->token);"),
                        .init(
                            name: "cancel",
                            body: """
                                plugin_request request = ask("Canceller", "later");
                                plugin_token later = host->call(host, call->token, &request, tell, 0);
                                while (!atomic_load(&is_told)) usleep(100);
                                host->cancel(host, later);
                                atomic_store(&is_cancelled, 1);
                                while (!atomic_load(&outcome)) usleep(100);
                                reply_int(call->token, atomic_load(&outcome));
                                """),
                    ])
            ])
        let test = try TestHost([canceller.build()])
        #expect(try test.host.perform("Canceller", "cancel") == 1)
        #expect(test.staleReplies == 0)
    }
}
