import Foundation
import PluginABI
import Testing

@testable import TestSupport

/// The next start identifies the module that ended the host while modules were starting, wherever its code was, and
/// blames no other module.
@Suite(.timeLimit(.minutes(30)), .serialized) struct StartFaultTests {
    let program: HostProgram

    init() throws { program = try HostProgram() }

    private var quarantineFile: String { "\(program.folder.path)/.local/state/pluginhost/quarantine.json" }

    /// Runs the program, which dies, and runs it again: then the culprit is quarantined and the other modules serve.
    private func expectBlame(
        _ file: String, _ step: String, others: [String], environment: [String: String] = [:],
        location: SourceLocation = #_sourceLocation
    ) throws {
        let dying = try program.run("list", environment: environment)
        #expect(dying.signal != 0 || !dying.output.contains(file), "\(dying.output)", sourceLocation: location)
        for _ in 1...2 {
            let next = try program.run("list", "--json", environment: environment)
            #expect(next.code == 0 && next.signal == 0, "\(next.errors)", sourceLocation: location)
            #expect(next.module(file)?["state"] == "quarantined", "\(next.output)", sourceLocation: location)
            let message = next.module(file)?["error"]?["message"]?.string ?? ""
            #expect(message.contains("during the \(step) of "), "\(message)", sourceLocation: location)
            for other in others {
                #expect(next.module(other)?["state"] == "active", "\(next.output)", sourceLocation: location)
            }
        }
        let quarantine = try String(contentsOfFile: quarantineFile, encoding: .utf8)
        #expect(!quarantine.contains("isSuspected"), "\(quarantine)", sourceLocation: location)
    }

    /// Builds modules that precede and follow the one that dies, and whose start is not over when it dies.
    private func buildOthers() throws {
        for name in ["Aaa", "Zzz"] {
            var module = CModule(name: name)
            module.hooks = ["init": "start_reply(call);", "didStart": ""]
            module.asyncHooks = ["init"]
            try module.build(into: program.plugins, as: "\(name).so")
        }
    }

    private static let thread = """
        static void *run(void *data) { (void)data; usleep(20000); DIE; return NULL; }
        static void later(void) { pthread_t t; pthread_create(&t, NULL, run, NULL); }
        """

    /// A module that dies in its own code at a given step of a start.
    private func dying(_ place: String, by end: String) -> CModule {
        var module = CModule(name: "Dying")
        switch place {
        case "constructor": module.code = "__attribute__((constructor)) static void begin(void) { \(end); }"
        case "entry": module.entry = "\(end);"
        case "activate": module.activate = "\(end);"
        case "setUp": module.setUp = "\(end);"
        case "init": module.hooks = ["init": "\(end);"]
        case "didStart": module.hooks = ["didStart": "\(end);"]
        default:
            // The later part of an asynchronous init, on its own thread.
            module.code = "#define DIE \(end)\n" + Self.thread
            module.hooks = ["init": "later();"]
            module.asyncHooks = ["init"]
        }
        return module
    }

    @Test func `A library beside a module that is quarantined, or does not start, is no failure`() throws {
        for (module, name) in [(dying("activate", by: "__builtin_trap()"), "Dying"), (refusing, "Refusing")] {
            let library = "lib\(name)-beside.so"
            let built = try CFixture.build(
                "int beside(void) { return 7; }", ["-Wl,-soname,\(library)"], name: library)
            try program.folder.copy(built, as: "plugins/\(library)")
            var module = module
            module.code = "int beside(void);"
            module.body = "beside();"
            try module.build(into: program.plugins, as: "\(name).so", [built, "-Wl,-rpath,$ORIGIN"])
        }
        #expect(try program.run("list").signal != 0)
        let next = try program.run("list", "--json")
        #expect(next.module("Dying.so")?["state"] == "quarantined", "\(next.output)")
        #expect(next.module("Refusing.so")?["state"] == "failed", "\(next.output)")
        for (name, owner) in [("Dying", "Dying.so"), ("Refusing", "Refusing")] {
            let library = next.module("lib\(name)-beside.so")
            #expect(library?["state"] == "library", "\(next.output)")
            #expect(library?["note"]?.string == "needed by \(owner)", "\(next.output)")
        }
    }

    private var refusing: CModule {
        var module = CModule(name: "Refusing")
        module.activate = "return 1;"
        return module
    }

    private static let steps = [
        "constructor": "opening", "entry": "entry", "activate": "activation", "setUp": "activation",
        "init": "activation", "didStart": "start", "init, later": "activation",
    ]

    /// Sanitizers define `_exit` themselves.
    private static let ends =
        ["__builtin_trap()", "exit(0)", "quick_exit(3)"] + (isSanitized ? [] : ["_exit(0)"])

    @Test(arguments: steps.keys.sorted(), ends)
    func `A module whose code ends the host during a start is quarantined the first time, and no other`(
        place: String, end: String
    ) throws {
        try buildOthers()
        try dying(place, by: end).build(into: program.plugins, as: "dying.so")
        try expectBlame("dying.so", Self.steps[place]!, others: ["Aaa.so", "Zzz.so"])
    }

    /// An exit waits for constructors, so a constructor that waits for the thread that exits would never end.
    private static let threads =
        ends.map { ("entry", $0) } + ends.filter { $0 != "exit(0)" }.map { ("opening", $0) }

    @Test(arguments: threads)
    func `A module is quarantined if its own thread ends the host before the module is known`(
        step: String, end: String
    ) throws {
        try buildOthers()
        let join = "pthread_t t; pthread_create(&t, NULL, run, NULL); pthread_join(t, NULL);"
        var module = CModule(name: "Dying")
        module.code = "static void *run(void *data) { (void)data; \(end); return NULL; }"
        if step == "entry" {
            module.entry = join
        } else {
            module.code += "__attribute__((constructor)) static void begin(void) { \(join) }"
        }
        try module.build(into: program.plugins, as: "dying.so")
        try expectBlame("dying.so", step, others: ["Aaa.so", "Zzz.so"])
    }

    @Test(.disabled(if: isSanitized, "Sanitizers make threads themselves."), arguments: ["pthread", "C11"])
    func `A thread that ends the host in the C library is attributed by its start function`(kind: String) throws {
        try buildOthers()
        var module = CModule(name: "Dying")
        module.code = """
            #include <threads.h>
            static void *run(void *data) { if (!data) abort(); return NULL; }
            static int run_c11(void *data) { if (!data) abort(); return 0; }
            """
        module.hooks = [
            "init": "pthread_t t; thrd_t c; (void)t, (void)c, (void)run, (void)run_c11;"
                + (kind == "C11" ? "thrd_create(&c, run_c11, NULL);" : "pthread_create(&t, NULL, run, NULL);")
        ]
        module.asyncHooks = ["init"]
        try module.build(into: program.plugins, as: "dying.so", ["-O2", "-fomit-frame-pointer"])
        try expectBlame("dying.so", "activation", others: ["Aaa.so", "Zzz.so"])
    }

    @Test func `The message says that a module has ended the host by an exit`() throws {
        let file = try CModule(entry: "exit(0);").build(into: program.plugins, as: "leaving.so")
        _ = try program.run("list")
        let error = try program.run("list", "--json").module("leaving.so")?["error"]?["message"]?.string ?? ""
        #expect(error.contains("was ended by exit, _exit or quick_exit during the entry of \(file)"), "\(error)")
    }

    @Test func `A module is not quarantined if a second signal ends the host during its code`() throws {
        let mark = try program.folder.file("mark")
        var module = CModule()
        module.code = """
            __attribute__((constructor)) static void interrupt(void) {
                if (access("\(mark)", F_OK) != 0) return;
                sigset_t set;
                sigemptyset(&set);
                sigaddset(&set, SIGTERM);
                pthread_sigmask(SIG_UNBLOCK, &set, NULL);
                for (int i = 0; i < 2; i++) pthread_kill(pthread_self(), SIGTERM);
            }
            """
        try module.build(into: program.plugins, as: "good.so")
        #expect(try program.run("run").code == 128 + SIGTERM)
        unlink(mark)
        let error = try program.run("list", "--json").module("good.so")?["error"]?["message"]?.string ?? ""
        #expect(error.contains("The host died during") && !error.contains("ended by exit"), "\(error)")
    }

    @Test func `A child that a module has forked may end in any way`() throws {
        var module = CModule()
        module.code = "#include <sys/wait.h>"
        module.activate = """
            for (int i = 0; i < 3; i++) {
                pid_t child = fork();
                if (child == 0) { if (i == 0) exit(0); if (i == 1) _exit(0); __builtin_trap(); }
                waitpid(child, NULL, 0);
            }
            kill(getpid(), SIGKILL);
            """
        try module.build(into: program.plugins, as: "forking.so")
        #expect(try program.run("list").signal == SIGKILL)
        let quarantine = try program.run("list", "--json").module("forking.so")
        #expect(quarantine?["error"]?["message"]?.string?.contains("died during") == true, "\(quarantine ?? nil)")
        let file = try String(contentsOfFile: quarantineFile, encoding: .utf8)
        #expect(file.contains("isSuspected"), "\(file)")
    }

    @Test func `A factory that dies while another module starts is blamed, not its caller`() throws {
        var maker = CModule(name: "Maker")
        maker.manifest = """
            {"name": "Maker", "version": "1.0.0",
             "targets": [{"name": "Maker", "instance": "shared", "actions": [{"name": "answer"}]}]}
            """
        maker.code = """
            static void *make(void *data, const plugin_call *call) { (void)data, (void)call; __builtin_trap(); }
            static plugin_factory made[] = {{{"Maker", 5}, make, NULL, NULL}};
            """
        (maker.factories, maker.factoryCount) = ("made", "1")
        try maker.build(into: program.plugins, as: "maker.so")
        var caller = CModule(name: "Caller")
        caller.moreManifest = #""requires": [{"module": "Maker"}], "#
        caller.hooks = [
            "init": """
            plugin_request request = {.size = sizeof request, .target = PLUGIN_STRING("Maker"),
                .action = PLUGIN_STRING("answer")};
            host->perform(host, call->token, &request, pass_on, (void *)call->token);
            """
        ]
        try caller.build(into: program.plugins, as: "caller.so")
        #expect(try program.run("list").signal != 0)
        let next = try program.run("list", "--json")
        #expect(next.module("maker.so")?["state"] == "quarantined", "\(next.output)")
        #expect(next.module("caller.so")?["state"] == "waiting", "\(next.output)")
    }

    @Test func `A subscriber that dies of a sticky event of the same start is blamed, not the poster`() throws {
        var poster = CModule(name: "Poster")
        poster.code = "static void ignore(void *data, const plugin_value *value, const plugin_error *error) {}"
        poster.hooks = [
            "init": """
            plugin_request request = {.size = sizeof request, .address = PLUGIN_ADDRESS_EVENT,
                .flags = PLUGIN_REQUEST_STICKY, .target = PLUGIN_STRING("shop.sold")};
            host->perform(host, call->token, &request, ignore, NULL);
            """
        ]
        try poster.build(into: program.plugins, as: "poster.so")
        var subscriber = CModule(name: "Subscriber")
        subscriber.events = [("shop.sold", "", "__builtin_trap();")]
        try subscriber.build(into: program.plugins, as: "subscriber.so")
        try expectBlame("subscriber.so", "start", others: ["poster.so"])
    }

    @Test func `A module is quarantined if its tearDown dies after its start has failed`() throws {
        var module = CModule(name: "Dying", tearDown: "__builtin_trap();")
        module.setUp = ""
        module.hooks = ["init": "refuse(call, \"no\"); return;"]
        try module.build(into: program.plugins, as: "dying.so")
        try CModule().build(into: program.plugins, as: "good.so")
        try expectBlame("dying.so", "activation", others: ["good.so"])
    }

    @Test func `A module that has started is not quarantined if it crashes during the start of another one`() throws {
        let gate = "\(program.folder.path)/gate"
        var first = CModule(name: "First")
        first.code = """
            #define DIE while (access("\(gate)", F_OK) != 0) usleep(1000); __builtin_trap()
            """ + "\n" + Self.thread
        first.hooks = ["didStart": "later();"]
        try first.build(into: program.plugins, as: "first.so")
        let running = try program.start("run", "--json")
        #expect(eventually { running.output.contains("\"watching\"") })
        let hang = try program.folder.file("hang")
        var second = CModule(name: "Second")
        second.activate = """
            if (access("\(hang)", F_OK) == 0) {
                note("\(gate)", "");
                for (int i = 0; i < 1000; i++) usleep(10000);
            }
            """
        try second.build(into: program.plugins, as: "second.so")
        let outcome = try running.wait()
        #expect(outcome.signal != 0 && outcome.errors.contains("in the code of First"), "\(outcome.errors)")
        unlink(gate)
        unlink(hang)
        let next = try program.run("list", "--json")
        #expect(next.module("first.so")?["state"] == "active", "\(next.output)")
        #expect(next.module("second.so")?["state"] == "active", "\(next.output)")
    }

    // MARK: Descriptions

    private static let wildEntries: [(String, String)] = [
        ("return (const plugin_module *)8;", "the description"),
        ("return (const plugin_module *)((char *)&module + 1);", "the description"),
        ("return (const plugin_module *)0x7fffdeadb000;", "the description"),
        ("module.manifest.bytes = (const char *)8;", "the manifest"),
        ("module.functions = (const plugin_function *)8;", "the table of functions"),
        ("module.factories = (const plugin_factory *)16; module.factory_count = 2;", "the table of factories"),
        ("module.toolchain = (plugin_string){(const char *)8, 5};", "toolchain"),
        (
            """
            static plugin_function wild[1]; wild[0] = functions[0]; wild[0].name.bytes = (const char *)8;
            module.functions = wild;
            """, "functions[0].name"
        ),
    ]

    @Test(arguments: wildEntries)
    func `A description that points to unreadable memory is refused, and the host survives`(
        entry: String, field: String
    ) throws {
        try CModule(name: "Wild", entry: entry).build(into: program.plugins, as: "wild.so")
        try CModule().build(into: program.plugins, as: "good.so")
        let outcome = try program.run("list", "--json")
        #expect(outcome.signal == 0 && outcome.module("good.so")?["state"] == "active", "\(outcome.errors)")
        let error = outcome.module("wild.so")?["error"]
        #expect(error?["code"] == "invalidDescription", "\(outcome.output)")
        #expect(error?["message"]?.string?.contains(field) == true, "\(outcome.output)")
    }

    // MARK: Threads of modules

    static let makers = [
        "pthread_t t; pthread_create(&t, NULL, run, NULL); pthread_join(t, NULL);",
        """
        pthread_t t; pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 1 << 20);
        pthread_create(&t, &a, run, NULL); pthread_join(t, NULL);
        """,
        "thrd_t t; thrd_create(&t, run_c11, NULL); thrd_join(t, NULL);",
    ]

    @Test(.disabled(if: isSanitized, "Sanitizers make threads themselves."), arguments: makers)
    func `A stack overflow on a thread that a module has created is reported with the module`(maker: String) throws {
        var module = CModule(name: "Crashing", version: "1.2.3")
        module.code = """
            #include <threads.h>
            static volatile int depth;
            static __attribute__((noinline)) int dive(int n) { volatile char room[256]; room[0] = (char)n;
                depth = n; return dive(n + 1) + room[0]; }
            static void *run(void *data) { (void)data; dive(0); return NULL; }
            static int run_c11(void *data) { run(data); return 0; }
            static void *(*const unused)(void *) = run;
            """
        module.body = "(void)unused; (void)run_c11; \(maker)"
        try module.build(into: program.plugins, as: "crashing.so")
        let outcome = try program.run("call", "Crashing", "answer")
        #expect(outcome.signal == SIGSEGV)
        #expect(outcome.errors.contains("in the code of Crashing 1.2.3 ("), "\(outcome.errors)")
    }

    // MARK: The journal's own folder

    @Test func `A full state folder is reported at the start, and the modules are still loaded`() throws {
        let faults = try Faults()
        try CModule().build(into: program.plugins, as: "good.so")
        try faults.begin(.full, "\(program.folder.path)/.local/state")
        let outcome = try program.run("list", "--json", environment: faults.environment)
        #expect(outcome.module("good.so")?["state"] == "active", "\(outcome.output)")
        #expect(outcome.errors.contains("Crashes of modules will not be remembered"), "\(outcome.errors)")
        #expect(outcome.errors.contains("No space left on device"), "\(outcome.errors)")
    }

    // MARK: Memory maps

    @Test func `When a module has used up the memory maps, the host refuses files, names the limit, and continues`()
        throws
    {
        var hungry = CModule(name: "Hungry")
        hungry.code = """
            #include <sys/mman.h>
            static void eat(void) {
                int limit = 0, used = 0, byte;
                FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
                if (!file || fscanf(file, "%d", &limit) != 1) return;
                fclose(file);
                file = fopen("/proc/self/maps", "r");
                while ((byte = getc(file)) != EOF) used += byte == '\\n';
                fclose(file);
                /* Adjacent pages of different protection are separate maps. */
                long count = limit / 100 * 93 - used;
                char *pages = mmap(NULL, (size_t)count * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                for (long i = 0; i < count; i += 2) mprotect(pages + i * 4096, 4096, PROT_NONE);
            }
            """
        hungry.activate = "eat();"
        try hungry.build(into: program.plugins, as: "hungry.so")
        let running = try program.start("run", "--json")
        #expect(eventually { running.output.contains("\"watching\"") })
        // The host counts the maps again after a second.
        sleep(2)
        try CModule(name: "Late").build(into: program.plugins, as: "late.so")
        #expect(
            eventually { running.output.contains("outOfResources") && running.output.contains("late.so is not opened") }
        )
        #expect((running.output + running.errors).contains("vm.max_map_count"), "\(running.output) \(running.errors)")
        #expect(eventually { running.errors.contains("From 90 percent on, no more modules are opened") })
        running.signal(SIGTERM)
        let outcome = try running.wait()
        #expect(outcome.signal == 0 && outcome.code == 0, "\(outcome.errors)")
    }
}
