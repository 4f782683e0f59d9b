#include "plugin_host_hooks.h"

static __thread uintptr_t hook_owner;

uintptr_t plugin_host_hook_owner(void) { return hook_owner; }

void plugin_host_set_hook_owner(uintptr_t owner) { hook_owner = owner; }
