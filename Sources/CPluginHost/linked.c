#include "include/plugin_host_linked.h"

typedef const void *(*entry_function)(void);

/* The linker defines these if the section exists; weak, because most programs have no linked modules. */
extern const entry_function __start_plugin_modules[] __attribute__((weak, visibility("hidden")));
extern const entry_function __stop_plugin_modules[] __attribute__((weak, visibility("hidden")));

size_t plugin_host_linked_count(void) { return (size_t)(__stop_plugin_modules - __start_plugin_modules); }

const void *plugin_host_linked_description(size_t index) {
    entry_function entry = __start_plugin_modules[index];
    return entry ? entry() : NULL;
}
