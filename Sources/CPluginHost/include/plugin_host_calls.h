/*
 * plugin_host_calls.h - the records of running calls, in memory that is never freed.
 *
 * Every running call has a record. The record of a synchronous call is in the context of its thread; the record of an
 * asynchronous call is in a chunk of the pool. Each chunk has 128 records and all chunks are listed in one directory,
 * so a record is identified by a number. A token contains this number, so it can never refer to anything but a record.
 * The records are in C because a signal handler reads them, and because a thread finds its context through a
 * thread-local variable that no module can reach.
 *
 * The members that several threads use are accessed with atomic operations only (from Swift, see CallRecord.swift).
 */
#ifndef PLUGIN_HOST_CALLS_H
#define PLUGIN_HOST_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define PLUGIN_HOST_CHUNK 128       /* records in a chunk; also the nesting limit of synchronous calls on a thread */
#define PLUGIN_HOST_CHUNKS_MAX 65536 /* chunks in the directory */

typedef struct plugin_host_record {
    uint64_t state;      /* atomic: sequence << 2 | phase */
    uint64_t endpoint;   /* atomic: the Endpoint that runs, an unretained reference; 0 if the record is free */
    const char *label;   /* the running action, for the report; from plugin_host_label_create, never freed */
    uint64_t parent;     /* atomic: the token of the call that this one is made for, or 0 */
    void (*completion)(void *data, const void *value, const void *error);
    void *data;
    int64_t deadline;    /* atomic: CLOCK_MONOTONIC nanoseconds, 0 for none */
    uint64_t replier;    /* atomic: the context of the thread that replies */
    uint64_t stands_for; /* the token of the asynchronous call whose beginning runs here, or 0 */
    uint64_t object;     /* atomic: the object that the call references, or 0 */
    uint64_t replied_within; /* the token of the reply that this thread was already giving when it began this one */
    uint64_t caller;     /* atomic: the Generation that called and may cancel, unretained; 0 for the host itself */
    int64_t since;       /* atomic: CLOCK_MONOTONIC_COARSE nanoseconds at which the call began */
    int64_t started;     /* in the pool: CLOCK_MONOTONIC nanoseconds if the duration is measured, else 0 */
    void *instance;      /* made for this call alone, to be destroyed after it */
    void (*cancel_handler)(void *data, int32_t cancelled); /* guarded by `lock` */
    void *cancel_data;
    uint32_t lock;       /* atomic: 1 while a thread uses the cancel handler */
    uint32_t index;      /* chunk * PLUGIN_HOST_CHUNK + position in the chunk */
    uint64_t depth;      /* atomic: in its low 16 bits, the number of calls in the chain that led to this one,
                          * including it; above them, the number of their call context, or 0; see
                          * CallContexts.swift */
    uint32_t references; /* atomic: in the pool, the users of the record: the running action and the reply */
    uint16_t flags;      /* see CallRecord.swift */
    uint16_t is_pooled;  /* 1 in the pool, 0 in a thread context; never changes */
    uint64_t last_endpoint; /* atomic: the Endpoint that ran last, unretained, for the report of a second reply */
} plugin_host_record;

/* The tally of one action on one thread: the number of its calls and of its errors. (Other things are counted in
 * tallies, too, such as entries dropped from a profile.) Written by that thread alone, so counting costs no more than
 * an addition; readers sum the tallies of all threads. */
typedef struct plugin_host_tally {
    uint64_t calls;  /* atomic; or the count of something else */
    uint64_t errors; /* atomic */
} plugin_host_tally;

#define PLUGIN_HOST_TALLIES 256          /* in a chunk */
#define PLUGIN_HOST_TALLIES_CHUNKS 16384 /* per thread; numbers beyond are not counted */
#define PLUGIN_HOST_PARAMETERS 8         /* events whose parameters a thread keeps */

/* What a thread keeps to pass the parameters of events on to the program's handlers: see KeptParameters. */
typedef struct plugin_host_parameters {
    void *kept;
    uint64_t others; /* a hash of the names of the last parameters that were not the kept ones, or 0 */
} plugin_host_parameters;

typedef struct plugin_host_thread {
    uint64_t epoch;      /* atomic: the registry's epoch while this thread reads the table, else 0 */
    uint32_t depth;      /* synchronous calls that run on this thread */
    uint32_t is_used;    /* guarded by the directory's lock */
    uint64_t replying;   /* the token of the call whose outcome this thread is reporting to the caller, or 0 */
    plugin_host_record *records; /* a chunk */
    struct plugin_host_thread *next; /* of all threads */
    uint32_t table;         /* which table this thread reads: 0 the published one; see Registry for the others */
    uint32_t spare_record;  /* one more than the index of a free record of the pool that this thread keeps, or 0 */
    plugin_host_tally **tallies; /* atomic chunks by number, created when they are needed */
    plugin_host_tally uncounted; /* for numbers for which there is no room */
    plugin_host_parameters parameters[PLUGIN_HOST_PARAMETERS];
} plugin_host_thread;

/* The context of this thread. A signal handler reads it, so it is initial-exec. It is never allocated lazily inside the
 * handler, because a thread accesses its context before it runs code of a module. */
extern __thread plugin_host_thread *plugin_host_this_thread __attribute__((tls_model("initial-exec")));
plugin_host_thread *plugin_host_thread_take(void);
/* Returns the context of this thread, created on first use; null if no more threads can have one. */
static inline plugin_host_thread *plugin_host_thread_current(void) {
    plugin_host_thread *thread = plugin_host_this_thread;
    return __builtin_expect(thread != NULL, 1) ? thread : plugin_host_thread_take();
}
plugin_host_tally *plugin_host_tally_make(plugin_host_thread *thread, uint32_t number);
/* Returns the tally with a number in the context of this thread. */
__attribute__((always_inline)) static inline plugin_host_tally *plugin_host_tally_own(
    plugin_host_thread *thread, uint32_t number) {
    uint32_t chunk = number / PLUGIN_HOST_TALLIES;
    plugin_host_tally *tallies = chunk < PLUGIN_HOST_TALLIES_CHUNKS ? thread->tallies[chunk] : NULL;
    return __builtin_expect(tallies != NULL, 1) ? tallies + number % PLUGIN_HOST_TALLIES
                                                : plugin_host_tally_make(thread, number);
}
/* Counts a call, or something else, on this thread, and returns the previous count. */
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
/* Returns where the context of this thread keeps the parameters of an event, by the number of its endpoint. */
static inline plugin_host_parameters *plugin_host_parameters_of(plugin_host_thread *thread, uint32_t number) {
    return &thread->parameters[number % PLUGIN_HOST_PARAMETERS];
}
/* Returns the sum of the tallies with a number across all threads, including those that have ended. */
plugin_host_tally plugin_host_tally_sum(uint32_t number);
/* CLOCK_MONOTONIC_COARSE, in nanoseconds: a few milliseconds late, at a fifth of the cost of CLOCK_MONOTONIC. */
static inline int64_t plugin_host_coarse_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}
/* The list of all thread contexts that ever existed. */
plugin_host_thread *plugin_host_threads(void);
/* Creates a chunk of records for the pool; null if there can be no more. */
plugin_host_record *plugin_host_chunk_create(void);
extern plugin_host_record *plugin_host_directory[PLUGIN_HOST_CHUNKS_MAX];
extern uint32_t plugin_host_chunk_count;
/* Returns the record with a number; null if there is none. */
static inline plugin_host_record *plugin_host_record_at(uint32_t index) {
    uint32_t chunk = index / PLUGIN_HOST_CHUNK;
    if (chunk >= __atomic_load_n(&plugin_host_chunk_count, __ATOMIC_ACQUIRE)) return NULL;
    return &plugin_host_directory[chunk][index % PLUGIN_HOST_CHUNK];
}
/* The number of records. */
uint32_t plugin_host_record_count(void);
/* Returns the first record from `record` up to `end` that a call occupies; `end` if there is none. */
plugin_host_record *plugin_host_record_find(plugin_host_record *record, const plugin_host_record *end);

/* A pair of asymmetric fences (known from userspace RCU and C++'s P1202), for two sides, one of which runs millions of
 * times as often as the other. Each side stores something, passes its fence, and reads what the other has stored; at
 * least one of them sees the other's store. The light fence costs nothing, because the heavy one makes every running
 * thread of the process pass a barrier, with membarrier(2). If the kernel refuses that, both are fences of the
 * processor. */
extern int plugin_host_has_membarrier;
static inline void plugin_host_fence_light(void) {
    if (__builtin_expect(plugin_host_has_membarrier, 1)) __asm__ volatile("" ::: "memory");
    else __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void plugin_host_fence_heavy(void);

/* Installs handlers of fatal signals, which write to standard error which module and action were running. The process
 * then dies of the signal, through the handlers that were installed before. */
void plugin_host_install_fatal_signal_report(void);

#endif
