#define _GNU_SOURCE
#include "plugin_host_calls.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread_context.h"

__thread plugin_host_thread *plugin_host_this_thread;

plugin_host_record *plugin_host_directory[PLUGIN_HOST_CHUNKS_MAX];
uint32_t plugin_host_chunk_count;
static plugin_host_thread *threads;
static pthread_mutex_t directory_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;

/* The caller must have locked `directory_lock`. */
static plugin_host_record *add_chunk(uint32_t is_pooled) {
    uint32_t chunk = __atomic_load_n(&plugin_host_chunk_count, __ATOMIC_RELAXED);
    if (chunk == PLUGIN_HOST_CHUNKS_MAX) return NULL;
    plugin_host_record *records = calloc(PLUGIN_HOST_CHUNK, sizeof *records);
    if (!records) return NULL;
    for (uint32_t index = 0; index < PLUGIN_HOST_CHUNK; index++) {
        records[index].index = chunk * PLUGIN_HOST_CHUNK + index;
        records[index].state = 1u << 2; /* ensures that no token is ever 0 */
        records[index].is_pooled = (uint16_t)is_pooled;
    }
    plugin_host_directory[chunk] = records;
    __atomic_store_n(&plugin_host_chunk_count, chunk + 1, __ATOMIC_RELEASE);
    return records;
}

plugin_host_record *plugin_host_chunk_create(void) {
    pthread_mutex_lock(&directory_lock);
    plugin_host_record *records = add_chunk(1);
    pthread_mutex_unlock(&directory_lock);
    return records;
}

uint32_t plugin_host_record_count(void) {
    return __atomic_load_n(&plugin_host_chunk_count, __ATOMIC_ACQUIRE) * PLUGIN_HOST_CHUNK;
}

plugin_host_record *plugin_host_record_find(plugin_host_record *record, const plugin_host_record *end) {
    while (record != end && !__atomic_load_n(&record->endpoint, __ATOMIC_ACQUIRE)) record++;
    return record;
}

plugin_host_thread *plugin_host_threads(void) { return __atomic_load_n(&threads, __ATOMIC_ACQUIRE); }

static void give_thread_back(void *pointer) {
    plugin_host_thread *thread = pointer;
    plugin_host_this_thread = NULL;
    plugin_host_remove_signal_stack();
    pthread_mutex_lock(&directory_lock);
    thread->is_used = 0;
    pthread_mutex_unlock(&directory_lock);
}

static void make_thread_key(void) { pthread_key_create(&thread_key, give_thread_back); }

plugin_host_thread *plugin_host_thread_take(void) {
    pthread_once(&thread_key_once, make_thread_key);
    pthread_mutex_lock(&directory_lock);
    plugin_host_thread *thread = threads;
    while (thread && thread->is_used) thread = thread->next;
    if (!thread) {
        plugin_host_record *records = add_chunk(0);
        /* The list of chunks is large and mostly untouched; untouched memory costs nothing. */
        plugin_host_tally **tallies = records ? calloc(PLUGIN_HOST_TALLIES_CHUNKS, sizeof *tallies) : NULL;
        thread = tallies ? calloc(1, sizeof *thread) : NULL;
        if (thread) {
            thread->tallies = tallies;
            thread->records = records;
            thread->next = threads;
            __atomic_store_n(&threads, thread, __ATOMIC_RELEASE);
        }
    }
    if (thread) thread->is_used = 1;
    pthread_mutex_unlock(&directory_lock);
    if (!thread) return NULL;
    pthread_setspecific(thread_key, thread);
    plugin_host_this_thread = thread;
    plugin_host_add_signal_stack();
    return thread;
}

plugin_host_tally *plugin_host_tally_make(plugin_host_thread *thread, uint32_t number) {
    uint32_t chunk = number / PLUGIN_HOST_TALLIES;
    plugin_host_tally *tallies =
        chunk < PLUGIN_HOST_TALLIES_CHUNKS ? calloc(PLUGIN_HOST_TALLIES, sizeof *tallies) : NULL;
    if (!tallies) return &thread->uncounted;
    __atomic_store_n(&thread->tallies[chunk], tallies, __ATOMIC_RELEASE);
    return tallies + number % PLUGIN_HOST_TALLIES;
}

plugin_host_tally plugin_host_tally_sum(uint32_t number) {
    plugin_host_tally sum = {0, 0};
    uint32_t chunk = number / PLUGIN_HOST_TALLIES;
    if (chunk >= PLUGIN_HOST_TALLIES_CHUNKS) return sum;
    for (plugin_host_thread *thread = plugin_host_threads(); thread; thread = thread->next) {
        plugin_host_tally *tallies = __atomic_load_n(&thread->tallies[chunk], __ATOMIC_ACQUIRE);
        if (!tallies) continue;
        sum.calls += __atomic_load_n(&tallies[number % PLUGIN_HOST_TALLIES].calls, __ATOMIC_RELAXED);
        sum.errors += __atomic_load_n(&tallies[number % PLUGIN_HOST_TALLIES].errors, __ATOMIC_RELAXED);
    }
    return sum;
}

int plugin_host_has_membarrier;

/* Runs before any fence is passed. */
__attribute__((constructor)) static void prepare_membarrier(void) {
    plugin_host_has_membarrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void plugin_host_fence_heavy(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (plugin_host_has_membarrier) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}
