import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// A module in C whose actions end its process in various ways.
let crashing = CModule(
    name: "Bad",
    actions: [
        ("crash", "*(volatile int *)0 = 1; reply(call, \"\");"),
        ("abort", "abort();"),
        ("leave", "exit(3);"),
        ("hang", "for (;;) sleep(1);"),
        ("say", "printf(\"a line\\n\"); fprintf(stderr, \"an error\\n\"); reply(call, \"said\"); fflush(stderr);"),
        ("process", "reply_int(call->token, getpid());"),
    ])

@Suite("Isolated modules that crash")
struct IsolatedCrashTests {
    private func host(_ configure: (inout PluginHost.Configuration) -> Void = { _ in }) throws -> TestHost {
        try TestHost([crashing.build()]) { configuration in
            configuration.isolation.modules = .all
            configure(&configuration)
        }
    }

    @Test("A module runs in a separate process, which the status names")
    func ownProcess() throws {
        let host = try host()
        let process = try #require(host.host.modules.first?.process)
        #expect(process != getpid())
        #expect(try host.host.perform("Bad", "process").int == Int(process))
        #expect(host.answer("Bad") == "yes")
    }

    @Test(
        "A crash is an error of the call that was running, and the next call is answered",
        arguments: [("crash", "signal 11"), ("abort", "signal 6"), ("leave", "exit code 3")])
    func crash(_ action: String, _ reason: String) throws {
        let host = try host()
        let before = host.host.modules.first?.process
        let error = try host.failure("Bad", action)
        #expect(error.code == .moduleCrashed)
        // Sanitizers turn some signals into exit codes.
        #expect(error.message.contains(reason) || isSanitized)
        #expect(error.source == "Bad")
        #expect(host.answer("Bad") == "yes")
        #expect(host.host.modules.first?.process != before)
        #expect(host.host.modules.first?.restarts == 1)
    }
}
