import Foundation
import PluginABI
import Testing

@testable import TestSupport

/// Programs and modules that could make a host deaf to its clients, its folders and signals.
@Suite(.timeLimit(.minutes(30))) struct DeafHostTests {
    private func module(_ name: String, code: String = "") -> CModule {
        CModule(
            name: name, code: code,
            targets: [
                .init(
                    name: name,
                    actions: [
                        .init(name: "sleep", body: "sleep(600); reply_int(call->token, 1);"),
                        .init(name: "quick", body: "reply_int(call->token, 7);"),
                        .init(
                            name: "child",
                            body: "reply_int(call->token, system(\"kill -TERM $$; sleep 1; exit 7\") & 0x7f);"),
                    ])
            ])
    }

    private func started(
        _ module: CModule, waits: Bool = true
    ) throws -> (HostProgram, ProgramProcess, socket: String) {
        let program = try HostProgram()
        try copy(module, to: program)
        let socket = program.folder.path + "/s"
        let host = try program.start("run", "--socket", socket)
        if waits { _ = host.line { $0.contains("Listening on") } }
        return (program, host, socket)
    }

    /// A full pipe whose reader does not read.
    private func stalledPipe(in folder: TemporaryFolder) throws -> (path: String, reader: Int32) {
        let path = folder.path + "/pipe"
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        try #require(reader >= 0)
        let chunk = [UInt8](repeating: 10, count: 4096)
        while write(reader, chunk, chunk.count) > 0 {}
        return (path, reader)
    }

    private func copy(_ module: CModule, to program: HostProgram) throws {
        try FileManager.default.copyItem(
            atPath: try module.build(), toPath: "\(program.plugins)/\(module.name).so")
    }

    private func call(_ target: String, _ action: String) -> Value {
        ["target": .string(target), "action": .string(action)]
    }

    @Test(arguments: [1, 5]) func `Blocking calls delay neither other clients nor changes of files`(
        clients: Int
    ) throws {
        let (program, host, socket) = try started(module("Sleeper"))
        defer { withExtendedLifetime(program) {} }
        let deaf = try (0..<clients).map { _ in try SocketClient(socket) }
        for client in deaf { client.request("call", call("Sleeper", "sleep"), count: 255 / clients) }
        // Calls without a slot get an error. All other calls sleep.
        for client in deaf { #expect(client.answer()?["error"]?["data"]?["code"] == "overloaded") }

        let other = try SocketClient(socket)
        #expect(other.ask("list")?["result"]?.list?.count == 1)
        #expect(other.ask("call", call("Sleeper", "quick"))?["result"] == 7)
        try copy(module("Late"), to: program)
        var count: Int?
        for _ in 0..<3000 where count != 2 {
            count = other.ask("list")?["result"]?.list?.count
            usleep(10_000)
        }
        #expect(count == 2)

        host.signal(SIGTERM)
        usleep(50_000)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 128 + SIGTERM)
    }

    @Test func `A module that blocks all threads of tasks delays neither clients nor files nor signals`() throws {
        let program = try HostProgram()
        try program.folder.copy(built("libFixtureModule.so"), as: "plugins/FixtureModule.so")
        try copy(module("Quick"), to: program)
        let socket = program.folder.path + "/s"
        let host = try program.start("run", "--socket", socket)
        let deaf = try SocketClient(socket)
        let threads = ProcessInfo.processInfo.activeProcessorCount
        // The calls need at most half of a client's slots.
        try #require(threads <= 30)
        deaf.request("call", call("Later", "occupy"), count: threads + 2)

        let other = try SocketClient(socket)
        #expect(
            eventually { other.ask("call", call("Later", "begun"))?["result"]?.int.map { $0 >= threads } ?? true })
        #expect(other.ask("list")?["result"]?.list?.count == 2)
        #expect(other.ask("call", call("Quick", "quick"))?["result"] == 7)
        try copy(module("Late"), to: program)
        #expect(eventually { other.ask("list")?["result"]?.list?.count == 3 })
        #expect(eventually { host.output.contains("added Late") })
        host.signal(SIGTERM)
        let outcome = try host.wait()
        #expect(outcome.code == 0 && outcome.errors.contains("was still running calls"), "\(outcome)")
    }

    @Test func `One signal ends a host in an orderly way even if its calls block`() throws {
        let (program, host, socket) = try started(module("Sleeper"))
        defer { withExtendedLifetime(program) {} }
        let client = try SocketClient(socket)
        client.request("call", call("Sleeper", "sleep"), count: 30)
        let other = try SocketClient(socket)
        #expect(other.ask("call", call("Sleeper", "quick"))?["result"] == 7)
        host.signal(SIGTERM)
        let outcome = try host.wait()
        #expect(outcome.code == 0 && outcome.errors.contains("was still running calls"), "\(outcome)")
    }

    @Test func `A host that hangs in a constructor ends at the second signal, or some seconds after the first`() throws
    {
        let hanging = module("Hanging", code: "__attribute__((constructor)) static void hang(void) { sleep(600); }")
        for signals in [2, 1] {
            // The program inherits blocked signals, and threads of Dispatch, on which tests run, block them.
            var (blocked, before) = (sigset_t(), sigset_t())
            sigfillset(&blocked)
            pthread_sigmask(SIG_BLOCK, &blocked, &before)
            let (program, host, _) = try started(hanging, waits: false)
            pthread_sigmask(SIG_SETMASK, &before, nil)
            defer { withExtendedLifetime(program) {} }
            usleep(1_000_000)
            // Two signals count as one if the second arrives before the first is handled, so more are sent.
            for _ in 0..<(signals == 1 ? 1 : 20) {
                host.signal(SIGTERM)
                usleep(50_000)
            }
            let outcome = try host.wait()
            #expect(outcome.code == 128 + SIGTERM, "\(outcome)")
            #expect(outcome.errors.contains("the orderly shutdown has not begun in time") == (signals == 1))
        }
    }

    @Test(
        .disabled(if: isSanitized, "A sanitizer reports from exit(3), which runs destructors."),
        arguments: ["*(volatile int *)0 = 1;", "sleep(600);"])
    func `A module's destructors do not run, and do not affect how a command ends`(body: String) throws {
        let program = try HostProgram()
        try copy(module("Last", code: "__attribute__((destructor)) static void last(void) { \(body) }"), to: program)
        #expect(try program.run("list").code == 0)
        let outcome = try program.run("call", "Last", "quick")
        #expect(outcome.signal == 0 && outcome.code == 0 && outcome.output.contains("7"), "\(outcome)")
    }

    @Test(
        .disabled(if: isSanitized, "A sanitizer reports from exit(3), which writes to standard output again."),
        arguments: [1, 2] as [Int32])
    func `A host whose output or log nobody reads starts, serves and ends, even if modules write to it`(
        descriptor: Int32
    ) throws {
        let program = try HostProgram()
        let writing = """
            printf("said");
            const plugin_log *log = host->get_extension(host, text(PLUGIN_LOG_EXTENSION));
            log->write(host, 0, PLUGIN_LOG_ERROR, text("said"));
            reply_int(call->token, 7);
            """
        try copy(
            CModule(
                name: "Writer", code: "#include <stdio.h>",
                targets: [.init(name: "Writer", actions: [.init(name: "write", body: writing)])]),
            to: program)
        let socket = program.folder.path + "/s"
        let (pipe, reader) = try stalledPipe(in: program.folder)
        defer { close(reader) }
        let host = try program.start("run", "--socket", socket, writingTo: [descriptor: pipe])
        let client = try SocketClient(socket)
        #expect(client.ask("call", call("Writer", "write"))?["result"] == 7)
        try copy(module("Late"), to: program)
        #expect(eventually { client.ask("list")?["result"]?.list?.count == 2 })
        // The other stream has a reader.
        #expect(eventually { descriptor == 1 ? host.errors.contains("said") : host.output.contains("added Late") })
        host.signal(SIGTERM)
        let outcome = try host.wait()
        #expect(outcome.signal == 0 && outcome.code == 0, "\(outcome)")
    }

    @Test(.disabled(if: isSanitized, "A sanitizer needs more memory than the limit leaves."))
    func `Without a thread, a call fails at once, other calls are served, and a signal ends the host`() throws {
        let (program, host, socket) = try started(module("Sleeper"))
        defer { withExtendedLifetime(program) {} }
        let (client, other) = (try SocketClient(socket), try SocketClient(socket))
        #expect(other.ask("call", call("Sleeper", "quick"))?["result"] == 7)
        // The limit is smaller than the stack of a thread.
        try host.limitMemory(toFurther: 4 << 20)
        client.request("call", call("Sleeper", "sleep"), count: 4)
        // At first, existing threads run the calls.
        var error: Value?
        #expect(
            eventually {
                guard let answer = other.ask("call", call("Sleeper", "quick")) else { return true }
                error = answer["error"]
                return error != nil
            })
        #expect(error?["data"]?["code"] == "overloaded", "\(error?.json ?? "no answer")")
        #expect(error?["message"]?.string?.contains("no thread left") == true && other.ask("list")?["result"] != nil)
        host.signal(SIGTERM)
        let outcome = try host.wait()
        #expect(outcome.signal == 0 && [0, 128 + SIGTERM].contains(outcome.code), "\(outcome)")
    }

    @Test(.disabled(if: isSanitized, "A sanitizer needs more memory than the limit leaves."))
    func `Without a thread, inspections over the socket are still answered`() throws {
        let (program, host, socket) = try started(module("Sleeper"))
        defer { withExtendedLifetime(program) {} }
        let client = try SocketClient(socket)
        #expect(client.ask("list")?["result"] != nil)
        usleep(1_500_000)  // Idle threads end after a second.
        try host.limitMemory(toFurther: 4 << 20)
        client.request("inspect", ["file": .string(program.plugins + "/Sleeper.so")], count: 4)
        // The answers do not matter: the scan processes may lack memory, too.
        for _ in 0..<4 { #expect(client.answer() != nil) }
        host.signal(SIGTERM)
        #expect(try host.wait().signal == 0)
    }

    @Test func `Exceeding the file size limit is an error, and does not end the host`() throws {
        let (program, host, socket) = try started(module("Small"))
        defer { withExtendedLifetime(program) {} }
        let client = try SocketClient(socket)
        try host.limitFileSize(to: 4096)
        try copy(module("Second"), to: program)
        var second: Value?
        #expect(
            eventually {
                second = client.ask("list")?["result"]?.list?.first {
                    $0["file"]?.string?.hasSuffix("Second.so") == true
                }
                // At first, the file may still be open for writing, which is an error, too.
                return second?["error"]?["message"]?.string?.contains("File too large") == true
            }, "\(second?.json ?? "")")
        host.signal(SIGTERM)
        #expect(try host.wait().signal == 0)
    }

    @Test(.disabled(if: isSanitized, "A sanitizer needs more memory than the limit leaves."))
    func `A module for which memory is insufficient fails, and the error names the limits`() throws {
        let (program, host, socket) = try started(module("Small"))
        defer { withExtendedLifetime(program) {} }
        let client = try SocketClient(socket)
        #expect(client.ask("list")?["result"]?.list?.count == 1)
        try host.limitMemory(toFurther: 512 << 20)
        try copy(
            module("Large", code: "static char memory[1 << 30]; char *large(void) { return memory; }"), to: program)
        var large: Value?
        #expect(
            eventually {
                large = client.ask("list")?["result"]?.list?.first { $0["file"]?.string?.hasSuffix("Large.so") == true }
                return large?["state"] == "failed"
            })
        let message = large?["error"]?["message"]?.string ?? ""
        for word in ["vm.max_map_count", "RLIMIT_AS", "Restart the host"] {
            #expect(message.contains(word), "\(large?.json ?? "")")
        }
    }

    @Test func `The option --max-calls limits how many calls from the socket run at a time`() throws {
        let program = try HostProgram()
        try copy(module("Sleeper"), to: program)
        let socket = program.folder.path + "/s"
        let host = try program.start("run", "--socket", socket, "--max-calls", "2")
        defer { withExtendedLifetime(host) {} }
        let client = try SocketClient(socket)
        client.request("call", call("Sleeper", "sleep"), count: 5)
        // The client gets its own slot, and half of the two shared ones.
        for _ in 0..<3 {
            let error = client.answer()?["error"]
            #expect(error?["data"]?["code"] == "overloaded")
            #expect(error?["message"]?.string?.hasPrefix("2 calls are already running") == true, "\(error?.json ?? "")")
        }
        #expect(eventually { client.ask("list")?["result"]?.list?.count == 1 })
        for count in ["0", "-1", "4097", "many", "", String(repeating: "9", count: 100_000)] {
            let outcome = try program.run("run", "--max-calls", count)
            #expect(outcome.code == 64 && outcome.errors.contains("'--max-calls'"), "\(outcome)")
            #expect(outcome.errors.utf8.count < 2000)
        }
    }

    @Test(arguments: ["SIGTERM", "SIGINT"])
    func `A module that ignores SIGINT and SIGTERM does not keep them from ending the program`(name: String) throws {
        let code = """
            #include <signal.h>
            __attribute__((constructor)) static void ignore(void) { signal(SIGTERM, SIG_IGN); signal(SIGINT, SIG_IGN); }
            """
        let (program, host, socket) = try started(module("Stubborn", code: code))
        defer { withExtendedLifetime(program) {} }
        #expect(try SocketClient(socket).ask("call", call("Stubborn", "quick"))?["result"] == 7)
        #expect(eventually { host.errors.contains("changed the handling of SIGINT and SIGTERM") })
        host.signal(name == "SIGTERM" ? SIGTERM : SIGINT)
        #expect(try host.wait().code == 0)
    }

    @Test func `A process that a module starts can be ended by signals`() throws {
        let (program, host, socket) = try started(module("Parent"))
        defer { withExtendedLifetime(program) {} }
        #expect(try SocketClient(socket).ask("call", call("Parent", "child"))?["result"] == .int(Int(SIGTERM)))
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }

    @Test func `A client without a descriptor gets an error if all others are busy, and the log says so once`() throws {
        let (program, host, socket) = try started(module("Sleeper"))
        defer { withExtendedLifetime(program) {} }
        let first = try SocketClient(socket)
        first.request("call", call("Sleeper", "sleep"), count: 1)
        #expect(first.ask("list")?["result"] != nil)
        try host.limitDescriptors(to: 24)
        var clients: [SocketClient] = []
        var told: Value?
        while told == nil, clients.count < 30 {
            let client = try SocketClient(socket)
            clients.append(client)
            let answer = client.ask("list")
            #expect(answer != nil)
            told = answer?["error"]
            if told != nil { break }
            client.request("call", call("Sleeper", "sleep"), count: 1)
            #expect(client.ask("list")?["result"] != nil)
        }
        #expect(told?["data"]?["code"] == "overloaded" && told?["message"]?.string?.contains("ulimit -n") == true)
        #expect(try SocketClient(socket).ask("list")?["error"]?["data"]?["code"] == "overloaded")
        #expect(first.ask("list")?["result"] != nil)
        host.signal(SIGTERM)
        let outcome = try host.wait()
        #expect(outcome.code == 0)
        #expect(outcome.errors.split(separator: "\n").count { $0.contains("cannot accept a client") } == 1)
    }

    @Test func `Idle clients that use all descriptors lock no other client out`() throws {
        let (program, host, socket) = try started(module("Sleeper"))
        defer { withExtendedLifetime(program) {} }
        let first = try SocketClient(socket)
        #expect(first.ask("list")?["result"] != nil)
        try host.limitDescriptors(to: 24)
        var clients: [SocketClient] = []
        for _ in 0..<30 {
            clients.append(try SocketClient(socket))
            #expect(clients.last?.ask("list")?["result"] != nil)
        }
        #expect(first.answer() == nil)
        host.signal(SIGTERM)
        #expect(try host.wait().code == 0)
    }
}
