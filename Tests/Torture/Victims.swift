import Foundation

/// Modules made from a library that is compiled once, by patching the name, the version, the manifest and the misdeed.
struct Victims {
    private let folder: Folder
    private let plain: [UInt8]
    private let described: [UInt8]

    /// Where a misdeed can strike. `V/act` is an action, `!torture` an event.
    static let places = [
        "constructor", "entry", "description", "manifest", "functions", "activate", "setUp", "init", "didStart", "act",
        "event", "willStop", "tearDown", "deactivate", "destructor",
    ]
    static let deeds = [
        "segv", "abort", "trap", "exit", "_exit", "hang", "spin", "overflow", "thread", "stack-of-thread", "refuse",
        "silence", "threads", "files", "garbage",
    ]

    init(root: String) throws {
        folder = try Folder("victims")
        plain = try compile(Self.source, ["-DPLAIN"], root: root, in: folder)
        described = try compile(Self.source, ["-DDESCRIBED"], root: root, in: folder)
    }

    func remove() { folder.remove() }

    /// A module that works except for its misdeed.
    ///
    /// - Parameters:
    ///   - number: 0 to 99, part of its name, `Victim07`.
    ///   - version: 0 to 999, part of its version, `1.0.007`.
    func module(_ number: Int, version: Int = 0, place: String = "", deed: String = "") -> [UInt8] {
        var bytes = plain
        func two(_ number: Int, _ count: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: count - digits.count) + digits
        }
        bytes.patch("Victim00", with: "Victim" + two(number, 2))
        // The result has no leading zero, since versions of three digits begin at 100.
        bytes.patch("1.0.100", with: "1.0." + String(100 + version))
        bytes.patch("PLACE@@@@@@@@@@@", with: padded(place))
        bytes.patch("DEED@@@@@@@@@@@@", with: padded(deed))
        return bytes
    }

    /// A module with the given manifest, of at most 48 KiB, whose only function is `V/act`.
    func module(manifest: [UInt8]) -> [UInt8] {
        var bytes = described
        let size = UInt32(min(manifest.count, 48 << 10))
        var text = Array(manifest.prefix(48 << 10))
        text = withUnsafeBytes(of: size.littleEndian) { Array($0) } + text
        let marker = Array("@@MANIFEST@@".utf8)
        if let start = bytes.first(of: marker) { bytes.replaceSubrange(start..<(start + text.count), with: text) }
        return bytes
    }

    /// The manifest of a module that works.
    static let manifest =
        #"{"name":"Mine","version":"1.0.0","summary":"text","level":"basic","priority":3,"#
        + #""requires":[{"module":"Other","version":">=1.0 <2.0 || ^3.1","optional":true}],"#
        + #""targets":[{"name":"V","actions":[{"name":"act","parameters":[{"name":"id","type":"string"},"#
        + #"{"name":"n","type":"int","default":1}],"remote":true}]}],"#
        + #""routes":[{"pattern":"app://shop/:id(\\d{1,4}|[a-c]+){/x}?","action":"V/act","defaults":{"n":2}}],"#
        + #""services":[{"name":"S","version":"1.2.3","target":"V"}]}"#

    private func padded(_ text: String) -> String { text + String(repeating: "\0", count: 16 - text.utf8.count) }

    private static let source = #"""
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <pthread.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        #include "plugin_abi.h"
        #define TEXT(literal) {literal, sizeof(literal) - 1}
        static volatile char place[17] = "PLACE@@@@@@@@@@@", chosen[17] = "DEED@@@@@@@@@@@@";
        static const plugin_host *host;

        static int is(const volatile char *text, const char *word) {
            size_t i = 0;
            for (; word[i] && text[i] == word[i]; i++) {}
            return text[i] == word[i];
        }
        static int deep(volatile int *from) {
            volatile int page[1024];
            if (*from < 0) return 0;
            page[0] = *from + 1;
            return deep(page) + page[0];
        }
        static void *crash(void *unused) { (void)unused; *(volatile int *)8 = 1; return NULL; }
        static void *overflow(void *unused) { volatile int zero = 0; (void)unused; deep(&zero); return NULL; }
        static void *sleep_on(void *unused) { (void)unused; for (;;) pause(); return NULL; }
        static void on_thread(void *(*body)(void *)) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, body, NULL) == 0) pthread_join(thread, NULL);
        }
        static int fails;
        static void at(const char *where) {
            if (!is(place, where)) return;
            if (is(chosen, "segv")) crash(NULL);
            if (is(chosen, "abort")) abort();
            if (is(chosen, "trap")) __builtin_trap();
            if (is(chosen, "exit")) exit(0);
            if (is(chosen, "_exit")) _exit(0);
            if (is(chosen, "hang")) sleep_on(NULL);
            if (is(chosen, "spin")) for (volatile int i = 0;; i++) {}
            if (is(chosen, "overflow")) overflow(NULL);
            if (is(chosen, "thread")) on_thread(crash);
            if (is(chosen, "stack-of-thread")) on_thread(overflow);
            if (is(chosen, "refuse")) fails = 1;
            if (is(chosen, "silence")) fails = 2;
            if (is(chosen, "threads")) {
                pthread_t thread;
                for (int i = 0; i < 2000 && pthread_create(&thread, NULL, sleep_on, NULL) == 0; i++) pthread_detach(thread);
            }
            if (is(chosen, "files")) for (int i = 0; i < 2000 && open("/dev/null", O_RDONLY) >= 0; i++) {}
        }
        __attribute__((constructor)) static void constructor(void) { at("constructor"); }
        __attribute__((destructor)) static void destructor(void) { at("destructor"); }

        static void reply(const plugin_call *call, const char *where) {
            fails = 0;
            at(where);
            plugin_value value = plugin_value_int(42);
            plugin_value garbage = {.kind = 99, .count = 7};
            if (fails == 1) plugin_fail(host, call, "refused", "as it was told");
            if (fails == 0) host->resolve(host, call->token, is(place, where) && is(chosen, "garbage") ? &garbage : &value);
            fails = 0;
        }
        #define FUNCTION(name) \
            static void do_##name(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) { \
                (void)data, (void)arguments, (void)count; \
                reply(call, #name); \
            }
        FUNCTION(act) FUNCTION(event)
        FUNCTION(setUp) FUNCTION(init) FUNCTION(didStart) FUNCTION(willStop) FUNCTION(tearDown)

        static int32_t activate(void *data, const plugin_host *table) {
            (void)data;
            host = table;
            at("activate");
            return fails;
        }
        static void deactivate(void *data) { (void)data; at("deactivate"); }

        #if defined(PLAIN)
        static const char manifest[] =
            "{\"name\":\"Victim00\",\"version\":\"1.0.100\",\"targets\":[{\"name\":\"Victim00\",\"actions\":[{\"name\":\"act\"}]}],"
            "\"hooks\":[{\"name\":\"setUp\"},{\"name\":\"init\"},{\"name\":\"didStart\"},{\"name\":\"willStop\"},{\"name\":\"tearDown\"}],"
            "\"events\":[{\"name\":\"torture\"}]}";
        static const plugin_function functions[] = {
            {TEXT("Victim00/act"), do_act, NULL}, {TEXT("!torture"), do_event, NULL}, {TEXT("@setUp"), do_setUp, NULL},
            {TEXT("@init"), do_init, NULL}, {TEXT("@didStart"), do_didStart, NULL},
            {TEXT("@willStop"), do_willStop, NULL}, {TEXT("@tearDown"), do_tearDown, NULL}};
        #else
        static volatile struct { char marker[64 << 10]; } described = {"@@MANIFEST@@"};
        static const plugin_function functions[] = {{TEXT("V/act"), do_act, NULL}};
        #endif

        PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) {
            static plugin_module module = {
                .magic = PLUGIN_ABI_MAGIC, .size = sizeof(plugin_module), .abi_major = PLUGIN_ABI_MAJOR,
                .abi_minor = PLUGIN_ABI_MINOR, .functions = functions,
                .function_count = sizeof functions / sizeof *functions, .activate = activate, .deactivate = deactivate};
        #if defined(PLAIN)
            module.manifest = (plugin_string){manifest, sizeof manifest - 1};
        #else
            uint32_t size = 0;
            for (unsigned i = 0; i < sizeof size; i++) size |= (uint32_t)(uint8_t)described.marker[i] << 8 * i;
            module.manifest = (plugin_string){(const char *)described.marker + sizeof size, size};
            (void)do_event, (void)do_setUp, (void)do_init, (void)do_didStart, (void)do_willStop, (void)do_tearDown;
        #endif
            at("entry");
            if (is(place, "description")) return (const plugin_module *)8;
            if (is(place, "manifest")) module.manifest.bytes = (const char *)8;
            if (is(place, "functions")) module.functions = (const plugin_function *)8;
            return &module;
        }
        """#
}
