#define _GNU_SOURCE
#include "worker.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

enum { ADDRESSES = 16, SIGNAL_STACK_BYTES = 64 << 10 };

static char folder[4096]; /* of the module and its libraries, with a slash */

struct addresses {
    uintptr_t interrupted;
    int count;
};

/* Writes the address of an instruction, if it is in the code of the module or of its libraries. Async-signal-safe. */
static int write_address(uintptr_t address) {
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object object;
    if (_dl_find_object((void *)address, &object) != 0) return 0;
    const char *path = object.dlfo_link_map->l_name;
    uint64_t offset = address - object.dlfo_link_map->l_addr;
    size_t count = strlen(path);
    if (count > 4096 || strncmp(path, folder, strlen(folder)) != 0) return 0;
    char line[4096 + 32] = "address ";
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

static _Unwind_Reason_Code find_address(struct _Unwind_Context *context, void *data) {
    struct addresses *found = data;
    int is_exact = 0;
    uintptr_t address = _Unwind_GetIPInfo(context, &is_exact);
    if (address == found->interrupted) return _URC_NO_REASON;
    /* A return address is that of the instruction after the call. */
    found->count += write_address(is_exact ? address : address - 1);
    return found->count < ADDRESSES ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

/* Writes a line to standard error. Async-signal-safe. */
static void write_line(const char *line) {
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written;
}

/* Returns the return address of a call through a pointer that leads nowhere; 0 if it is not known. */
static uintptr_t caller_of(const ucontext_t *context) {
#if defined(__x86_64__)
    return *(const uintptr_t *)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return context->uc_mcontext.regs[30];
#else
    (void)context;
    return 0;
#endif
}

/* Returns whether there is code at an address. Async-signal-safe. */
static int is_code(uintptr_t address) {
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object object;
    return _dl_find_object((void *)address, &object) == 0;
#else
    (void)address;
    return 1;
#endif
}

static void write_addresses(ucontext_t *context) {
#if defined(__x86_64__)
    greg_t *pc = &context->uc_mcontext.gregs[REG_RIP], *sp = &context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    unsigned long long *pc = &context->uc_mcontext.pc, *sp = &context->uc_mcontext.sp;
#else
    uintptr_t none = 0, *pc = &none, *sp = &none;
#endif
    struct addresses found = {(uintptr_t)*pc, 0};
    /* The stack cannot be unwound from an address without code: the address of the call is used instead. */
    const __typeof__(*pc) original = *pc, original_stack = *sp;
    uintptr_t caller = is_code(found.interrupted) ? 0 : caller_of(context);
    if (caller && is_code(caller - 1)) {
        found.interrupted = caller - 1;
        *pc = (__typeof__(*pc))found.interrupted;
#if defined(__x86_64__)
        *sp += sizeof(uintptr_t);
#endif
    }
    found.count = write_address(found.interrupted);
    _Unwind_Backtrace(find_address, &found);
    *pc = original;
    *sp = original_stack;
}

static void handle(int number, siginfo_t *info, void *context) {
    signal(number, SIG_DFL); /* also for a fault in here */
    write_addresses(context);
    write_line("addresses end\n");
    /* A fault recurs when the instruction is repeated; a signal that was sent, or a breakpoint, is raised again. */
    if (info->si_code <= 0 || number == SIGTRAP) raise(number);
}

void plugin_worker_add_signal_stack(void) {
    stack_t stack;
    if (!folder[0] || sigaltstack(NULL, &stack) != 0 || !(stack.ss_flags & SS_DISABLE)) return;
    void *memory = mmap(NULL, SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    stack = (stack_t){.ss_sp = memory, .ss_size = SIGNAL_STACK_BYTES};
    if (sigaltstack(&stack, NULL) != 0) munmap(memory, SIGNAL_STACK_BYTES);
}

void plugin_worker_report_addresses(const char *module) {
    const char *slash = strrchr(module, '/');
    size_t length = slash ? (size_t)(slash - module) + 1 : 0;
    if (length == 0 || length >= sizeof folder) return;
    memcpy(folder, module, length);
    plugin_worker_add_signal_stack();
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) sigaction(fatal[i], &action, NULL);
}
