/* types.h - an extension of a module: the types that it derives from its code
 *
 * A manifest that is written by hand names the types of parameters and results itself: "Draft",
 * "list<Draft>", "bytes?", with the records and enumerations under "values". A module in Swift
 * derives them, and runs code of its author to do so. A host that runs the module therefore never
 * asks for this extension; tools such as `pluginhost facade` do, in a process of their own. */
#ifndef PLUGIN_ABI_TYPES_H
#define PLUGIN_ABI_TYPES_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_TYPES_EXTENSION "pluginhost.types/1"

/* Static, like the description. */
typedef struct plugin_types {
    plugin_string manifest; /* that of the description, with types */
    plugin_string notes;    /* what has no type, and why, one per line; may be empty */
} plugin_types;

typedef struct plugin_type_derivation {
    uint32_t size;
    uint32_t reserved;
    /* Derives the types. `begin` (may be null) is called with the name of each type just before
     * code of the type runs, because that code may crash. `without`: the names of types whose code
     * must not run, one per line. [one at a time] */
    plugin_types (*derive)(void *data, plugin_string without,
                           void (*begin)(void *context, plugin_string type), void *context);
} plugin_type_derivation;

PLUGIN_ABI_ASSERT(sizeof(plugin_types) == 32, "plugin_types");
PLUGIN_ABI_ASSERT(sizeof(plugin_type_derivation) == 16, "plugin_type_derivation");

/* Returns this extension of a module, or null if the module does not have it. [one at a time] */
static inline const plugin_type_derivation *plugin_type_derivation_of(const plugin_module *module) {
    plugin_string identifier = {PLUGIN_TYPES_EXTENSION, sizeof(PLUGIN_TYPES_EXTENSION) - 1};
    if (!module->get_extension) return NULL;
    return (const plugin_type_derivation *)module->get_extension(module->data, identifier);
}

#ifdef __cplusplus
}
#endif

#endif
