/* The report of a dying host: which module, generation and action were running. Everything that runs in the handler is
 * async-signal-safe: write(2), process_vm_readv(2), and memory that is never freed. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "blame.h"
#include "plugin_host_editor.h"
#include "thread_context.h"

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
enum { fatal_count = sizeof fatal_signals / sizeof *fatal_signals };
static struct sigaction previous[fatal_count];

/* ---------------------------------------------------------------------------------------------------- the report -- */

/* How long the report waits in total for its output to be read, in milliseconds: a pipe that is not read must not keep
 * the process from dying. */
static int patience = 1000;

void plugin_host_say(const char *text) {
    enum { chunk = 512 }; /* a pipe that is ready for writing accepts at least this much at once */
    struct pollfd errors = {.fd = STDERR_FILENO, .events = POLLOUT};
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    size_t left = strlen(text);
    while (left > 0) {
        while (poll(&errors, 1, 0) == 0) {
            if ((patience -= 10) < 0) return;
            nanosleep(&pause, NULL);
        }
        ssize_t written = write(STDERR_FILENO, text, left < chunk ? left : chunk);
        if (written <= 0) return;
        text += written;
        left -= (size_t)written;
    }
}

static void say(const char *text) { plugin_host_say(text); }

static const char *signal_name(int number) {
    switch (number) {
    case SIGSEGV: return "SIGSEGV (invalid memory reference)";
    case SIGBUS: return "SIGBUS (bus error)";
    case SIGILL: return "SIGILL (illegal instruction, or a runtime error in Swift)";
    case SIGFPE: return "SIGFPE (arithmetic error)";
    case SIGABRT: return "SIGABRT (abort)";
    case SIGTRAP: return "SIGTRAP (trap, or a runtime error in Swift)";
    case SIGSYS: return "SIGSYS (bad system call)";
    default: return "a fatal signal";
    }
}

static void report(int number, const ucontext_t *context) {
    plugin_host_mark_journals("fatal", plugin_host_culprit(context));
    plugin_host_editor_restore();
    say("pluginhost: fatal signal ");
    say(signal_name(number));
    int named = plugin_host_say_running();
    const char *module = plugin_host_module_on_stack(context);
    if (module) {
        say("\n  in the code of ");
        say(module);
    } else if (!named) {
        say("\n  outside any module");
    }
    say("\n");
}

/* Calls the handler that was installed before (Swift's backtraces, a sanitizer); it may not return. */
static void call_previous(int number, siginfo_t *info, void *context) {
    const struct sigaction *handler = previous;
    while (fatal_signals[handler - previous] != number) handler++;
    if (handler->sa_flags & SA_NODEFER) {
        /* Swift's handler reads memory that may not be mapped, and relies on a second fault. */
        sigset_t deferred;
        sigemptyset(&deferred);
        sigaddset(&deferred, number);
        pthread_sigmask(SIG_UNBLOCK, &deferred, NULL);
    }
    if (handler->sa_flags & SA_SIGINFO)
        handler->sa_sigaction(number, info, context);
    else if (handler->sa_handler != SIG_DFL && handler->sa_handler != SIG_IGN)
        handler->sa_handler(number);
}

static void handle(int number, siginfo_t *info, void *context) {
    static pid_t reporter;
    static int is_reported;
    pid_t none = 0, self = (pid_t)syscall(SYS_gettid);
    if (__atomic_compare_exchange_n(&reporter, &none, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        report(number, context);
        plugin_host_write_addresses(context);
        call_previous(number, info, context);
        __atomic_store_n(&is_reported, 1, __ATOMIC_RELEASE);
    } else if (none != self) {
        /* Another thread is already reporting a crash: this one must not end the process in the middle of the report,
         * nor wait forever. */
        const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
        for (int i = 0; i < 6000 && !__atomic_load_n(&is_reported, __ATOMIC_ACQUIRE); i++) nanosleep(&pause, NULL);
    }
    signal(number, SIG_DFL);
    /* A fault recurs when the instruction is repeated; a signal that was sent, or a breakpoint, is raised again. */
    if (info->si_code <= 0 || number == SIGTRAP) raise(number);
}

static void install(void) {
    plugin_host_want_signal_stacks();
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < fatal_count; i++) sigaction(fatal_signals[i], &action, &previous[i]);
    plugin_host_add_signal_stack();
}

void plugin_host_install_fatal_signal_report(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}
