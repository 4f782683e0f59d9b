/* plugin_host_hooks.h - threads for code that may never return, and the owners of hooks, stored where no module can
 * reach them. */
#ifndef PLUGIN_HOST_HOOKS_H
#define PLUGIN_HOST_HOOKS_H

#include <stddef.h>
#include <stdint.h>

/* The owner that waits for the hook that this thread runs; 0 for none. */
uintptr_t plugin_host_hook_owner(void);

/* Sets the owner of the hook that this thread runs. */
void plugin_host_set_hook_owner(uintptr_t owner);

/* Starts a detached thread. Returns 0, or the error of pthread_create(3). `name` is for debuggers, and has at most 15
 * bytes. */
int plugin_host_thread_start(const char *name, void *(*run)(void *), void *data);

/* Extends the heap of this thread, so that the next `size` bytes can be allocated without system calls. glibc extends the
 * heap of any thread but the first by one page at a time. Less than 128 KiB: larger blocks are not part of the heap. */
void plugin_host_extend_heap(size_t size);

#endif
