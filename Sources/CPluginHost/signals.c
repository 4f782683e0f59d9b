/* What a dying host says: which module, generation and action was running. Everything that runs inside the handler is
 * async-signal-safe: write(2), process_vm_readv(2), and memory that is never freed. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "lane.h"

enum { stack_size = 64 * 1024, backtrace_max = 64 };

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
enum { fatal_count = sizeof fatal_signals / sizeof *fatal_signals };
static struct sigaction previous[fatal_count];
static uint32_t is_installed;

/* ------------------------------------------------------------------------------------------------ signal stacks -- */

static __thread void *signal_stack;

void plugin_host_add_signal_stack(void) {
    stack_t current;
    if (!__atomic_load_n(&is_installed, __ATOMIC_ACQUIRE) || signal_stack) return;
    if (sigaltstack(NULL, &current) != 0 || !(current.ss_flags & SS_DISABLE)) return;
    void *memory = mmap(NULL, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    stack_t stack = {.ss_sp = memory, .ss_size = stack_size};
    if (sigaltstack(&stack, NULL) == 0)
        signal_stack = memory;
    else
        munmap(memory, stack_size);
}

void plugin_host_remove_signal_stack(void) {
    if (!signal_stack) return;
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    munmap(signal_stack, stack_size);
    signal_stack = NULL;
}

/* ------------------------------------------------------------------------------------------------- where code is -- */

struct image {
    uintptr_t start, end;
    const char *label;
    struct image *next;
};

static struct image *images;
static __thread const char *step;

void plugin_host_set_step(const char *label) { step = label; }
const char *plugin_host_step(void) { return step; }

/* Descriptors of journals, plus one; 0 for none. */
enum { journals_max = 16 };
static int journals[journals_max];

void plugin_host_add_journal(int descriptor) {
    for (int i = 0, none = 0; i < journals_max; i++, none = 0)
        if (__atomic_compare_exchange_n(&journals[i], &none, descriptor + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
}

void plugin_host_remove_journal(int descriptor) {
    for (int i = 0, own = descriptor + 1; i < journals_max; i++, own = descriptor + 1)
        if (__atomic_compare_exchange_n(&journals[i], &own, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
}

struct search {
    uintptr_t address;
    struct image *found;
};

static int find_bounds(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD) continue;
        uintptr_t low = info->dlpi_addr + header->p_vaddr, high = low + header->p_memsz;
        if (low < start) start = low;
        if (high > end) end = high;
    }
    if (search->address < start || search->address >= end) return 0;
    search->found->start = start;
    search->found->end = end;
    return 1;
}

/* Returns whether there is an image at the address. */
static int bound(struct image *image, const void *address) {
#if __GLIBC_PREREQ(2, 35)
    /* Does not look at all images, of which there may be thousands. */
    struct dl_find_object object;
    if (_dl_find_object((void *)address, &object) == 0) {
        image->start = (uintptr_t)object.dlfo_map_start;
        image->end = (uintptr_t)object.dlfo_map_end;
        return 1;
    }
#endif
    struct search search = {(uintptr_t)address, image};
    return dl_iterate_phdr(find_bounds, &search);
}

void plugin_host_add_image(const void *address, const char *label) {
    struct image *image = calloc(1, sizeof *image);
    if (!image) return;
    if (!bound(image, address)) {
        free(image);
        return;
    }
    image->label = label;
    image->next = __atomic_load_n(&images, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&images, &image->next, image, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
}

static const char *label_at(uintptr_t address) {
    for (struct image *image = __atomic_load_n(&images, __ATOMIC_ACQUIRE); image; image = image->next)
        if (address >= image->start && address < image->end) return image->label;
    return NULL;
}

/* ---------------------------------------------------------------------------------------------------- the report -- */

static void say(const char *text) {
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t written = write(STDERR_FILENO, text, left);
        if (written <= 0) return;
        text += written;
        left -= (size_t)written;
    }
}

static const char *signal_name(int number) {
    switch (number) {
    case SIGSEGV: return "SIGSEGV (invalid memory reference)";
    case SIGBUS: return "SIGBUS (bus error)";
    case SIGILL: return "SIGILL (illegal instruction; Swift's runtime errors end so)";
    case SIGFPE: return "SIGFPE (arithmetic error)";
    case SIGABRT: return "SIGABRT (abort)";
    case SIGTRAP: return "SIGTRAP (trap; Swift's runtime errors end so)";
    case SIGSYS: return "SIGSYS (bad system call)";
    default: return "a fatal signal";
    }
}

static int read_memory(uintptr_t address, void *into, size_t count) {
    struct iovec local = {into, count}, remote = {(void *)address, count};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)count;
}

/* The module whose code is nearest to the top of the stack, by the instruction pointer and the chain of frame
 * pointers: for code that runs outside any call, in a task or a thread of its own. */
static const char *module_on_stack(const ucontext_t *context) {
#if defined(__x86_64__)
    uintptr_t pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    uintptr_t frame = (uintptr_t)context->uc_mcontext.gregs[REG_RBP];
#elif defined(__aarch64__)
    uintptr_t pc = context->uc_mcontext.pc, frame = context->uc_mcontext.regs[29];
#else
    uintptr_t pc = 0, frame = 0;
#endif
    const char *label = label_at(pc);
    for (int i = 0; i < backtrace_max && !label; i++) {
        uintptr_t pair[2]; /* the caller's frame pointer, and where this one returns to */
        if (frame == 0 || frame % sizeof frame != 0 || !read_memory(frame, pair, sizeof pair)) break;
        label = label_at(pair[1]);
        if (pair[0] <= frame) break;
        frame = pair[0];
    }
    return label;
}

static void report(int number, const ucontext_t *context) {
    const plugin_host_lane *lane = plugin_host_this_lane;
    say("pluginhost: fatal signal ");
    say(signal_name(number));
    int named = 0;
    uint32_t depth = lane ? lane->depth : 0;
    for (uint32_t i = depth < PLUGIN_HOST_CHUNK ? depth : PLUGIN_HOST_CHUNK; i > 0; i--) {
        const char *label = lane->records[i - 1].label;
        if (!label) continue;
        say(named ? "\n  called by " : "\n  while running ");
        say(label);
        named = 1;
    }
    if (step) {
        say("\n  while ");
        say(step);
        named = 1;
        for (int i = 0; i < journals_max; i++) {
            int journal = __atomic_load_n(&journals[i], __ATOMIC_ACQUIRE) - 1;
            if (journal < 0 || lseek(journal, 0, SEEK_END) < 0) continue;
            if (write(journal, PLUGIN_HOST_FATAL_LINE, sizeof PLUGIN_HOST_FATAL_LINE - 1) < 0) continue;
        }
    }
    const char *module = module_on_stack(context);
    if (module) {
        say("\n  in the code of ");
        say(module);
    } else if (!named) {
        say("\n  outside any module");
    }
    say("\n");
}

/* Lets who was there first (Swift's backtraces, a sanitizer) say what it has to say; it may not return. */
static void call_previous(int number, siginfo_t *info, void *context) {
    const struct sigaction *handler = previous;
    while (fatal_signals[handler - previous] != number) handler++;
    if (handler->sa_flags & SA_NODEFER) {
        /* Swift's reads memory that may not be there, and counts on the fault. */
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
        call_previous(number, info, context);
        __atomic_store_n(&is_reported, 1, __ATOMIC_RELEASE);
    } else if (none != self) {
        /* Another thread crashes too: it must not end the process in the middle of the report, nor wait for ever. */
        const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
        for (int i = 0; i < 6000 && !__atomic_load_n(&is_reported, __ATOMIC_ACQUIRE); i++) nanosleep(&pause, NULL);
    }
    signal(number, SIG_DFL);
    /* A fault comes again when the instruction is repeated; a signal that was sent, or a breakpoint, is sent again. */
    if (info->si_code <= 0 || number == SIGTRAP) raise(number);
}

static void install(void) {
    __atomic_store_n(&is_installed, 1, __ATOMIC_RELEASE);
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < fatal_count; i++) sigaction(fatal_signals[i], &action, &previous[i]);
    plugin_host_add_signal_stack();
}

void plugin_host_install_fatal_signal_report(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}
