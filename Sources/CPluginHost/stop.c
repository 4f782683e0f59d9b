/* Signals that request something, and the end of a program. See plugin_host_signals.h. */
#define _GNU_SOURCE
#include "plugin_host_signals.h"

#include "plugin_host_editor.h"
#include "plugin_host_notify.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Waits until the semaphore is posted, or `seconds` have passed. Returns whether it was posted. */
static int wait_for(sem_t *posted, uint32_t seconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    int result;
    do result = sem_clockwait(posted, CLOCK_MONOTONIC, &until);
    while (result != 0 && errno == EINTR);
    return result == 0;
}

/* Ends the process immediately. Does not use _exit(2): the program's definition of it records which module ends the
 * process, but no module does so here, even if the signal has interrupted code of one. */
static _Noreturn void leave(int code) {
    plugin_host_editor_restore();
    for (;;) syscall(SYS_exit_group, code);
}

static void wait_long(sem_t *posted) {
    while (sem_wait(posted) != 0 && errno == EINTR) {}
}

/* --------------------------------------------------------------------------------------------------------- inboxes -- */

enum { inboxes_max = 16, numbers_max = 4, signals_max = 65 };

struct plugin_host_inbox {
    sem_t arrived;
    int is_open, is_closing; /* atomic; is_closing is for the waiting thread */
    int count;
    int numbers[numbers_max];
    uint32_t pending[numbers_max]; /* atomic */
    struct sigaction previous[numbers_max];
};

static struct plugin_host_inbox inboxes[inboxes_max];

static void put(int number) {
    int error = errno;
    for (int i = 0; i < inboxes_max; i++) {
        struct plugin_host_inbox *inbox = &inboxes[i];
        if (!__atomic_load_n(&inbox->is_open, __ATOMIC_ACQUIRE)) continue;
        for (int j = 0; j < inbox->count; j++) {
            if (inbox->numbers[j] != number) continue;
            __atomic_fetch_add(&inbox->pending[j], 1, __ATOMIC_RELEASE);
            sem_post(&inbox->arrived);
        }
    }
    errno = error;
}

static pthread_mutex_t inboxes_lock = PTHREAD_MUTEX_INITIALIZER;
static int is_used[inboxes_max];

plugin_host_inbox *plugin_host_inbox_open(const int *numbers, int count) {
    struct plugin_host_inbox *inbox = NULL;
    if (count > numbers_max) return NULL;
    pthread_mutex_lock(&inboxes_lock);
    for (int i = 0; i < inboxes_max && !inbox; i++) {
        if (is_used[i]) continue;
        is_used[i] = 1;
        inbox = &inboxes[i];
    }
    if (inbox) {
        sem_init(&inbox->arrived, 0, 0);
        inbox->is_closing = 0;
        inbox->count = count;
        for (int j = 0; j < count; j++) {
            inbox->numbers[j] = numbers[j];
            inbox->pending[j] = 0;
        }
        __atomic_store_n(&inbox->is_open, 1, __ATOMIC_RELEASE);
        struct sigaction action = {.sa_handler = put, .sa_flags = SA_RESTART | SA_ONSTACK};
        sigemptyset(&action.sa_mask);
        for (int j = 0; j < count; j++) sigaction(numbers[j], &action, &inbox->previous[j]);
    }
    pthread_mutex_unlock(&inboxes_lock);
    return inbox;
}

int plugin_host_inbox_wait(plugin_host_inbox *inbox) {
    while (1) {
        wait_long(&inbox->arrived);
        for (int j = 0; j < inbox->count; j++) {
            if (__atomic_load_n(&inbox->pending[j], __ATOMIC_ACQUIRE) == 0) continue;
            __atomic_fetch_sub(&inbox->pending[j], 1, __ATOMIC_ACQ_REL);
            return inbox->numbers[j];
        }
        if (!__atomic_load_n(&inbox->is_closing, __ATOMIC_ACQUIRE)) continue;
        pthread_mutex_lock(&inboxes_lock);
        is_used[inbox - inboxes] = 0;
        pthread_mutex_unlock(&inboxes_lock);
        return 0;
    }
}

void plugin_host_inbox_close(plugin_host_inbox *inbox) {
    pthread_mutex_lock(&inboxes_lock);
    for (int j = 0; j < inbox->count; j++) {
        /* If another handler has been installed since then, it stays. */
        struct sigaction present;
        if (sigaction(inbox->numbers[j], NULL, &present) == 0 && present.sa_handler == put)
            sigaction(inbox->numbers[j], &inbox->previous[j], NULL);
    }
    __atomic_store_n(&inbox->is_open, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&inbox->is_closing, 1, __ATOMIC_RELEASE);
    sem_post(&inbox->arrived);
    pthread_mutex_unlock(&inboxes_lock);
}

/* --------------------------------------------------------------------------------------------- the end of a program -- */

static sem_t asked, signalled, begun;
static uint32_t patience_seconds;
static uint32_t signal_count; /* atomic */
static int first_number;      /* atomic */
static int is_installed;

static void ask(int number) {
    int error = errno;
    if (__atomic_fetch_add(&signal_count, 1, __ATOMIC_ACQ_REL) > 0) leave(128 + number);
    __atomic_store_n(&first_number, number, __ATOMIC_RELEASE);
    sem_post(&asked);
    sem_post(&signalled);
    errno = error;
}

/* SIGHUP is among them only if it means that the terminal has gone. */
static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP};
static int end_signal_count = 2;

static void *watch(void *unused) {
    static const char message[] =
        "pluginhost: the orderly shutdown has not begun in time after the signal; the program ends immediately\n";
    (void)unused;
    pthread_setname_np(pthread_self(), "host.signals");
    /* The parent process may have blocked these signals, as threads of Dispatch do. Then this thread receives them. */
    sigset_t signals;
    sigemptyset(&signals);
    for (int i = 0; i < end_signal_count; i++) sigaddset(&signals, end_signals[i]);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    wait_long(&signalled);
    if (wait_for(&begun, patience_seconds)) return NULL;
    /* Writes only if there is room: a pipe that is not read must not delay the end. */
    struct pollfd errors = {.fd = 2, .events = POLLOUT};
    if (poll(&errors, 1, 0) == 1 && write(2, message, sizeof message - 1) < 0) {}
    leave(128 + __atomic_load_n(&first_number, __ATOMIC_ACQUIRE));
}

static int take_end_signals(void) {
    struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART | SA_ONSTACK}, previous;
    int taken_back = 0;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < end_signal_count; i++)
        if (sigaction(end_signals[i], &action, &previous) == 0 && previous.sa_handler != ask) taken_back |= 1 << i;
    return taken_back;
}

int plugin_host_stop_install(uint32_t patience) {
    patience_seconds = patience;
    sem_init(&asked, 0, 0);
    sem_init(&signalled, 0, 0);
    sem_init(&begun, 0, 0);
    if (plugin_host_hangup() == PLUGIN_HOST_HANGUP_OF_TERMINAL) end_signal_count = 3;
    pthread_t thread;
    int error = pthread_create(&thread, NULL, watch, NULL);
    if (error) return error;
    pthread_detach(thread);
    is_installed = 1;
    take_end_signals();
    return 0;
}

int plugin_host_stop_take_back(void) { return is_installed ? take_end_signals() : 0; }

void plugin_host_stop_wait(void) { wait_long(&asked); }
void plugin_host_stop_ask(void) { sem_post(&asked); }
void plugin_host_stop_begun(void) { sem_post(&begun); }

/* Symbols that exist only in programs built with a sanitizer or for coverage, which report from atexit(3). */
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));
extern void __lsan_do_leak_check(void) __attribute__((weak));
extern void __ubsan_handle_type_mismatch_v1(void *, void *) __attribute__((weak));
extern int __llvm_profile_write_file(void) __attribute__((weak));
extern void __gcov_dump(void) __attribute__((weak));

static void *flush(void *flushed) {
    fflush(NULL);
    sem_post(flushed);
    return NULL;
}

_Noreturn void plugin_host_end(int code) {
    if (__asan_init || __tsan_init || __lsan_do_leak_check || __ubsan_handle_type_mismatch_v1
        || __llvm_profile_write_file || __gcov_dump)
        exit(code);
    /* On a thread of its own, because what a module has printed may go to a pipe that is not read. */
    static sem_t flushed;
    sem_init(&flushed, 0, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, flush, &flushed) == 0) wait_for(&flushed, 1);
    leave(code);
}
