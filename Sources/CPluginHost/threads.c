/* A stack for signal handlers on every thread, so that the overflow of the thread's own stack can be reported.
 *
 * Modules create threads with pthread_create(3) and thrd_create(3). The program's definitions of both take precedence
 * over those of the C library, for every library that is loaded, and give each new thread such a stack before its
 * function runs. Threads that are created without these functions (clone(2), timers with SIGEV_THREAD) have none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <threads.h>

#include "blame.h"
#include "thread_context.h"

enum { stack_size = 64 * 1024, room_min = 8 * stack_size };

static uint32_t is_wanted;
static __thread void *signal_stack;

void plugin_host_want_signal_stacks(void) { __atomic_store_n(&is_wanted, 1, __ATOMIC_RELEASE); }

/* Whether this thread should get a signal stack: sanitizers, Go and others provide their own. */
static int needs_signal_stack(void) {
    stack_t current;
    return __atomic_load_n(&is_wanted, __ATOMIC_ACQUIRE) && !signal_stack && sigaltstack(NULL, &current) == 0
        && (current.ss_flags & SS_DISABLE);
}

void plugin_host_add_signal_stack(void) {
    if (!needs_signal_stack()) return;
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

#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif
/* The sanitizers define pthread_create themselves, and the address sanitizer gives threads such stacks. */
#if !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)

struct beginning {
    void *(*run)(void *);
    int (*run_c11)(void *); /* instead of `run` */
    void *data;
};

/* Uses the upper end of the thread's own stack: that needs no mapping, and an overflow happens at the other end. */
static __attribute__((noinline)) void *run_with_room(struct beginning beginning) {
    char room[stack_size];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room}, none = {.ss_flags = SS_DISABLE};
    int is_set = sigaltstack(&stack, NULL) == 0;
    plugin_host_thread_origin = beginning.run ? (uintptr_t)beginning.run : (uintptr_t)beginning.run_c11;
    void *result =
        beginning.run ? beginning.run(beginning.data) : (void *)(intptr_t)beginning.run_c11(beginning.data);
    /* Destructors of thread-local values run after this, on the same memory. */
    if (is_set) sigaltstack(&none, NULL);
    return result;
}

static void *begin(void *memory) {
    struct beginning beginning = *(struct beginning *)memory;
    free(memory);
    return run_with_room(beginning);
}

static int begin_c11(void *memory) { return (int)(intptr_t)begin(memory); }

/* Whether a thread created with these attributes has enough stack. */
static int has_room(const pthread_attr_t *attributes) {
    if (!__atomic_load_n(&is_wanted, __ATOMIC_ACQUIRE)) return 0;
    size_t size = 0;
    if (attributes) return pthread_attr_getstacksize(attributes, &size) == 0 && size >= room_min;
    pthread_attr_t defaults;
    if (pthread_getattr_default_np(&defaults) != 0) return 0;
    int result = pthread_attr_getstacksize(&defaults, &size) == 0 && size >= room_min;
    pthread_attr_destroy(&defaults);
    return result;
}

static struct beginning *beginning_create(struct beginning beginning) {
    struct beginning *memory = malloc(sizeof *memory);
    if (memory) *memory = beginning;
    return memory;
}

typedef int create_thread(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int create_thread_c11(thrd_t *, thrd_start_t, void *);
static create_thread *original_create;
static create_thread_c11 *original_create_c11;

/* Runs early, because dlsym(3) blocks while a library is being opened. */
__attribute__((constructor)) static void find_originals(void) {
    __atomic_store_n(&original_create, (create_thread *)dlsym(RTLD_NEXT, "pthread_create"), __ATOMIC_RELEASE);
    __atomic_store_n(&original_create_c11, (create_thread_c11 *)dlsym(RTLD_NEXT, "thrd_create"), __ATOMIC_RELEASE);
}

__attribute__((weak)) int pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *data) {
    if (!__atomic_load_n(&original_create, __ATOMIC_ACQUIRE)) find_originals(); /* in a library's constructor */
    create_thread *create = __atomic_load_n(&original_create, __ATOMIC_ACQUIRE);
    if (!create) return ENOSYS;
    struct beginning *memory =
        has_room(attributes) ? beginning_create((struct beginning){.run = run, .data = data}) : NULL;
    if (!memory) return create(thread, attributes, run, data);
    int error = create(thread, attributes, begin, memory);
    if (error) free(memory);
    return error;
}

__attribute__((weak)) int thrd_create(thrd_t *thread, thrd_start_t run, void *data) {
    if (!__atomic_load_n(&original_create_c11, __ATOMIC_ACQUIRE)) find_originals();
    create_thread_c11 *create = __atomic_load_n(&original_create_c11, __ATOMIC_ACQUIRE);
    if (!create) return thrd_error;
    struct beginning *memory = has_room(NULL) ? beginning_create((struct beginning){.run_c11 = run, .data = data}) : NULL;
    if (!memory) return create(thread, run, data);
    int result = create(thread, begin_c11, memory);
    if (result != thrd_success) free(memory);
    return result;
}

#endif
