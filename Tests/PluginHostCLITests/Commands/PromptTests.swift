import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// The prompt of `run` at a terminal.
@Suite(.timeLimit(.minutes(30))) struct PromptTests {
    private static let hasLibedit = dlopen("libedit.so.2", RTLD_NOW) != nil || dlopen("libedit.so.0", RTLD_NOW) != nil
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        try folder.folder("plugins")
        try folder.copy(built("libModuleC.so"), as: "plugins/libModuleC.so")
    }

    private func start(_ variables: [String: String] = [:]) throws -> TerminalProcess {
        try TerminalProcess(
            ["run", "--plugins", folder.path + "/plugins"],
            environment: ["HOME": folder.path].merging(variables) { $1 })
    }

    @Test(.enabled(if: hasLibedit, "libedit is not installed"))
    func `words are completed, a change leaves the typed line whole, and the history is kept`() throws {
        let first = try start()
        #expect(first.shows("pluginhost> "))
        first.type("call C a\t")
        #expect(first.shows("dd "))
        first.type("\t")
        #expect(first.shows("a=  int, required\r\nb=  int\r\n"))
        first.type("a=2 b=")
        #expect(first.shows("b="))
        try folder.file("plugins/broken.so", "no module")
        #expect(first.shows("broken.so"))
        #expect(first.shows("pluginhost> call C add a=2 b="))
        #expect(!first.echoes)
        first.type("40\n")
        #expect(first.shows("42\r\n"))
        first.type("quit\n")
        #expect(first.wait() == 0 && first.echoes)

        let second = try start()
        #expect(second.shows("pluginhost> "))
        second.type("\u{1B}[A\u{1B}[A")
        #expect(second.shows("call C add a=2 b=40"))
        second.type("\n")
        #expect(second.shows("42\r\n"))
        second.signal(SIGTERM)
        #expect(second.wait() == 0 && second.echoes)
        #expect(second.output.contains("Stopping"))
        let history = try String(contentsOfFile: folder.path + "/.local/state/pluginhost/history", encoding: .utf8)
        #expect(history == "call C add a=2 b=40\nquit\ncall C add a=2 b=40\n")
    }

    @Test(
        .enabled(if: hasLibedit, "libedit is not installed"),
        .disabled(if: isSanitized, "A sanitizer reports from exit(3), which waits for the terminal."),
        arguments: [false, true])
    func `a signal ends the host, and the terminal is restored, even if its output is stopped`(
        isWriting: Bool
    ) throws {
        let host = try start()
        // The editor prepares the terminal after it has shown the prompt.
        #expect(host.shows("pluginhost> ") && eventually { !host.echoes })
        host.type("ca")
        #expect(host.shows("ca"))
        #expect(host.stopOutput() && !host.echoes)
        if isWriting {
            host.type("l")
            usleep(100_000)  // Meanwhile, the editor begins to write the letter, and waits.
        }
        host.signal(SIGTERM)
        #expect(host.wait() == 0 && host.echoes)
    }

    @Test(.enabled(if: hasLibedit, "libedit is not installed"))
    func `processes that modules fork, and signals, leave the terminal and the line as they are`() throws {
        let code = """
            #include <dirent.h>
            #include <signal.h>
            #include <stdlib.h>
            #include <sys/syscall.h>
            #include <sys/wait.h>
            #include <unistd.h>
            """
        let forking = """
            pid_t child = fork();
            if (child == 0) { alarm(60); exit(0); }
            waitpid(child, NULL, 0);
            reply_int(call->token, 1);
            """
        let signalling = """
            DIR *threads = opendir("/proc/self/task");
            for (struct dirent *thread; (thread = readdir(threads));)
                if (atoi(thread->d_name)) syscall(SYS_tgkill, getpid(), atoi(thread->d_name), SIGCONT);
            closedir(threads);
            reply_int(call->token, 1);
            """
        let module = CModule(
            name: "Rude", code: code,
            targets: [
                .init(
                    name: "Rude",
                    actions: [.init(name: "fork", body: forking), .init(name: "signal", body: signalling)])
            ])
        try folder.copy(module.build(), as: "plugins/Rude.so")
        let socket = folder.path + "/s"
        let host = try start(["PLUGINHOST_SOCKET": socket])
        // The editor prepares the terminal after it has shown the prompt.
        #expect(host.shows("pluginhost> ") && eventually { !host.echoes })
        host.type("sta")
        #expect(host.shows("sta"))
        let client = try SocketClient(socket)
        for action in ["fork", "signal"] {
            #expect(client.ask("call", ["target": "Rude", "action": .string(action)])?["result"] == 1)
            #expect(!host.echoes)
        }
        // The editor yields the terminal to other output while it waits for a key.
        try folder.file("plugins/broken.so", "no module")
        #expect(host.shows("broken.so") && host.shows("pluginhost> sta"))
        host.type("ts\nquit\n")
        #expect(host.wait() == 0 && host.echoes)
    }

    @Test func `without an editor there is a plain prompt, with the same commands as outside`() throws {
        let host = try start(["TERM": "dumb"])
        #expect(host.shows("pluginhost> "))
        for (line, answer) in [
            ("call C add a=1", "2\r\n"), ("stats", "C/add"), ("services", "No services."), ("events", "pluginhost> "),
            ("man list", ".TH PLUGINHOST"), ("resolve --pattern /a/:b /a/7", "b: 7"), ("restart C", "Error: "),
            ("help stats", "--processes"), ("help", "COMMANDS:"), ("runs", "There is no command 'runs'."),
        ] {
            host.type(line + "\n")
            #expect(host.shows(answer), "\(line)")
        }
        host.type("quit\n")
        #expect(host.wait() == 0)
        #expect(!host.output.contains("no effect on a host"))
    }

    @Test func `a completion inserts what all candidates have in common, and lists them otherwise`() {
        func complete(_ line: String, _ texts: [Candidate]) -> CompletedLine? {
            CompletedLine(WordsOfLine(line), texts, columns: 40)
        }
        #expect(complete("li", []) == nil)
        #expect(complete("li", [Candidate(text: "list")])?.text == "st ")
        #expect(complete("call C add a", [Candidate(text: "a=", isWhole: false)])?.text == "=")
        #expect(complete("re", ["release", "remove"].map { Candidate(text: $0) })?.text == "\nrelease  remove")
        #expect(complete("r", ["release", "remove"].map { Candidate(text: $0) })?.text == "e")
        #expect(complete("inspect /a/b", [Candidate(text: "/a/b c.so")])?.text == "\\ c.so ")
        #expect(complete("inspect '/a/b", [Candidate(text: "/a/b c.so")])?.text == " c.so' ")
        let paths = ["/a/x", "/a/y"].map { Candidate(text: $0) }
        #expect(complete("inspect /a/", paths)?.text == "\nx  y")
        let many = (0..<500).map { Candidate(text: "c\($0)") }
        #expect(complete("c", many)?.list.hasSuffix("and 300 more") == true)
    }

    @Test func `the history keeps its last lines`() throws {
        let path = folder.path + "/history"
        let history = HistoryFile(path: path, limit: 3)
        for line in 1...8 { history.append("line \(line)") }
        let again = HistoryFile(path: path, limit: 3)
        #expect(again.lines == ["line 6", "line 7", "line 8"])
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "line 6\nline 7\nline 8\n")
        #expect(fileStatus(path).map { $0.st_mode & 0o777 } == 0o600)
        #expect(HistoryFile(named: "history", [:], limit: 3) == nil)
    }
}
