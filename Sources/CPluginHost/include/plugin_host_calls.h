/*
 * plugin_host_calls.h - the records of running calls, in memory that is never freed.
 *
 * Every call that runs has a record: a synchronous call in the thread of its thread, an asynchronous one in a chunk of
 * the pool. Records lie in chunks of 128, chunks are listed in one directory, and so a record is named by a number:
 * that is what a token references, and why a token can never point to something else. C keeps them because a signal handler
 * reads them, and because a thread finds its thread through a thread-local that no module can reach.
 *
 * The members that several threads use are accessed with atomic operations only (from Swift, see CallRecord.swift).
 */
#ifndef PLUGIN_HOST_CALLS_H
#define PLUGIN_HOST_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define PLUGIN_HOST_CHUNK 128       /* records in a chunk; also how deep synchronous calls nest on a thread */
#define PLUGIN_HOST_CHUNKS_MAX 65536 /* chunks in the directory */

typedef struct plugin_host_record {
    uint64_t state;      /* atomic: sequence << 2 | phase */
    uint64_t endpoint;   /* atomic: the Endpoint that runs, an unretained reference; 0 when the record is free */
    const char *label;   /* what runs, for a person; of plugin_host_label_create, never freed */
    uint64_t parent;     /* atomic: the token of the call that this one is made for, or 0 */
    void (*completion)(void *data, const void *value, const void *error);
    void *data;
    int64_t deadline;    /* atomic: CLOCK_MONOTONIC nanoseconds, 0 for none */
    uint64_t replier;    /* atomic: the thread of the thread that replies */
    uint64_t stands_for; /* the token of the asynchronous call whose beginning runs here, or 0 */
    uint64_t object;     /* atomic: the object that the call references, or 0 */
    uint64_t replied_within; /* the token of the reply that this thread gave already when it began to give this one */
    uint64_t caller;     /* atomic: the Generation that called and may cancel, unretained; 0 for the host itself */
    int64_t since;       /* atomic: CLOCK_MONOTONIC_COARSE nanoseconds at which the call began */
    int64_t started;     /* of the pool: CLOCK_MONOTONIC nanoseconds, where the duration is measured, else 0 */
    void *instance;      /* made for this call alone, to be destroyed after it */
    void (*cancel_handler)(void *data, int32_t cancelled); /* guarded by `lock` */
    void *cancel_data;
    uint32_t lock;       /* atomic: 1 while somebody uses the cancel handler */
    uint32_t index;      /* chunk * PLUGIN_HOST_CHUNK + place in it */
    uint32_t depth;      /* atomic: how many calls led here */
    uint32_t flags;      /* see CallRecord.swift */
    uint32_t references;      /* atomic: of the pool: what still needs the record, the action that runs and the reply */
    uint32_t is_pooled;  /* 1 in the pool, 0 in a thread; never changes */
} plugin_host_record;

/* What one thread has made of one action: how often it has called it, and told an error. (Other things that are counted
 * have tallies, too: what found no room in a profile.) Written by that thread alone, so that it costs no more than an
 * addition; who wants to know sums up those of all threads. */
typedef struct plugin_host_tally {
    uint64_t calls;  /* atomic; or how often something else was counted */
    uint64_t errors; /* atomic */
} plugin_host_tally;

#define PLUGIN_HOST_TALLIES 256          /* in a chunk */
#define PLUGIN_HOST_TALLIES_CHUNKS 16384 /* of a thread; numbers beyond are not counted */

typedef struct plugin_host_thread {
    uint64_t epoch;      /* atomic: the registry's epoch while this thread reads the table, else 0 */
    uint32_t depth;      /* synchronous calls that run on this thread */
    uint32_t is_used;    /* guarded by the directory's lock */
    uint64_t replying;   /* the token of the call whose caller this thread tells the outcome, or 0 */
    plugin_host_record *records; /* a chunk */
    struct plugin_host_thread *next; /* of all threads */
    uint32_t sees_proposal; /* 1 while this thread resolves a call of a module that is about to serve */
    uint32_t spare_record;  /* one more than the index of a free record of the pool that this thread keeps, or 0 */
    plugin_host_tally **tallies; /* atomic chunks, made when they are needed: by number */
    plugin_host_tally uncounted; /* of the numbers for which there is no room */
} plugin_host_thread;

/* A signal handler reads it: initial-exec, never allocated lazily inside the handler because a thread touches it before
 * it runs a module's code. */
extern __thread plugin_host_thread *plugin_host_this_thread __attribute__((tls_model("initial-exec")));
plugin_host_thread *plugin_host_thread_take(void);
/* The thread of this thread; made on first use, null when no more threads can have one. */
static inline plugin_host_thread *plugin_host_thread_current(void) {
    plugin_host_thread *thread = plugin_host_this_thread;
    return __builtin_expect(thread != NULL, 1) ? thread : plugin_host_thread_take();
}
plugin_host_tally *plugin_host_tally_make(plugin_host_thread *thread, uint32_t number);
/* The tally with a number in this thread's own thread. */
__attribute__((always_inline)) static inline plugin_host_tally *plugin_host_tally_own(
    plugin_host_thread *thread, uint32_t number) {
    uint32_t chunk = number / PLUGIN_HOST_TALLIES;
    plugin_host_tally *tallies = chunk < PLUGIN_HOST_TALLIES_CHUNKS ? thread->tallies[chunk] : NULL;
    return __builtin_expect(tallies != NULL, 1) ? tallies + number % PLUGIN_HOST_TALLIES
                                                : plugin_host_tally_make(thread, number);
}
/* Counts a call, or something else, on this thread, and returns how many there were before. */
__attribute__((always_inline)) static inline uint64_t plugin_host_count_call(plugin_host_thread *thread, uint32_t number) {
    plugin_host_tally *tally = plugin_host_tally_own(thread, number);
    uint64_t before = tally->calls;
    __atomic_store_n(&tally->calls, before + 1, __ATOMIC_RELAXED);
    return before;
}
static inline void plugin_host_count_error(plugin_host_thread *thread, uint32_t number) {
    plugin_host_tally *tally = plugin_host_tally_own(thread, number);
    __atomic_store_n(&tally->errors, tally->errors + 1, __ATOMIC_RELAXED);
}
/* The tallies of all threads with a number, those that have ended included. */
plugin_host_tally plugin_host_tally_sum(uint32_t number);
/* CLOCK_MONOTONIC_COARSE, in nanoseconds: a few milliseconds late, and a fifth of the price. */
static inline int64_t plugin_host_coarse_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}
/* All threads that there ever were, as a list. */
plugin_host_thread *plugin_host_threads(void);
/* A new chunk of records for the pool; null when there are no more. */
plugin_host_record *plugin_host_chunk_create(void);
extern plugin_host_record *plugin_host_directory[PLUGIN_HOST_CHUNKS_MAX];
extern uint32_t plugin_host_chunk_count;
/* The record with a number; null when there is none. */
static inline plugin_host_record *plugin_host_record_at(uint32_t index) {
    uint32_t chunk = index / PLUGIN_HOST_CHUNK;
    if (chunk >= __atomic_load_n(&plugin_host_chunk_count, __ATOMIC_ACQUIRE)) return NULL;
    return &plugin_host_directory[chunk][index % PLUGIN_HOST_CHUNK];
}
/* How many records there are. */
uint32_t plugin_host_record_count(void);

/* Fences of two sides, of which one passes many million times for each time that the other does: each stores something,
 * passes its fence, and looks for what the other has stored; at least one of them sees it. The light one costs nothing,
 * since the heavy one makes every running thread of the process pass a barrier, with membarrier(2); where the kernel
 * refuses that, both are fences of the processor. (Known as asymmetric fences, from userspace RCU and C++'s P1202.) */
extern int plugin_host_has_membarrier;
static inline void plugin_host_fence_light(void) {
    if (__builtin_expect(plugin_host_has_membarrier, 1)) __asm__ volatile("" ::: "memory");
    else __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void plugin_host_fence_heavy(void);

/* Installs handlers of fatal signals that write to standard error which module and action was running, and then let
 * the process die of that signal, by way of the handlers that were there before. */
void plugin_host_install_fatal_signal_report(void);

#endif
