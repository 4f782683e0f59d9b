import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Isolated modules that do not return, and workers that do not behave as they should.
@Suite struct HangTests {
    private func host(
        _ module: CModule = crashing, callTimeout: Duration = .milliseconds(300),
        hangGrace: Duration = .milliseconds(300)
    ) throws -> TestHost {
        try TestHost([module.build()]) { configuration in
            configuration.isolation.modules = .all
            configuration.isolation.callTimeout = callTimeout
            configuration.isolation.hangGrace = hangGrace
        }
    }

    @Test func `A call that hangs ends at its deadline, then the process is ended and started again`() throws {
        let host = try host()
        let process = host.host.modules.first?.process
        let error = try host.failure("Bad", "hang")
        #expect(error.code == .deadlineExceeded)
        #expect(host.answer("Bad") == "yes")  // Other modules continue to serve.
        #expect(eventually { host.host.modules.first?.restarts == 1 })
        #expect(eventually { host.answer("Bad") == "yes" })
        #expect(host.host.modules.first?.process != process)
        #expect(host.messages.contains { $0.contains("did not return from a call") })
    }

    @Test func `A call with its own timeout ends when that is over, and a late return does no harm`() throws {
        let module = CModule(
            name: "Bad", actions: [("slow", "usleep(200000); reply_int(call->token, 1);")])
        let host = try host(module, callTimeout: .seconds(60))
        let error = #expect(throws: PluginError.self) {
            try host.host.perform("Bad", "slow", timeout: .milliseconds(20))
        }
        #expect(error?.code == .deadlineExceeded)
        usleep(400_000)
        #expect(host.answer("Bad") == "yes")
        #expect(host.host.modules.first?.restarts == 0)
        #expect(try host.host.perform("Bad", "slow") == 1)
    }

    @Test func `A module that sends requests to the host endlessly hangs, too`() throws {
        let host = try host(
            CModule(name: "Bad", actions: [("ask", "for (;;) (void)host->object_retain(host, 0);")]))
        #expect(try host.failure("Bad", "ask").code == .deadlineExceeded)
        #expect(eventually { host.host.modules.first?.restarts == 1 })
        #expect(eventually { host.answer("Bad") == "yes" })
    }

    @Test func `Times that are too long for a clock are no limit`() throws {
        let host = try TestHost([crashing.build()]) { configuration in
            configuration.isolation.modules = .all
            configuration.isolation.callTimeout = .seconds(Int64.max)
            configuration.isolation.hangGrace = .seconds(Int64.max)
            configuration.isolation.stableTime = .seconds(Int64.max)
            configuration.isolation.restartPauses = [.zero, .zero]
        }
        for _ in 0..<2 {
            #expect(host.code("Bad", "abort") == .moduleCrashed)
            #expect(host.answer("Bad") == "yes")
        }
    }

    private func isStopped(_ process: pid_t) -> Bool {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        return tasks.allSatisfy { task in
            let status = try? String(contentsOfFile: "/proc/\(process)/task/\(task)/stat", encoding: .utf8)
            return status?.split(separator: ")").last?.hasPrefix(" T") == true
        }
    }

    @Test func `A stopped process is a hang`() throws {
        let host = try host()
        let process = try #require(host.host.modules.first?.process)
        #expect(kill(process, SIGSTOP) == 0)
        // Before it has stopped, one of its threads may still reply.
        #expect(eventually { isStopped(process) })
        #expect(host.failure("Bad")?.code == .deadlineExceeded)
        #expect(eventually { host.host.modules.first?.restarts == 1 })
        #expect(eventually { host.answer("Bad") == "yes" })
    }

    @Test func `A nested call that hangs ends the calls around it, too`() throws {
        let module = CModule(
            name: "Bad",
            actions: crashing.actions + [
                (
                    "outer",
                    """
                    plugin_request request = ask("Bad", "hang");
                    host->perform(host, call->token, &request, pass_on, (void *)call->token);
                    """
                )
            ])
        let host = try host(module)
        #expect(try host.failure("Bad", "outer").code == .deadlineExceeded)
        #expect(eventually { host.host.modules.first?.restarts == 1 })
        #expect(eventually { host.answer("Bad") == "yes" })
    }

    @Test func `In a serial module no call runs beside one that was too late`() throws {
        let module = CModule(
            name: "Bad", actions: [("slow", "usleep(2000000); reply_int(call->token, 1);")],
            moreManifest: "\"concurrency\": \"serial\",")
        let host = try host(module, hangGrace: .seconds(60))
        #expect(try host.failure("Bad", "slow").code == .deadlineExceeded)
        #expect(host.failure("Bad")?.code == .overloaded)
        #expect(eventually { host.answer("Bad") == "yes" })
        #expect(host.host.modules.first?.restarts == 0)
    }
}
