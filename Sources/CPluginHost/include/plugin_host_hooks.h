/* plugin_host_hooks.h - for whom a thread runs a hook, where no module can reach it. */
#ifndef PLUGIN_HOST_HOOKS_H
#define PLUGIN_HOST_HOOKS_H

#include <stdint.h>

/* Who waits for the hook that this thread runs; 0 for nobody. */
uintptr_t plugin_host_hook_owner(void);

/* Says it. */
void plugin_host_set_hook_owner(uintptr_t owner);

#endif
