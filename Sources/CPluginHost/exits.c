/* Notes which module ends the process: in the journals, and on standard error. Functions that a signal handler calls are
 * async-signal-safe: they use write(2) and memory that is never freed. */
#define _GNU_SOURCE
#include "blame.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "plugin_host_editor.h"
#include "thread_context.h"

/* -------------------------------------------------------------------------------------------------------- journals -- */

/* Never freed, because a signal handler reads the list; a free entry is reused. */
struct journal {
    int file; /* atomic: the descriptor plus one; 0 for none */
    struct journal *next;
};

static struct journal *journals;
static pid_t owner; /* atomic: the process that owns the journals */

/* A child of fork does not own the journals: its end is not that of the host. */
static int owns_journals(void) { return getpid() == __atomic_load_n(&owner, __ATOMIC_ACQUIRE); }

/* A file whose module is being started. Never freed: a signal handler may read the list. A free entry is reused. */
struct start {
    uint64_t file; /* atomic; PLUGIN_HOST_NOBODY for none */
    struct start *next;
};

static struct start *starts;
static int starts_count; /* atomic */

void plugin_host_begin_start(uint64_t file) {
    __atomic_add_fetch(&starts_count, 1, __ATOMIC_ACQ_REL);
    for (struct start *start = __atomic_load_n(&starts, __ATOMIC_ACQUIRE); start; start = start->next) {
        uint64_t none = PLUGIN_HOST_NOBODY;
        if (__atomic_compare_exchange_n(&start->file, &none, file, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    }
    struct start *start = calloc(1, sizeof *start);
    if (!start) return; /* an exit of this file keeps its exit code */
    start->file = file;
    start->next = __atomic_load_n(&starts, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&starts, &start->next, start, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
}

void plugin_host_end_start(uint64_t file) {
    __atomic_sub_fetch(&starts_count, 1, __ATOMIC_ACQ_REL);
    for (struct start *start = __atomic_load_n(&starts, __ATOMIC_ACQUIRE); start; start = start->next) {
        uint64_t own = file;
        if (__atomic_compare_exchange_n(
                &start->file, &own, PLUGIN_HOST_NOBODY, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return;
    }
}

static int is_starting(uint64_t file) {
    const struct start *start = __atomic_load_n(&starts, __ATOMIC_ACQUIRE);
    while (start && __atomic_load_n(&start->file, __ATOMIC_ACQUIRE) != file) start = start->next;
    return start != NULL;
}

void plugin_host_mark_journals(const char *kind, uint64_t file) {
    if (!owns_journals()) return;
    char line[64], digits[20];
    size_t length = 0, count = 0;
    for (const char *c = "{\""; *c; c++) line[length++] = *c;
    for (const char *c = kind; *c && length < 32; c++) line[length++] = *c;
    for (const char *c = "\":"; *c; c++) line[length++] = *c;
    do digits[count++] = (char)('0' + file % 10);
    while ((file /= 10) != 0);
    while (count > 0) line[length++] = digits[--count];
    line[length++] = '}';
    line[length++] = '\n';
    for (struct journal *journal = __atomic_load_n(&journals, __ATOMIC_ACQUIRE); journal; journal = journal->next) {
        int descriptor = __atomic_load_n(&journal->file, __ATOMIC_ACQUIRE) - 1;
        if (descriptor >= 0 && write(descriptor, line, length) < 0) continue;
    }
}

/* ----------------------------------------------------------------------------------------------------------- exits -- */

static int reports_exits; /* atomic */

static void say(const char *text) { plugin_host_say(text); }

int plugin_host_say_running(void) {
    const plugin_host_thread *thread = plugin_host_this_thread;
    uint32_t depth = thread ? thread->depth : 0;
    int is_named = 0;
    for (uint32_t i = depth < PLUGIN_HOST_CHUNK ? depth : PLUGIN_HOST_CHUNK; i > 0; i--) {
        const char *label = thread->records[i - 1].label;
        if (!label) continue;
        say(is_named ? "\n  called by " : "\n  while running ");
        say(label);
        is_named = 1;
    }
    const char *step = plugin_host_step();
    if (step) {
        say("\n  while ");
        say(step);
    }
    return is_named || step;
}

/* Whether the innermost call of this thread is one of an action, not of a hook. */
static int runs_action(void) {
    const plugin_host_thread *thread = plugin_host_this_thread;
    uint32_t depth = thread ? thread->depth : 0;
    for (uint32_t i = depth < PLUGIN_HOST_CHUNK ? depth : PLUGIN_HOST_CHUNK; i > 0; i--) {
        const char *label = thread->records[i - 1].label;
        if (label) return label[0] != '@';
    }
    return 0;
}

enum { unknown_status = -1 };

static void say_status(int status) {
    if (status == unknown_status) return;
    char text[4], *digit = text + sizeof text - 1;
    unsigned rest = (unsigned)status & 0xFF;
    *digit = 0;
    do *--digit = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    say(", with status ");
    say(digit);
}

/* Names the module of a file, and states how the program can survive the exit. */
static void say_module(uint64_t file) {
    int names_module = 0;
    const char *label = plugin_host_label_of(file, &names_module);
    if (!label) return;
    say("\n  in the code of ");
    say(label);
    char name[256] = "all";
    if (names_module) {
        /* The label begins with the name of the module and a space. */
        size_t length = strcspn(label, " ");
        if (length > sizeof name - 1) length = sizeof name - 1;
        memcpy(name, label, length);
        name[length] = 0;
    }
    say("\nThe program survives this if the module runs in a process of its own (pluginhost run --isolate ");
    say(name);
    say("; in other programs Isolation.modules): then only its running calls fail, and it is started again.");
}

static void report_exit(uint64_t file, int status) {
    plugin_host_editor_restore();
    say("pluginhost: code of a module has ended the program by exit, _exit or quick_exit");
    say_status(status);
    plugin_host_say_running();
    say_module(file);
    say("\n");
}

/* A caller that waits for a result from the program must not mistake this exit for success. */
static _Noreturn void fail_exit(void) {
    enum { software_error = 70 }; /* EX_SOFTWARE of sysexits.h */
    for (;;) syscall(SYS_exit_group, software_error);
}

static _Unwind_Reason_Code find_file(struct _Unwind_Context *context, void *found) {
    uint64_t *file = found;
    *file = plugin_host_file_at((uintptr_t)_Unwind_GetIP(context));
    return *file != PLUGIN_HOST_NOBODY ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* The file of the innermost call of this thread, of its step, or of the nearest code of a module on its stack. */
static uint64_t file_that_exits(void) {
    uint64_t file = plugin_host_file_of_thread();
    if (file == PLUGIN_HOST_NOBODY) _Unwind_Backtrace(find_file, &file);
    return file != PLUGIN_HOST_NOBODY ? file : plugin_host_file_at(plugin_host_thread_origin);
}

/* The file of the module that contains the caller of _exit(). The program may call it in a signal handler that has
 * interrupted code of a module, so it does not matter whose code is below on the stack. Async-signal-safe. */
static uint64_t file_of_caller(const void *return_address) {
    return plugin_host_file_at((uintptr_t)return_address - 1);
}

/* Runs on the thread that ends the process. `return_address` is that of a call of _exit(); null for other exits. */
static void note_exit(int status, const void *return_address) {
    static int is_noted;
    int is_any_starting = __atomic_load_n(&starts_count, __ATOMIC_ACQUIRE) > 0;
    int is_reported = __atomic_load_n(&reports_exits, __ATOMIC_ACQUIRE);
    if ((!is_any_starting && !is_reported) || !owns_journals()) return;
    if (__atomic_exchange_n(&is_noted, 1, __ATOMIC_ACQ_REL)) return;
    uint64_t file = return_address ? file_of_caller(return_address) : file_that_exits();
    if (file <= PLUGIN_HOST_THE_PROGRAM) return;
    if (is_any_starting) plugin_host_mark_journals("exit", file);
    if (is_reported) report_exit(file, status);
    if (is_reported && is_starting(file) && !runs_action()) fail_exit();
}

static void note_exit_with_status(int status, void *unused) {
    (void)unused;
    note_exit(status, NULL);
}

static void note_quick_exit(void) { note_exit(unknown_status, NULL); }

static void register_handlers(void) {
    on_exit(note_exit_with_status, NULL);
    at_quick_exit(note_quick_exit);
}

/* From now on, this process owns the journals: a program may have become another process since the last call. */
static void watch_exits(void) {
    static pthread_once_t is_registered = PTHREAD_ONCE_INIT;
    pthread_once(&is_registered, register_handlers);
    __atomic_store_n(&owner, getpid(), __ATOMIC_RELEASE);
}

void plugin_host_report_exits(void) {
    watch_exits();
    __atomic_store_n(&reports_exits, 1, __ATOMIC_RELEASE);
}

int plugin_host_add_journal(int descriptor) {
    watch_exits();
    for (struct journal *journal = __atomic_load_n(&journals, __ATOMIC_ACQUIRE); journal; journal = journal->next) {
        int none = 0;
        if (__atomic_compare_exchange_n(&journal->file, &none, descriptor + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return 1;
    }
    struct journal *journal = calloc(1, sizeof *journal);
    if (!journal) return 0;
    journal->file = descriptor + 1;
    journal->next = __atomic_load_n(&journals, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&journals, &journal->next, journal, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
    return 1;
}

void plugin_host_remove_journal(int descriptor) {
    for (struct journal *journal = __atomic_load_n(&journals, __ATOMIC_ACQUIRE); journal; journal = journal->next) {
        int own = descriptor + 1;
        if (__atomic_compare_exchange_n(&journal->file, &own, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    }
}

/* _exit() runs no handlers. The program's definition takes precedence over that of the C library, for modules, too, so
 * everything except exit_group(2) itself is caught here. Sanitizers replace _exit() with definitions of their own. */
#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif
#if !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)

static _Noreturn void end_process(int status, const void *return_address) {
    note_exit(status, return_address);
    for (;;) syscall(SYS_exit_group, status);
}

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))
__attribute__((weak)) _Noreturn void _exit(int status) { end_process(status, CALLER); }
__attribute__((weak)) _Noreturn void _Exit(int status) { end_process(status, CALLER); }

#endif
