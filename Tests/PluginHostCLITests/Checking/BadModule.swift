import Foundation
import Testing

@testable import TestSupport

/// A module in C that breaks one rule, and the check that must catch it.
struct BadModule: Sendable, CustomTestStringConvertible {
    let rule: String
    let check: String
    let isFailure: Bool
    /// Words that the finding must contain.
    let words: [String]
    /// The time in seconds that each check may take: short for a module that never ends.
    var deadline = 120
    /// Builds the library in a folder or elsewhere, and returns its path.
    let make: @Sendable (_ folder: TemporaryFolder) throws -> String

    var testDescription: String { "\(check): \(rule)" }

    init(
        _ rule: String, _ check: String, isFailure: Bool = true, _ words: String..., flags: [String] = [],
        name: String = "libbad.so", _ change: @escaping @Sendable (inout CModule) -> Void
    ) {
        (self.rule, self.check, self.isFailure, self.words) = (rule, check, isFailure, words)
        make = { folder in
            var module = CModule(name: "Bad")
            change(&module)
            return try folder.copy(module.build(flags), as: name)
        }
    }

    init(
        _ rule: String, _ check: String, isFailure: Bool = true, _ words: String...,
        making module: @escaping @Sendable () -> CModule
    ) {
        (self.rule, self.check, self.isFailure, self.words) = (rule, check, isFailure, words)
        make = { folder in try folder.copy(module().build(), as: "libbad.so") }
    }

    /// Makes a module that needs a library which is missing when the module is loaded, or exists only on this machine.
    init(_ rule: String, _ check: String, isFailure: Bool = true, _ words: String..., needing library: String) {
        (self.rule, self.check, self.isFailure, self.words) = (rule, check, isFailure, words)
        make = { folder in
            let lost = try CFixture.build("int lost(void) { return 1; }", ["-Wl,-soname,\(library)"], name: library)
            var module = CModule(name: "Bad")
            module.code = "int lost(void);"
            module.body = "lost();"
            let place = (lost as NSString).deletingLastPathComponent
            return try folder.copy(
                module.build([lost] + (isFailure ? [] : ["-Wl,-rpath,\(place)"])), as: "libbad.so")
        }
    }

    /// Returns a copy with a deadline for each check.
    private func within(_ seconds: Int) -> BadModule {
        var copy = self
        copy.deadline = seconds
        return copy
    }

    /// A manifest with the target `Bad` and the given actions.
    private static func manifest(_ actions: String, more: String = "") -> String {
        """
        {"name": "Bad", "version": "1.0.0", \(more)"targets": [{"name": "Bad", "actions": [{"name": "answer"}, \(actions)]}]}
        """
    }

    static let all: [BadModule] = [
        // Its description and manifest.
        BadModule("no description", "description", "null") { $0.entry = "return NULL;" },
        BadModule("another magic number", "description", "PLUGIN_ABI_MAGIC") { $0.magic = "7" },
        BadModule("a crash in the entry function", "description", "SIGSEGV") { $0.entry = "*(volatile int *)8 = 1;" },
        BadModule("an entry function that hangs", "description", "--timeout") { $0.entry = "for (;;) usleep(1000);" }
            .within(15),
        BadModule("an entry function that exits", "description", "exit code 3") { $0.entry = "_exit(3);" },
        BadModule("a manifest that is not JSON", "manifest", "JSON") { $0.manifest = "{" },
        BadModule("an unknown key in the manifest", "manifest", "remotee") {
            $0.manifest = manifest("{\"name\": \"a\", \"remotee\": true}")
        },
        BadModule("a function that is missing", "manifest", "there is no function") {
            $0.manifest = manifest("{\"name\": \"missing\"}")
        },
        // Its libraries, symbols and names.
        BadModule("a library that does not exist", "libraries", "liblost.so", needing: "liblost.so"),
        BadModule(
            "a library that is on this machine by chance", "libraries", isFailure: false, "libchance.so", "$ORIGIN",
            needing: "libchance.so"),
        BadModule("a function that the program has, too", "symbols", "setlocale", "static") {
            $0.code = "char *setlocale(int category, const char *locale) { return (char *)locale + category; }"
        },
        BadModule("a function that others may have, too", "symbols", isFailure: false, "do_it_all") {
            $0.code = "int do_it_all(void) { return 1; }"
        },
        BadModule("a file that no host considers", "names", ".so", name: "libbad.so.1") { _ in },
        BadModule("names that differ only in case", "names", isFailure: false, "fetch", "Fetch") {
            $0.actions = [("fetch", "reply(call, \"\");"), ("Fetch", "reply(call, \"\");")]
        },
        BadModule("a name that is not an identifier", "names", isFailure: false, "fetch-it") {
            $0.manifest = manifest("{\"name\": \"fetch-it\"}")
            $0.code = fetchIt
            $0.moreFunctions = "{TEXT(\"Bad/fetch-it\"), fetch_it, NULL},"
        },
        BadModule("a route with a group that its action does not take", "routes", "“app://bad/:id” is dead", "“id”") {
            $0.moreManifest = #""routes": [{"pattern": "app://bad/:id", "action": "Bad/answer"}], "#
        },
        // Its start and end.
        BadModule("an activation that fails", "lifecycle", "activate") { $0.activate = "return 7;" },
        BadModule("a crash on activation", "lifecycle", "SIGABRT") { $0.activate = "abort();" },
        BadModule("a resource that is not released", "lifecycle", "second time", "tearDown") {
            // The environment stands for any resource that a process has once, such as a port.
            $0.activate = "if (getenv(\"BAD_MODULE_USED\")) return 1; setenv(\"BAD_MODULE_USED\", \"1\", 1);"
        },
        BadModule("files that stay open", "lifecycle", isFailure: false, "open") {
            $0.activate = "if (open(\"/dev/null\", O_RDONLY) < 0) return 1;"
        },
        BadModule("a tearDown that crashes", "lifecycle", "SIGSEGV") { $0.tearDown = "*(volatile int *)8 = 1;" },
        // Its actions.
        BadModule("a notFound that crashes", "unknown", "SIGSEGV", "Bad/unknown") {
            $0.manifest = manifest(
                """
                {"name": "notFound", "parameters": [{"name": "action", "type": "string", "required": true},
                  {"name": "parameters", "type": "map", "required": true}]}
                """)
            $0.code = read("*(volatile int *)8 = 1; reply(call, \"\");")
            $0.moreFunctions = "{TEXT(\"Bad/notFound\"), read_it, NULL},"
        },
        BadModule("a notFound that cannot be called", "unknown", "must declare") {
            $0.actions = [("notFound", "reply(call, \"\");")]
        },
        BadModule("a value of any type that is taken for a text", "parameters", "SIGSEGV", "Bad/read") {
            $0.manifest = manifest(parameter("any"))
            $0.code = read(
                "reply_length(call, (const char *)(arguments[0].kind == PLUGIN_KIND_NULL ? 8 : 0));", any: true)
            $0.moreFunctions = "{TEXT(\"Bad/read\"), read_it, NULL},"
        },
        BadModule("a number that is taken for an index", "hostile", "SIGSEGV", "Bad/read") {
            $0.manifest = manifest(parameter("int"))
            $0.code = read("static char some[64]; ((volatile char *)some)[arguments[0].as.integer] = 1; done(call);")
            $0.moreFunctions = "{TEXT(\"Bad/read\"), read_it, NULL},"
        },
        BadModule("a loop that a parameter makes endless", "hostile", "did not end", "Bad/read") {
            $0.manifest = manifest(parameter("int"))
            $0.code = read("for (int64_t i = 0; i < arguments[0].as.integer; i++) usleep(100); done(call);")
            $0.moreFunctions = "{TEXT(\"Bad/read\"), read_it, NULL},"
        }
        .within(15),
        BadModule("an action that bears one thread only", "concurrent", "SIGABRT", "serial") {
            $0.code = "static int busy;"
            $0.body = "if (__atomic_exchange_n(&busy, 1, __ATOMIC_SEQ_CST)) abort(); usleep(2000); busy = 0;"
        },
        BadModule("a reply buffer that threads share", "concurrent", "Bad/echo replies", "4 threads", "serial") {
            $0.manifest = manifest(echo)
            $0.code = read(
                "static char buffer[512]; snprintf(buffer, 512, \"<%.*s>\", (int)arguments->count, arguments->as.string);"
                    + "reply(call, buffer);")
            $0.moreFunctions = "{TEXT(\"Bad/echo\"), read_it, NULL},"
        },
        BadModule("a realloc that nothing guards", "concurrent", "4 threads", "serial") {
            $0.manifest = manifest(echo)
            $0.code = read(
                """
                static char *buffer;
                buffer = realloc(buffer, arguments->count + 1);
                memcpy(buffer, arguments->as.string, arguments->count);
                buffer[arguments->count] = 0;
                reply(call, buffer);
                """)
            $0.moreFunctions = "{TEXT(\"Bad/echo\"), read_it, NULL},"
        },
        BadModule("a call without a reply", "replies", "Bad/silent", "Answer every call", "\"async\": true") {
            $0.actions = [("silent", "")]
        },
        BadModule("an asynchronous call without a reply", "replies", "Bad/read", "did not reply") {
            $0.manifest = manifest("{\"name\": \"read\", \"async\": true}")
            $0.code = read("(void)call;")
            $0.moreFunctions = "{TEXT(\"Bad/read\"), read_it, NULL},"
        }
        .within(15),
        BadModule("two replies", "replies", "Bad/twice", "twice") {
            $0.actions = [("twice", "reply(call, \"1\"); reply(call, \"2\");")]
        },
        BadModule("a second reply from another thread", "replies", "Bad/late that is over", "answered once") {
            $0.actions = [("late", "start_reply(call); reply(call, \"1\");")]
        },
        BadModule("a result of a type other than declared", "replies", "Bad/read", "declared to return int") {
            $0.manifest = manifest("{\"name\": \"read\", \"result\": \"int\"}")
            $0.code = read("reply(call, \"text\");")
            $0.moreFunctions = "{TEXT(\"Bad/read\"), read_it, NULL},"
        },
        BadModule("an event that is answered twice", "replies", "the event told") {
            $0.events = [("told", "", "reply(call, \"1\");")]
        },
        BadModule(
            "an object that crashes", "replies", "SIGSEGV", "Thing#look with",
            making: {
                thing("*(volatile int *)8 = 1; reply_int(call->token, 1);")
            }),
        BadModule(
            "an object that crashes for some numbers", "hostile", "SIGSEGV", "Thing#look with",
            making: {
                thing(
                    "static char some[64]; ((volatile char *)some)[arguments[0].as.integer] = 1; reply_int(call->token, 1);",
                    parameters: ["at": "int"])
            }),
        BadModule(
            "an object that tolerates only one thread", "concurrent", "SIGABRT", "serial",
            making: {
                thing(
                    """
                    static int busy;
                    if (__atomic_exchange_n(&busy, 1, __ATOMIC_SEQ_CST)) abort();
                    usleep(2000);
                    busy = 0;
                    reply_int(call->token, 1);
                    """)
            }),
        BadModule(
            "an object's result of an undeclared type", "replies", "Thing#look is declared to return string",
            making: {
                thing("reply_int(call->token, 1);", manifest: "\"result\": \"string\",")
            }),
        BadModule(
            "an object that replies twice", "replies", "Thing#look replied twice",
            making: {
                thing("reply_int(call->token, 1); reply_int(call->token, 2);")
            }),
        BadModule("words on standard output", "lifecycle", isFailure: false, "standard output", "hello") {
            $0.activate = "puts(\"hello\");"
        },
        BadModule("a text that is no UTF-8", "replies", "UTF-8") {
            $0.actions = [("garbled", "reply(call, \"\\xFF\");")]
        },
        BadModule("an error without a message", "replies", isFailure: false, "no message") {
            $0.actions = [("mute", "refuse(call, \"\");")]
        },
        BadModule("an object of a type that is not declared", "replies", "the type “Thing”", "Declare it") {
            $0.code = "static void gone(void *instance) { (void)instance; }"
            $0.body = "host->object_create(host, text(\"Thing\"), NULL, gone);"
        },
        BadModule("a description without an activate", "lifecycle", "no 'activate'") {
            $0.entry = "module.activate = NULL;"
        },
        BadModule("an argument that is kept", "arguments", "SIGSEGV", "Bad/echo", "borrowed until the action returns") {
            $0.manifest = manifest(echo)
            $0.code = read(
                """
                static const char *kept;
                static uint32_t length;
                char copy[512];
                if (kept) memcpy(copy, kept, length);
                kept = arguments->as.string;
                length = arguments->count < 512 ? arguments->count : 0;
                plugin_value value = plugin_value_int(kept ? copy[0] == 1 : 0);
                host->resolve(host, call->token, &value);
                """)
            $0.moreFunctions = "{TEXT(\"Bad/echo\"), read_it, NULL},"
        },
        BadModule("state that resume forgets", "replacement", "Bad/total replies", "before a replacement", "suspend") {
            $0.code = "static _Atomic int total;"
            $0.actions = [
                ("add", "total = 7; reply(call, \"\");"),
                ("total", "reply(call, total == 7 ? \"seven\" : \"nothing\");"),
            ]
            $0.hooks = ["suspend": "", "resume": ""]
        },
        BadModule("a copy that cannot start beside the old one", "replacement", "not replaced", "side by side") {
            $0.activate = "if (getenv(\"BAD_MODULE_RUNS\")) return 1; setenv(\"BAD_MODULE_RUNS\", \"1\", 1);"
            $0.tearDown = "unsetenv(\"BAD_MODULE_RUNS\");"
        },
        BadModule(
            "objects that are never released", "objects", "object_create",
            making: {
                thing("reply_int(call->token, 1);", release: "")
            }),
    ]

    // MARK: Pieces

    private static let fetchIt = """
        static void fetch_it(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
            (void)data, (void)arguments, (void)count;
            reply(call, "");
        }
        """

    private static let echo =
        "{\"name\": \"echo\", \"parameters\": [{\"name\": \"text\", \"type\": \"string\", \"required\": true}]}"

    private static func parameter(_ type: String) -> String {
        "{\"name\": \"read\", \"parameters\": [{\"name\": \"value\", \"type\": \"\(type)\", \"required\": true}]}"
    }

    private static func read(_ body: String, any: Bool = false) -> String {
        """
        static inline void done(const plugin_call *call) { reply(call, ""); }
        static inline void reply_length(const plugin_call *call, const char *text) {
            if (text && ((volatile const char *)text)[0]) reply(call, "full"); else reply(call, "");
        }
        static void read_it(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
            (void)data, (void)arguments, (void)count;
            \(body)
        }
        """
    }

    /// A module with an action that returns an object with one action, `look`.
    private static func thing(
        _ look: String, manifest: String = "", parameters: KeyValuePairs<String, String> = [:],
        release: String = "host->object_release(host, thing);"
    ) -> CModule {
        CModule(
            name: "Bad",
            code: """
                #include <stdlib.h>
                #include <unistd.h>
                static void gone(void *instance) { (void)instance; }
                static int one;
                """,
            targets: [
                .init(
                    name: "Bad",
                    actions: [
                        .init(
                            name: "make",
                            body: """
                                plugin_object thing = host->object_create(host, text("Thing"), &one, gone);
                                reply_value(call->token, plugin_value_object(thing));
                                \(release)
                                """)
                    ])
            ],
            types: [("Thing", [.init(name: "look", manifest: manifest, parameters: parameters, body: look)])])
    }
}
