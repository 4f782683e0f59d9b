/* plugin_host_hooks.h - threads for code that may not return, and for whom they run it, where no module can reach it. */
#ifndef PLUGIN_HOST_HOOKS_H
#define PLUGIN_HOST_HOOKS_H

#include <stdint.h>

/* Who waits for the hook that this thread runs; 0 for nobody. */
uintptr_t plugin_host_hook_owner(void);

/* Says it. */
void plugin_host_set_hook_owner(uintptr_t owner);

/* Starts a detached thread: 0, or the error of pthread_create(3). The name, for debuggers, has at most 15 bytes. */
int plugin_host_thread_start(const char *name, void *(*run)(void *), void *data);

#endif
