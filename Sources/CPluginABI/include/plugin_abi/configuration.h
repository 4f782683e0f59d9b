/* configuration.h - an extension: the current configuration of the module */
#ifndef PLUGIN_ABI_CONFIGURATION_H
#define PLUGIN_ABI_CONFIGURATION_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_CONFIGURATION_EXTENSION "pluginhost.configuration/1"

typedef struct plugin_configuration {
    uint32_t size;
    uint32_t reserved;
    /* Calls `receiver` once, on this thread and before this returns, with a map: the current
     * configuration of the module, or an empty map if there is none. The map is borrowed until
     * `receiver` returns. The configuration can change while the module runs. [any thread] */
    void (*read)(const plugin_host *host,
                 void (*receiver)(void *data, const plugin_value *configuration), void *data);
} plugin_configuration;

PLUGIN_ABI_ASSERT(sizeof(plugin_configuration) == 16, "plugin_configuration");

/* Returns this extension, or null if the host does not have it. [any thread] */
static inline const plugin_configuration *plugin_configuration_of(const plugin_host *host) {
    plugin_string identifier = {PLUGIN_CONFIGURATION_EXTENSION,
                                sizeof(PLUGIN_CONFIGURATION_EXTENSION) - 1};
    return (const plugin_configuration *)host->get_extension(host, identifier);
}

#ifdef __cplusplus
}
#endif

#endif
