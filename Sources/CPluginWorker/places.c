#define _GNU_SOURCE
#include "worker.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

enum { PLACES = 16 };

static char folder[4096]; /* of the module and its libraries, with a slash */

struct places {
    uintptr_t interrupted;
    int count;
};

/* Writes the place of an instruction, if it is in the code of the module or of its libraries. Async-signal-safe. */
static int write_place(uintptr_t address) {
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object object;
    if (_dl_find_object((void *)address, &object) != 0) return 0;
    const char *path = object.dlfo_link_map->l_name;
    uint64_t offset = address - object.dlfo_link_map->l_addr;
    size_t count = strlen(path);
    if (count > 4096 || strncmp(path, folder, strlen(folder)) != 0) return 0;
    char line[4096 + 32] = "place ";
    size_t length = strlen(line);
    for (int shift = 60; shift >= 0; shift -= 4) line[length++] = "0123456789abcdef"[offset >> shift & 15];
    line[length++] = ' ';
    memcpy(line + length, path, count);
    length += count;
    line[length++] = '\n';
    return write(STDERR_FILENO, line, length) == (ssize_t)length;
#else
    (void)address;
    return 0;
#endif
}

static _Unwind_Reason_Code find_place(struct _Unwind_Context *context, void *data) {
    struct places *found = data;
    int is_exact = 0;
    uintptr_t address = _Unwind_GetIPInfo(context, &is_exact);
    if (address == found->interrupted) return _URC_NO_REASON;
    /* A return address is that of the instruction after the call. */
    found->count += write_place(is_exact ? address : address - 1);
    return found->count < PLACES ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

static void handle(int number, siginfo_t *info, void *data) {
    const ucontext_t *context = data;
    signal(number, SIG_DFL); /* also for a fault in here */
    struct places found = {0, 0};
#if defined(__x86_64__)
    found.interrupted = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    found.interrupted = context->uc_mcontext.pc;
#else
    (void)context;
#endif
    found.count = write_place(found.interrupted);
    _Unwind_Backtrace(find_place, &found);
    /* A fault recurs when the instruction is repeated; a signal that was sent, or a breakpoint, is raised again. */
    if (info->si_code <= 0 || number == SIGTRAP) raise(number);
}

void plugin_worker_report_places(const char *module) {
    const char *slash = strrchr(module, '/');
    size_t length = slash ? (size_t)(slash - module) + 1 : 0;
    if (length == 0 || length >= sizeof folder) return;
    memcpy(folder, module, length);
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) sigaction(fatal[i], &action, NULL);
}
