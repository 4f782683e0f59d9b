import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Systems that lack a part of the sandbox, simulated by a filter of system calls in front of the worker.
@Suite(.disabled(if: isSanitized, "A sanitizer sets no limit of memory, and needs some of these calls itself."))
struct RequiredSandboxTests {
    /// A program in place of `pluginhost-worker` that starts it as on a system without one of the calls.
    private func worker(without call: String) throws -> String {
        try CFixture.program(
            """
            #define _GNU_SOURCE
            #include <errno.h>
            #include <linux/filter.h>
            #include <linux/seccomp.h>
            #include <stddef.h>
            #include <sys/prctl.h>
            #include <sys/syscall.h>
            #include <unistd.h>
            int main(int count, char **arguments) {
                (void)count;
                struct sock_filter filter[] = {
                    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, \(call), 0, 1),
                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
                struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
                prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) return 1;
                execv("\(built("pluginhost-worker"))", arguments);
                return 2;
            }
            """)
    }

    private func host(_ sandbox: IsolationRule.Sandbox, without call: String) throws -> (TestHost, ModuleStatus?) {
        let program = try worker(without: call)
        let host = try TestHost { configuration, folder in
            try folder.copy(try CModule().build(), as: "plugins/libGood.so")
            configuration.isolation.workerPath = program
            var rule = IsolationRule("Good")
            rule.sandbox = sandbox
            configuration.isolation.rules = [rule]
        }
        try host.host.start()
        return (host, host.status("libGood.so"))
    }

    @Test(arguments: [
        ("SYS_unshare", "namespaces"), ("444", "Landlock"), ("SYS_seccomp", "seccomp"), ("SYS_capset", "capabilities"),
        ("SYS_prlimit64", "the limit of"),
    ])
    func `Without a part of the sandbox, a module that requires it does not start`(
        _ call: String, _ part: String
    ) throws {
        let (required, status) = try host(.required, without: call)
        let error = try #require(status?.error)
        #expect(error.code == .openFailed)
        #expect(error.message.contains(part), "\(error.message)")
        #expect(required.answer() == nil)
        let (possible, _) = try host(.possible, without: call)
        #expect(possible.answer() == "yes")
        let missing = try #require(possible.host.generations.first?.missingProtections)
        #expect(missing.contains { $0.contains(part) }, "\(missing)")
    }

    @Test func `If the sandbox is complete, a module that requires it starts`() throws {
        let (host, _) = try host(.required, without: "SYS_reboot")
        #expect(host.answer() == "yes")
        #expect(host.host.generations.first?.missingProtections == [])
    }
}
