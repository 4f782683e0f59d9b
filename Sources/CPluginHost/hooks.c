#define _GNU_SOURCE
#include "plugin_host_hooks.h"

#include <pthread.h>
#include <stdlib.h>

static __thread uintptr_t hook_owner;

uintptr_t plugin_host_hook_owner(void) { return hook_owner; }

void plugin_host_set_hook_owner(uintptr_t owner) { hook_owner = owner; }

void plugin_host_extend_heap(size_t size) {
    void *volatile block = malloc(size);
    free(block);
}

int plugin_host_thread_start(const char *name, void *(*run)(void *), void *data) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, data);
    if (error) return error;
    pthread_setname_np(thread, name);
    pthread_detach(thread);
    return 0;
}
