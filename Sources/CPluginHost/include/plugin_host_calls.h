/*
 * plugin_host_calls.h - the records of running calls, in memory that is never freed.
 *
 * Every call that runs has a record: a synchronous call in the lane of its thread, an asynchronous one in a chunk of
 * the pool. Records lie in chunks of 128, chunks are listed in one directory, and so a record is named by a number:
 * that is what a token holds, and why a token can never point to something else. C keeps them because a signal handler
 * reads them, and because a thread finds its lane through a thread-local that no module can reach.
 *
 * The members that several threads use are accessed with atomic operations only (from Swift, see CallRecord.swift).
 */
#ifndef PLUGIN_HOST_CALLS_H
#define PLUGIN_HOST_CALLS_H

#include <stdint.h>

#define PLUGIN_HOST_CHUNK 128       /* records in a chunk; also how deep synchronous calls nest on a thread */
#define PLUGIN_HOST_CHUNKS_MAX 65536 /* chunks in the directory */

typedef struct plugin_host_record {
    uint64_t state;      /* atomic: sequence << 2 | phase */
    uint64_t endpoint;   /* atomic: the Endpoint that runs, an unretained reference; 0 when the record is free */
    const char *label;   /* what runs, for a person; NUL-terminated, never freed */
    uint64_t parent;     /* atomic: the token of the call that this one is made for, or 0 */
    void (*completion)(void *data, const void *value, const void *error);
    void *data;
    int64_t deadline;    /* atomic: CLOCK_MONOTONIC nanoseconds, 0 for none */
    uint64_t replier;    /* atomic: the lane of the thread that replies */
    uint64_t stands_for; /* the token of the asynchronous call whose beginning runs here, or 0 */
    uint64_t object;     /* the object that the call holds, or 0 */
    uint64_t replied_within; /* the token of the reply that this thread gave already when it began to give this one */
    void *instance;      /* made for this call alone, to be destroyed after it */
    void (*cancel_handler)(void *data, int32_t cancelled); /* guarded by `lock` */
    void *cancel_data;
    uint32_t lock;       /* atomic: 1 while somebody uses the cancel handler */
    uint32_t index;      /* chunk * PLUGIN_HOST_CHUNK + place in it */
    uint32_t depth;      /* atomic: how many calls led here */
    uint32_t flags;      /* see CallRecord.swift */
    uint32_t holds;      /* atomic: of the pool: what still needs the record, the action that runs and the reply */
    uint32_t is_pooled;  /* 1 in the pool, 0 in a lane; never changes */
} plugin_host_record;

typedef struct plugin_host_lane {
    uint64_t epoch;      /* atomic: the registry's epoch while this thread reads the table, else 0 */
    uint32_t depth;      /* synchronous calls that run on this thread */
    uint32_t is_used;    /* guarded by the directory's lock */
    uint64_t replying;   /* the token of the call whose caller this thread tells the outcome, or 0 */
    plugin_host_record *records; /* a chunk */
    struct plugin_host_lane *next; /* of all lanes */
} plugin_host_lane;

/* The lane of this thread; made on first use, null when no more threads can have one. */
plugin_host_lane *plugin_host_lane_current(void);
/* All lanes that there ever were, as a list. */
plugin_host_lane *plugin_host_lanes(void);
/* A new chunk of records for the pool; null when there are no more. */
plugin_host_record *plugin_host_chunk_create(void);
/* The record with a number; null when there is none. */
plugin_host_record *plugin_host_record_at(uint32_t index);
/* How many records there are. */
uint32_t plugin_host_record_count(void);

/* Makes the whole process see its memory in order, so that readers need no fence of their own: membarrier(2).
 * plugin_host_membarrier_prepare returns 0 where the kernel has it, else readers must fence. */
int plugin_host_membarrier_prepare(void);
void plugin_host_membarrier(void);
/* Keeps the compiler from moving memory accesses past it. */
static inline void plugin_host_compiler_barrier(void) { __asm__ volatile("" ::: "memory"); }

/* Says what runs on this thread while no call does (the loading of a file), for the report; null for nothing. */
void plugin_host_set_step(const char *label);

/* Tells the report where a module's code lies. `label` is never freed. */
void plugin_host_add_image(const void *address, const char *label);

/* Installs handlers of fatal signals that write to standard error which module and action was running, and then let
 * the process die of that signal, by way of the handlers that were there before. */
void plugin_host_install_fatal_signal_report(void);

#endif
