import Foundation
import PluginABI
import Testing

@testable import TestSupport

/// Modules that kill their host: what the dying host reports, and how the next one reacts.
@Suite(.timeLimit(.minutes(30)), .serialized) struct CrashTests {
    let program: HostProgram

    init() throws { program = try HostProgram() }

    // MARK: While a module is loaded

    /// A module that crashes at one step of its loading.
    private static func dying(in step: String) -> CModule {
        var module = CModule(name: "Dying")
        switch step {
        case "opening":
            module.code = "__attribute__((constructor)) static void begin(void) { __builtin_trap(); }"
        case "entry": module.entry = "__builtin_trap();"
        default: module.activate = "__builtin_trap();"
        }
        return module
    }

    static let steps = ["opening", "entry", "activation"]

    @Test(arguments: steps)
    func `A module that traps while it is loaded is named with the step, and the host dies of the signal`(
        step: String
    ) throws {
        let file = try Self.dying(in: step).build(into: program.plugins, as: "dying.so")
        let outcome = try program.run("list", "--json")
        #expect(outcome.signal == SIGILL || outcome.signal == SIGTRAP)
        #expect(outcome.errors.contains("while running the \(step) of \(file)\n"), "\(outcome.errors)")
    }

    @Test(arguments: steps)
    func `The name of a crashed module reaches the terminal escaped`(step: String) throws {
        try Self.dying(in: step).build(into: program.plugins, as: "\u{1B}]0;owned\u{7}\u{9B}2J\u{202E}.so")
        let errors = try program.run("list", "--json").errors
        #expect(errors.contains("\(program.plugins)/\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{202e}.so"), "\(errors)")
        let report = errors.split(separator: "\n").filter { $0.hasPrefix("pluginhost") || $0.hasPrefix("  ") }
        #expect(!report.joined().unicodeScalars.contains { $0.value < 0x20 || (0x7F..<0xA0).contains($0.value) })
    }

    @Test(arguments: steps)
    func `The next start quarantines a crashed module, with the step, and loads the others`(step: String) throws {
        let file = try Self.dying(in: step).build(into: program.plugins, as: "dying.so")
        try CModule().build(into: program.plugins, as: "good.so")
        #expect(try program.run("list").signal != 0)
        for _ in 1...2 {
            let outcome = try program.run("list", "--json")
            #expect(outcome.code == 0 && outcome.signal == 0)
            #expect(outcome.module("dying.so")?["state"] == "quarantined")
            let message = outcome.module("dying.so")?["error"]?["message"]?.string ?? ""
            #expect(message.contains("died during the \(step) of \(file)"), "\(message)")
            #expect(outcome.module("good.so")?["state"] == "active")
        }
    }

    @Test func `A quarantine applies whatever path names the folder`() throws {
        try Self.dying(in: "opening").build(into: program.plugins, as: "dying.so")
        #expect(try program.run("list").signal != 0)
        let link = "\(program.folder.path)/link"
        symlink("plugins", link)
        #expect(try program.naming(link).run("list", "--json").module("dying.so")?["state"] == "quarantined")
    }

    @Test func `--retry tries a quarantined file again`() throws {
        let switchedOff = "\(program.folder.path)/switched-off"
        var module = CModule(name: "Moody")
        module.entry = "if (access(\"\(switchedOff)\", F_OK) != 0) __builtin_trap();"
        try module.build(into: program.plugins, as: "moody.so")
        #expect(try program.run("list").signal != 0)
        #expect(try program.run("list", "--retry").signal != 0)
        try program.folder.file("switched-off")
        #expect(try program.run("list", "--json").module("moody.so")?["state"] == "quarantined")
        #expect(try program.run("list", "--json", "--retry").module("moody.so")?["state"] == "active")
        #expect(try program.run("list", "--json").module("moody.so")?["state"] == "active")
    }

    @Test func `A quarantined file that changes is tried again`() throws {
        try Self.dying(in: "entry").build(into: program.plugins, as: "a.so")
        #expect(try program.run("list").signal != 0)
        try CModule().build(into: program.plugins, as: "a.so")
        #expect(try program.run("list", "--json").module("a.so")?["state"] == "active")
    }

    @Test func `Several modules that kill the host are found one start after another`() throws {
        for step in Self.steps { try Self.dying(in: step).build(into: program.plugins, as: "\(step).so") }
        for _ in Self.steps { #expect(try program.run("list").signal != 0) }
        let outcome = try program.run("list", "--json")
        for step in Self.steps { #expect(outcome.module("\(step).so")?["state"] == "quarantined") }
    }

    @Test func `A module that ends the program while it is loaded is quarantined`() throws {
        try CModule(entry: "_exit(0);").build(into: program.plugins, as: "leaving.so")
        #expect(try program.run("list", "--json").output.isEmpty)
        #expect(try program.run("list", "--json").module("leaving.so")?["state"] == "quarantined")
    }

    // MARK: While an action runs

    /// Runs an action that crashes, and returns the output of the program.
    private func die(_ module: CModule) throws -> ProgramProcess.Outcome {
        try module.build(into: program.plugins, as: "crashing.so")
        return try program.run("call", module.target ?? module.name, "answer")
    }

    private static let report = "while running Crashing/answer of Crashing 1.2.3 (generation 1)\n"

    @Test(arguments: [
        ("*(volatile int *)8 = 1;", SIGSEGV), ("abort();", SIGABRT), ("raise(SIGFPE);", SIGFPE),
        ("__builtin_trap();", SIGILL), ("raise(SIGBUS);", SIGBUS), ("raise(SIGTRAP);", SIGTRAP),
    ])
    func `A crash in an action is reported with module, generation and action, and the host dies of the signal`(
        body: String, signal: Int32
    ) throws {
        let outcome = try die(CModule(name: "Crashing", version: "1.2.3", body: body))
        #expect(outcome.signal == signal)
        #expect(outcome.errors.contains(Self.report), "\(outcome.errors)")
        #expect(outcome.output.isEmpty)
    }

    @Test func `A crash in a thread that a module has created is reported with the module`() throws {
        var module = CModule(name: "Crashing", version: "1.2.3")
        module.code = "static void *run(void *data) { (void)data; *(volatile int *)8 = 1; return NULL; }"
        module.body = "pthread_t thread; pthread_create(&thread, NULL, run, NULL); pthread_join(thread, NULL);"
        let outcome = try die(module)
        #expect(outcome.signal == SIGSEGV)
        #expect(outcome.errors.contains("in the code of Crashing 1.2.3 ("), "\(outcome.errors)")
    }

    @Test func `A stack overflow in an action is reported`() throws {
        var module = CModule(name: "Crashing", version: "1.2.3")
        module.code = """
            static volatile int depth;
            static __attribute__((noinline)) int dive(int n) { volatile char room[256]; room[0] = (char)n;
                depth = n; return dive(n + 1) + room[0]; }
            """
        module.body = "depth = dive(0);"
        let outcome = try die(module)
        #expect(outcome.signal == SIGSEGV)
        #expect(outcome.errors.contains(Self.report), "\(outcome.errors)")
    }

    @Test func `The crash report contains the chain of callers`() throws {
        try CModule(name: "Last", body: "abort();").build(into: program.plugins, as: "last.so")
        var first = CModule(name: "First")
        first.body = """
            plugin_request request = {.size = sizeof request, .target = PLUGIN_STRING("Last"),
                .action = PLUGIN_STRING("answer")};
            host->perform(host, call->token, &request, pass_on, (void *)call->token);
            """
        try first.build(into: program.plugins, as: "first.so")
        let outcome = try program.run("call", "First", "answer")
        #expect(outcome.signal == SIGABRT)
        let chain = try #require(outcome.errors.range(of: "while running Last/answer of Last 1.0.0 (generation "))
        #expect(outcome.errors[chain.upperBound...].contains("called by First/answer of First 1.0.0 (generation "))
    }

    @Test func `A crash in an action does not quarantine the file`() throws {
        _ = try die(CModule(name: "Crashing", version: "1.2.3", body: "abort();"))
        #expect(try program.run("list", "--json").module("crashing.so")?["state"] == "active")
    }

    @Test func `Many threads that crash at once leave one complete report`() throws {
        var module = CModule(name: "Crashing", version: "1.2.3")
        module.code = "static void *run(void *data) { (void)data; *(volatile int *)8 = 1; return NULL; }"
        module.body = """
            pthread_t threads[8];
            for (int i = 0; i < 8; i++) pthread_create(threads + i, NULL, run, NULL);
            for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
            """
        let outcome = try die(module)
        #expect(outcome.signal == SIGSEGV)
        #expect(outcome.errors.components(separatedBy: "pluginhost: fatal signal").count == 2)
        #expect(outcome.errors.contains("in the code of Crashing 1.2.3 ("), "\(outcome.errors)")
    }

    @Test func `A crash ends the program and is recorded, even if nobody reads the report`() throws {
        var module = CModule(name: "Crashing")
        module.code = """
            #include <fcntl.h>
            #include <unistd.h>
            __attribute__((constructor)) static void crash(void) {
                int ends[2];
                if (pipe(ends) != 0 || dup2(ends[1], 2) != 2) return;
                fcntl(2, F_SETFL, O_NONBLOCK);
                static char page[4096];
                while (write(2, page, sizeof page) > 0) {}
                fcntl(2, F_SETFL, 0);
                *(volatile int *)8 = 1;
            }
            """
        try module.build(into: program.plugins, as: "crashing.so")
        let start = ContinuousClock.now
        #expect(try program.run("list").signal == SIGSEGV)
        #expect(.now - start < .seconds(20))
        #expect(try program.run("list", "--json").module("crashing.so")?["state"] == "quarantined")
    }
}
