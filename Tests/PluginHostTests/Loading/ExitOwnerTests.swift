import Foundation
import Testing

@testable import TestSupport

/// To which file an exit is attributed, tested with C programs that contain this part of the host.
@Suite(.disabled(if: isSanitized, "Sanitizers define _exit themselves.")) struct ExitOwnerTests {
    private struct Outcome {
        let code: Int32
        let journal: String
        let errors: String
    }

    /// Runs the body of `main` in a program whose journal is open at `journal`, while the file 7 runs on its thread.
    private func run(_ body: String) throws -> Outcome {
        let folder = try TemporaryFolder()
        let sources = "\(repository)/Sources/CPluginHost"
        let (journal, errors) = ("\(folder.path)/journal", "\(folder.path)/errors")
        let library = try CFixture.build(
            "#include <unistd.h>\nvoid leave(int status) { _exit(status); for (;;) {} }", name: "libleave.so")
        let program = try CFixture.program(
            """
            \(try ["blame.c", "exits.c"].map { try String(contentsOfFile: "\(sources)/\($0)", encoding: .utf8) }.joined())
            #include <dlfcn.h>
            #include <fcntl.h>
            #include <signal.h>
            #include <sys/wait.h>
            __thread plugin_host_thread *plugin_host_this_thread;
            void plugin_host_editor_restore(void) {}
            void plugin_host_say(const char *text) { if (write(2, text, strlen(text)) < 0) return; }
            static void leave_program(int number) { (void)number; _exit(5); }
            int main(int count, char **words) {
                int journal = open(words[1], O_CREAT | O_WRONLY | O_APPEND, 0600);
                void (*leave)(int) = (void (*)(int))dlsym(dlopen("\(library)", RTLD_NOW), "leave");
                plugin_host_report_exits();
                plugin_host_set_step("a step", 7);
                const char *library = "\(library)";
                (void)count, (void)journal, (void)leave, (void)leave_program, (void)library;
                \(body)
            }
            """, ["-rdynamic", "-pthread", "-I", sources, "-I", "\(sources)/include"])
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", "exec \"$0\" \"$1\" 2>\"$2\"", program, journal, errors]
        try process.run()
        process.waitUntilExit()
        return Outcome(
            code: process.terminationStatus, journal: try String(contentsOfFile: journal, encoding: .utf8),
            errors: try String(contentsOfFile: errors, encoding: .utf8))
    }

    @Test func `a program that becomes a daemon before its host starts writes journals`() throws {
        let outcome = try run(
            """
            if (fork() != 0) { wait(NULL); return 0; }
            plugin_host_add_journal(journal);
            plugin_host_begin_start(7);
            exit(0);
            """)
        #expect(outcome.journal == "{\"exit\":7}\n")
    }

    @Test func `an _exit of the program in a signal handler is not that of the module it has interrupted`() throws {
        let outcome = try run(
            """
            plugin_host_add_journal(journal);
            plugin_host_begin_start(7);
            sigset_t set;
            sigemptyset(&set);
            sigaddset(&set, SIGUSR1);
            sigprocmask(SIG_UNBLOCK, &set, NULL);
            signal(SIGUSR1, leave_program);
            raise(SIGUSR1);
            """)
        #expect(outcome.code == 5 && outcome.journal.isEmpty && outcome.errors.isEmpty, "\(outcome)")
    }

    @Test(arguments: [(7, 70), (8, 5)])
    func `an _exit by code of a module is its own, and becomes a failure only while this module starts`(
        starting: Int, code: Int32
    ) throws {
        let outcome = try run(
            """
            plugin_host_add_journal(journal);
            plugin_host_add_image((void *)leave, "Leaver 1.0.0", 7);
            plugin_host_begin_start(7), plugin_host_end_start(7);
            plugin_host_begin_start(\(starting));
            plugin_host_set_step(NULL, 0);
            leave(5);
            """)
        #expect(outcome.code == code && outcome.journal == "{\"exit\":7}\n", "\(outcome)")
        #expect(outcome.errors.contains("in the code of Leaver 1.0.0"), "\(outcome)")
    }

    @Test func `an _exit by code of a file whose description has not been read names the file`() throws {
        let outcome = try run(
            """
            plugin_host_add_journal(journal);
            plugin_host_expect_image(library, "/plugins/leaver.so", 7);
            plugin_host_begin_start(7);
            plugin_host_set_step(NULL, 0);
            leave(5);
            """)
        #expect(outcome.code == 70 && outcome.journal == "{\"exit\":7}\n", "\(outcome)")
        #expect(outcome.errors.contains("in the code of /plugins/leaver.so\n"), "\(outcome)")
        #expect(outcome.errors.contains("--isolate all;"), "\(outcome)")
    }

    @Test(arguments: [[7], [7, 8]])
    func `an _exit by a library, outside calls and steps, is that of its file if only one has it`(
        files: [Int]
    ) throws {
        let outcome = try run(
            """
            plugin_host_add_journal(journal);
            \(files.map { "plugin_host_expect_library(library, \"libleave.so of \($0).so\", \($0));" }.joined())
            plugin_host_begin_start(7);
            plugin_host_begin_start(8);
            plugin_host_set_step(NULL, 0);
            leave(5);
            """)
        let isShared = files.count > 1
        #expect(outcome.code == (isShared ? 5 : 70), "\(outcome)")
        #expect(outcome.journal == (isShared ? "" : "{\"exit\":7}\n"), "\(outcome)")
    }
}
