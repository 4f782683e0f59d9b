import Foundation

/// Two modules: one with actions that take some time, and one whose threads call these without pause, and compare the
/// outcome of each call with what was executed. Both use shared memory, a file of ``Traffic``.
struct TrafficModules {
    /// The content of the shared memory, as indexes of 64-bit words.
    enum Word: Int, CaseIterable {
        /// Set to end the threads; the number of threads that have not ended.
        case isOver, running
        /// The process and the version of the module that last executed a call.
        case process, version
        /// The process and the version of the module that was last activated.
        case newProcess, newVersion
        /// Whether calls may end with `moduleCrashed`, and when the process was last killed, on CLOCK_MONOTONIC.
        case crashes, killedAt
        /// The number of wrong outcomes; the text about the first one begins at `text`.
        case wrong
        /// The number of calls of other modules.
        case others
        /// The number of errors of calls that the module had not begun to execute.
        case notBegun
        /// The number of times in `delays`: each from the end of a process to the error of a call, in nanoseconds.
        case delayed
        /// The first of the words of each caller, see ``OfCaller``.
        case callers = 32
        case text = 64
        case delays = 128
    }

    /// Calls and errors, and how many calls the module has begun and ended.
    enum OfCaller: Int, CaseIterable { case calls, errors, begun, ended, count }

    static let callers = 4
    static let words = 65536

    private let busy: [UInt8]
    private let caller: [UInt8]

    init(root: String) throws {
        let folder = try Folder("traffic")
        defer { folder.remove() }
        let constants =
            Word.allCases.map { "-DWORD_\($0)=\($0.rawValue)" } + OfCaller.allCases.map { "-DOF_\($0)=\($0.rawValue)" }
            + ["-DCALLERS=\(Self.callers)", "-DWORDS=\(Self.words)"]
        busy = try compile(Self.source, constants + ["-DBUSY"], root: root, in: folder)
        caller = try compile(Self.source, constants, root: root, in: folder)
    }

    /// The module `Busy` with the version `1.0.NUMBER`, 100 to 999.
    func busy(version: Int, memory: String) -> [UInt8] {
        precondition(100...999 ~= version)
        var bytes = patched(busy, memory)
        bytes.patch("1.0.100", with: "1.0.\(version)")
        return bytes
    }

    func caller(memory: String) -> [UInt8] { patched(caller, memory) }

    private func patched(_ module: [UInt8], _ memory: String) -> [UInt8] {
        let size = 256
        precondition(memory.utf8.count < size)
        var bytes = module
        guard let start = bytes.first(of: Array("@@MEMORY@@".utf8)) else { preconditionFailure("There is no place.") }
        let path = Array(memory.utf8) + [UInt8](repeating: 0, count: size - memory.utf8.count)
        bytes.replaceSubrange(start..<(start + size), with: path)
        return bytes
    }

    private static let source = #"""
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <pthread.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <time.h>
        #include <unistd.h>
        #include "plugin_abi.h"
        #define FUNCTION(name) \
            static void name(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count)
        static volatile struct { char bytes[256]; } path = {"@@MEMORY@@"};
        static const plugin_host *host;
        static int64_t *words;

        static int64_t get(int word) { return __atomic_load_n(&words[word], __ATOMIC_SEQ_CST); }
        static void set(int word, int64_t value) { __atomic_store_n(&words[word], value, __ATOMIC_SEQ_CST); }
        static int64_t add(int word, int64_t value) { return __atomic_add_fetch(&words[word], value, __ATOMIC_SEQ_CST); }
        #if defined(BUSY)
        static const volatile char number[] = "1.0.100";
        static int64_t own_version(void) {
            return (number[4] - '0') * 100 + (number[5] - '0') * 10 + number[6] - '0';
        }
        #endif
        static int of(int64_t caller, int what) { return WORD_callers + (int)caller * OF_count + what; }

        static int32_t activate(void *data, const plugin_host *table) {
            (void)data;
            host = table;
            int file = open((const char *)path.bytes, O_RDWR | O_CLOEXEC);
            words = mmap(NULL, WORDS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            close(file);
            if (words == MAP_FAILED) return 1;
        #if defined(BUSY)
            set(WORD_newProcess, getpid());
            set(WORD_newVersion, own_version());
        #endif
            return 0;
        }

        #if defined(BUSY)
        /* Notes which version executes calls; a version that is being replaced may still do so. */
        static void begin(int64_t caller) {
            int64_t own = own_version();
            add(of(caller, OF_begun), 1);
            if (get(WORD_version) > own) return;
            set(WORD_process, getpid());
            set(WORD_version, own);
        }
        static void wait_a_little(int64_t n) { if (n % 4 == 0) usleep((unsigned)(n * 7 % 300)); }

        FUNCTION(work) {
            (void)data, (void)count;
            int64_t caller = arguments[0].as.integer, n = arguments[1].as.integer;
            begin(caller);
            wait_a_little(n);
            plugin_value values[2] = {plugin_value_int(n * 31 + caller), arguments[2]};
            add(of(caller, OF_ended), 1);
            plugin_reply(host, call, arguments[2].kind ? plugin_value_list(values, 2) : values[0]);
        }
        FUNCTION(make) {
            (void)data, (void)count;
            int64_t caller = arguments[0].as.integer;
            begin(caller);
            wait_a_little(arguments[1].as.integer);
            plugin_object object = host->object_create(host, PLUGIN_STRING("Thing"), NULL, NULL);
            add(of(caller, OF_ended), 1);
            plugin_reply(host, call, plugin_value_object(object));
            host->object_release(host, object);
        }
        struct late { plugin_token token; int64_t caller, n; };
        static void *reply_late(void *data) {
            struct late late = *(struct late *)data;
            free(data);
            wait_a_little(late.n);
            plugin_value value = plugin_value_int(late.n * 31 + late.caller);
            add(of(late.caller, OF_ended), 1);
            host->resolve(host, late.token, &value);
            return NULL;
        }
        FUNCTION(later) {
            (void)data, (void)count;
            struct late *late = malloc(sizeof *late);
            *late = (struct late){call->token, arguments[0].as.integer, arguments[1].as.integer};
            begin(late->caller);
            pthread_t thread;
            if (pthread_create(&thread, NULL, reply_late, late) == 0) pthread_detach(thread);
            else reply_late(late);
        }
        static void deactivate(void *data) { (void)data; }
        #define NUMBERS "\"parameters\":[{\"name\":\"caller\",\"type\":\"int\"},{\"name\":\"n\",\"type\":\"int\"}"
        static const volatile char manifest[] =
            "{\"name\":\"Busy\",\"version\":\"1.0.100\",\"types\":[{\"name\":\"Thing\",\"actions\":[{\"name\":\"touch\"}]}],"
            "\"targets\":[{\"name\":\"Busy\",\"actions\":["
            "{\"name\":\"work\"," NUMBERS ",{\"name\":\"data\",\"type\":\"any\"}]},"
            "{\"name\":\"make\"," NUMBERS "]},{\"name\":\"later\",\"async\":true," NUMBERS "]}]}]}";
        static const plugin_function functions[] = {
            {PLUGIN_STRING_INIT("Busy/work"), work, NULL}, {PLUGIN_STRING_INIT("Busy/make"), make, NULL},
            {PLUGIN_STRING_INIT("Busy/later"), later, NULL}, {PLUGIN_STRING_INIT("Thing#touch"), work, NULL}};

        #else
        static int64_t now(void) {
            struct timespec time;
            clock_gettime(CLOCK_MONOTONIC, &time);
            return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
        }
        /* Counts a wrong outcome, and keeps the text of the first one. */
        static void report(const char *who, int64_t caller, int64_t n, const char *what, plugin_string more) {
            if (add(WORD_wrong, 1) == 1)
                snprintf((char *)&words[WORD_text], 500, "call %lld of %s %lld %s %.*s", (long long)n, who, (long long)caller,
                         what, (int)more.count, more.bytes ? more.bytes : "");
        }

        /* The call of each caller, which makes one at a time. */
        static struct call {
            pthread_mutex_t lock;
            pthread_cond_t is_over;
            int64_t caller, n;
            int outcomes, has_value;
            plugin_object object;
        } calls[CALLERS];
        static uint8_t large[600 << 10];

        static int is_right(const struct call *call, const plugin_value *value) {
            int64_t right = call->n * 31 + call->caller;
            switch (value->kind) {
            case PLUGIN_KIND_INT: return value->as.integer == right;
            case PLUGIN_KIND_OBJECT: return value->as.object != 0;
            case PLUGIN_KIND_LIST:
                return value->count == 2 && value->as.list[0].as.integer == right && value->as.list[1].count == sizeof large
                    && memcmp(value->as.list[1].as.bytes, large, sizeof large) == 0;
            default: return 0;
            }
        }
        static void complete(void *data, const plugin_value *value, const plugin_error *error) {
            struct call *call = data;
            pthread_mutex_lock(&call->lock);
            call->outcomes++;
            call->has_value = value != NULL;
            if (error) {
                if (get(WORD_crashes) && plugin_string_equals(error->code, "moduleCrashed")) {
                    int64_t place = add(WORD_delayed, 1);
                    if (WORD_delays + place < WORDS) set(WORD_delays + (int)place - 1, now() - get(WORD_killedAt));
                    add(of(call->caller, OF_errors), 1);
                } else {
                    report("caller", call->caller, call->n, "failed:", error->message);
                }
            } else if (!is_right(call, value)) {
                report("caller", call->caller, call->n, "returned another value", (plugin_string){NULL, 0});
            } else if (value->kind == PLUGIN_KIND_OBJECT) {
                /* The object is held until the next one arrives. */
                if (call->object) host->object_release(host, call->object);
                call->object = host->object_retain(host, value->as.object) == 0 ? value->as.object : 0;
            }
            pthread_cond_signal(&call->is_over);
            pthread_mutex_unlock(&call->lock);
        }
        static void make_call(struct call *call) {
            plugin_entry entries[3];
            memset(entries, 0, sizeof entries);
            entries[0].value = plugin_value_int(call->caller);
            entries[1].value = plugin_value_int(call->n);
            if (call->n % 512 == 7) entries[2].value = plugin_value_bytes(large, sizeof large);
            plugin_string action = PLUGIN_STRING("work");
            if (call->n % 8 == 1) action = PLUGIN_STRING("later");
            if (call->n % 16 == 3) action = PLUGIN_STRING("make");
            int is_short = action.bytes[0] != 'w';
            plugin_request request = plugin_request_action(PLUGIN_STRING("Busy"), action, entries, is_short ? 2 : 3);
            int64_t begun = get(of(call->caller, OF_begun)), ended = get(of(call->caller, OF_ended));
            call->outcomes = 0;
            /* Synchronous actions can be called in either way. */
            if (call->n % 3 == 0 && action.bytes[0] != 'l') host->perform(host, 0, &request, complete, call);
            else host->call(host, 0, &request, complete, call);
            pthread_mutex_lock(&call->lock);
            while (call->outcomes == 0) pthread_cond_wait(&call->is_over, &call->lock);
            pthread_mutex_unlock(&call->lock);
            begun = get(of(call->caller, OF_begun)) - begun;
            ended = get(of(call->caller, OF_ended)) - ended;
            plugin_string none = {NULL, 0};
            if (begun > 1 || ended > 1) report("caller", call->caller, call->n, "was executed more than once", none);
            if (call->has_value && ended != 1) report("caller", call->caller, call->n, "was not executed", none);
            if (!call->has_value && begun == 0) add(WORD_notBegun, 1);
        }
        static void *call_busy(void *data) {
            struct call *call = data;
            while (!get(WORD_isOver)) {
                call->n++;
                make_call(call);
                add(of(call->caller, OF_calls), 1);
            }
            usleep(1000);
            if (call->outcomes != 1) report("caller", call->caller, call->n, "had two outcomes", (plugin_string){NULL, 0});
            if (call->object) host->object_release(host, call->object);
            add(WORD_running, -1);
            return NULL;
        }

        static void complete_other(void *data, const plugin_value *value, const plugin_error *error) {
            if (error) report("another module, number", (int)(intptr_t)data, get(WORD_others), "failed:", error->message);
            else if (value->as.integer == 42) add(WORD_others, 1);
        }
        /* Calls modules that are not involved in the attack. */
        static void *call_others(void *data) {
            (void)data;
            plugin_string names[] = {PLUGIN_STRING("Victim01"), PLUGIN_STRING("Victim02")};
            while (!get(WORD_isOver)) {
                for (int place = 0; place < 2; place++) {
                    plugin_request request = plugin_request_action(names[place], PLUGIN_STRING("act"), NULL, 0);
                    host->perform(host, 0, &request, complete_other, (void *)(intptr_t)(place + 1));
                }
                usleep(500);
            }
            add(WORD_running, -1);
            return NULL;
        }

        static pthread_t threads[CALLERS + 1];
        FUNCTION(didStart) {
            (void)data, (void)arguments, (void)count;
            for (size_t place = 0; place < sizeof large; place++) large[place] = (uint8_t)(place * 7);
            set(WORD_running, CALLERS + 1);
            for (int caller = 0; caller < CALLERS; caller++) {
                calls[caller] = (struct call){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, caller, 0, 0, 0, 0};
                pthread_create(&threads[caller], NULL, call_busy, &calls[caller]);
            }
            pthread_create(&threads[CALLERS], NULL, call_others, NULL);
            plugin_reply(host, call, plugin_value_null());
        }
        static void deactivate(void *data) {
            (void)data;
            set(WORD_isOver, 1);
            for (int thread = 0; thread <= CALLERS; thread++)
                if (threads[thread]) pthread_join(threads[thread], NULL);
        }
        static const volatile char manifest[] =
            "{\"name\":\"Caller\",\"version\":\"1.0.0\",\"hooks\":[{\"name\":\"didStart\"}],"
            "\"requires\":[{\"module\":\"Busy\",\"version\":\">=1.0\"},{\"module\":\"Victim01\",\"version\":\">=1.0\"},"
            "{\"module\":\"Victim02\",\"version\":\">=1.0\"}]}";
        static const plugin_function functions[] = {{PLUGIN_STRING_INIT("@didStart"), didStart, NULL}};
        #endif

        PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) {
            static plugin_module module = {
                .magic = PLUGIN_ABI_MAGIC, .size = sizeof(plugin_module), .abi_major = PLUGIN_ABI_MAJOR,
                .abi_minor = PLUGIN_ABI_MINOR, .functions = functions,
                .function_count = sizeof functions / sizeof *functions, .activate = activate, .deactivate = deactivate};
            module.manifest = (plugin_string){(const char *)manifest, sizeof manifest - 1};
            return &module;
        }
        """#
}
