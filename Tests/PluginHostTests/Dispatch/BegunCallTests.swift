import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Calls that are begun without a task.
@Suite struct BegunCallTests {
    let test: TestHost
    var host: PluginHost { test.host }

    init() throws { test = try TestHost.withSamples() }

    private func begin(
        _ url: String, _ parameters: Parameters = [:], _ origin: CallOrigin = .local, timeout: Duration? = nil,
        _ context: CallContext = CallContext()
    ) -> BegunCall {
        host.begin(
            opening: url, method: .get, parameters, origin: origin, timeout: timeout, callContext: context)
    }

    @Test func `A synchronous action is over when it has returned`() throws {
        guard case .over(let result) = begin("app://B/greet?name=x") else {
            Issue.record("The call is not over.")
            return
        }
        #expect(try result.get() == "Hello, x!")
        guard case .over(.failure(let error)) = begin("app://A/nativeSecret", [:], .remote) else {
            Issue.record("The call has not failed.")
            return
        }
        #expect(error.code == .noRoute)
    }

    @Test func `A task waits for an action that replies later, and cancels it`() async throws {
        guard case .running(let task) = begin("app://B/slowly", ["text": "abc", "milliseconds": 1]) else {
            Issue.record("The call is over.")
            return
        }
        #expect(try await task.value.get() == "cba")
        guard case .running(let waiting) = begin("app://Later/untilCancelled", timeout: .seconds(600)) else {
            Issue.record("The call is over.")
            return
        }
        waiting.cancel()
        let outcome = await waiting.value
        #expect(throws: PluginError.self) { try outcome.get() }
    }

    @Test func `The call has its call context until it is over`() async throws {
        let seen = Mutex<[CallContext]>([])
        host.intercept(.all) { call, next in
            seen.withLock { $0.append(call.callContext) }
            return try next(call)
        }
        let context = CallContext(caller: "ada")
        _ = begin("app://B/greet?name=x", [:], .local, context)
        _ = begin("app://B/greet?name=x")
        if case .running(let task) = begin("app://B/slowly", ["text": "abc", "milliseconds": 1], .local, context) {
            #expect(try await task.value.get() == "cba")
        }
        #expect(seen.withLock { $0 } == [context, CallContext(), context])
        guard case .over(.failure(let error)) = begin("app://B/greet?name=x", [:], .local, CallContext(caller: ""))
        else {
            Issue.record("The name of a caller cannot be empty.")
            return
        }
        #expect(error.code == .invalidValue)
    }
}
