import Dispatch
import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Isolated modules whose workers wait for a debugger.
@Suite(.timeLimit(.minutes(5)))
struct DebuggingTests {
    /// Attaches to a process as debuggers do, and lets it run to its end. Without an argument, tries this with a child.
    private static let tracer = """
        #define _GNU_SOURCE
        #include <signal.h>
        #include <stdint.h>
        #include <stdlib.h>
        #include <sys/ptrace.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(int count, char **arguments) {
            pid_t child = count > 1 ? 0 : fork();
            if (count == 1 && child == 0) for (;;) pause();
            pid_t process = child ? child : atoi(arguments[1]);
            int failure = ptrace(PTRACE_SEIZE, process, NULL, NULL) != 0;
            if (child) kill(child, SIGKILL);
            if (failure) return 1;
            int status;
            while (waitpid(process, &status, __WALL) == process && WIFSTOPPED(status)) {
                int signal = status >> 16 ? 0 : WSTOPSIG(status);
                ptrace(PTRACE_CONT, process, NULL, (void *)(intptr_t)signal);
            }
            return 0;
        }
        """

    private static let mayTrace = (try? exitCode(of: trace())) == 0

    private static func trace(_ arguments: String...) throws -> pid_t {
        try spawn(
            CFixture.program(tracer), arguments, input: "/dev/null", output: "/dev/null", errors: "/dev/null")
    }

    private static func exitCode(of process: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }

    private static let module = CModule(
        name: "Bad", actions: [("slow", "usleep(700000); reply(call, \"done\");")], activate: "usleep(400000);",
        setUp: "usleep(400000);")

    /// A host whose deadlines are shorter than the module's code takes.
    private func host(_ module: CModule = Self.module, as name: String = "bad.so") throws -> TestHost {
        let module = try module.build()
        return try TestHost { configuration, folder in
            try folder.copy(module, as: "plugins/\(name)")
            configuration.watches = false
            configuration.isolation.debuggedModules = ["Bad"]
            configuration.isolation.callTimeout = .milliseconds(200)
            configuration.isolation.hangGrace = .milliseconds(100)
            configuration.hookTimeout = .milliseconds(200)
        }
    }

    /// Starts a host on a separate thread.
    private func startAside(_ host: TestHost) -> DispatchSemaphore {
        let isStarted = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            #expect(throws: Never.self) { try host.start() }
            isStarted.signal()
        }
        return isStarted
    }

    /// Waits for the log entry, and returns the process that it names.
    private func waitingProcess(_ host: TestHost) throws -> pid_t {
        func lines() -> [LogEntry] { host.log.filter { $0.message.contains("waits for a debugger") } }
        #expect(eventually { !lines().isEmpty })
        #expect(lines().count == 1 && lines().first?.module == "Bad")
        return try #require(lines().first?.message.split(separator: " ").last.flatMap { pid_t($0) })
    }

    @Test(.enabled(if: mayTrace, "No process can be traced here."))
    func `The process waits for a debugger, and no deadline ends it`() throws {
        let host = try host()
        let start = startAside(host)
        let process = try waitingProcess(host)
        usleep(500_000)
        #expect(kill(process, 0) == 0)
        #expect(host.host.modules.allSatisfy { $0.state != .active })
        let tracer = try Self.trace("\(process)")
        start.wait()
        #expect(host.host.modules.first?.process == process)
        #expect(try host.host.perform("Bad", "slow") == "done")
        #expect(host.host.modules.first?.restarts == 0)
        host.host.shutdown()
        #expect(Self.exitCode(of: tracer) == 0)
    }

    @Test func `If the file has the name of the module, its constructors have not run before`() throws {
        let begin = "__attribute__((constructor)) static void begin(void) { abort(); }"
        let host = try host(CModule(name: "Bad", code: begin), as: "libBad.so")
        let start = startAside(host)
        let process = try waitingProcess(host)
        #expect(kill(process, 0) == 0)
        host.host.shutdown()
        start.wait()
    }

    @Test(.enabled(if: mayTrace, "No process can be traced here."))
    func `A process that waits for the debugger of another module is ended, which is reported`() throws {
        let host = try host(CModule(), as: "libBad.so")
        let start = startAside(host)
        let process = try waitingProcess(host)
        let tracer = try Self.trace("\(process)")
        start.wait()
        #expect(host.log.contains { $0.message.contains("libBad.so contains the module Good instead of Bad") })
        #expect(Self.exitCode(of: tracer) == 0)
        #expect(host.host.modules.first?.process == nil)
        #expect(host.answer() == "yes")
    }

    @Test func `A host that is shut down does not wait for a debugger`() throws {
        let host = try host()
        let start = startAside(host)
        let process = try waitingProcess(host)
        host.host.shutdown()
        start.wait()
        #expect(eventually { kill(process, 0) != 0 })
    }
}
