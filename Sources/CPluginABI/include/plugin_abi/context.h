/* context.h - an extension: the information that a module gets when it is loaded */
#ifndef PLUGIN_ABI_CONTEXT_H
#define PLUGIN_ABI_CONTEXT_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_CONTEXT_EXTENSION "pluginhost.context/1"

/* Constant and valid for the life of the process, including the memory that it points to. */
typedef struct plugin_context {
    uint32_t size;
    uint32_t reserved;
    plugin_string module; /* the name in the manifest */
    plugin_string file;   /* the file in the plugins folder; the host runs a copy of it */
    plugin_string folder; /* the folder of that file, which may contain its resources; empty if the
                           * module is linked into the program */
    plugin_value configuration; /* a map: the configuration of the module when it was loaded, or
                                 * empty; configuration.h has the current one */
    plugin_value values; /* a map, the same for all modules: "environment" (string), "arguments"
                          * (list of strings), "launchTime" (double, seconds since 1970) and
                          * "values" (map, set by the program) */
} plugin_context;

PLUGIN_ABI_ASSERT(sizeof(plugin_context) == 88, "plugin_context");

/* Returns this extension, or null if the host does not have it. [any thread] */
static inline const plugin_context *plugin_context_of(const plugin_host *host) {
    plugin_string identifier = {PLUGIN_CONTEXT_EXTENSION, sizeof(PLUGIN_CONTEXT_EXTENSION) - 1};
    return (const plugin_context *)host->get_extension(host, identifier);
}

#ifdef __cplusplus
}
#endif

#endif
