/* services.h - an extension: finding the implementation of a service, and waiting for one
 *
 * Calls to a service do not need this extension: they use PLUGIN_ADDRESS_SERVICE. */
#ifndef PLUGIN_ABI_SERVICES_H
#define PLUGIN_ABI_SERVICES_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_SERVICES_EXTENSION "pluginhost.services/1"

/* Each function passes `completion` the error "unknownService", or a map that describes the
 * implementation of the service: "name", "version", "module", "target", "priority", "singleton",
 * "summary", and "file" if a service file, not the module, declares the service. The entries of the
 * map, except an object, are valid for the life of the process. `version` is the lowest acceptable
 * version; empty for any. Names and versions are borrowed. */
typedef struct plugin_services {
    uint32_t size;
    uint32_t reserved;
    /* Describes the implementation of a service, without making an instance. `completion` runs
     * once, on this thread and before this returns. [any thread] */
    void (*info)(const plugin_host *host, plugin_string name, plugin_string version,
                 plugin_completion completion, void *data);
    /* Also makes an instance. The last entry of the map is "object": it performs the actions of the
     * service's target on an instance of its own, which lives as long as the object. The object is
     * borrowed: retain it to keep it. The entry is null for a singleton and for a target without
     * instances, which are called by PLUGIN_ADDRESS_SERVICE. `parent` is as for host->perform.
     * `completion` runs once, on this thread and before this returns. [any thread] */
    void (*request)(const plugin_host *host, plugin_token parent, plugin_string name,
                    plugin_string version, plugin_completion completion, void *data);
    /* Describes the implementation of a service as soon as there is one, or passes the error
     * "deadlineExceeded" after `timeout` nanoseconds (0: the default of the host). `completion`
     * runs once, on any thread, possibly before this returns. Returns a token for host->cancel, or
     * 0 if the wait is over. [any thread] */
    plugin_token (*wait)(const plugin_host *host, plugin_token parent, plugin_string name,
                         plugin_string version, int64_t timeout, plugin_completion completion,
                         void *data);
} plugin_services;

PLUGIN_ABI_ASSERT(sizeof(plugin_services) == 32, "plugin_services");

/* Returns this extension, or null if the host does not have it. [any thread] */
static inline const plugin_services *plugin_services_of(const plugin_host *host) {
    plugin_string identifier = {PLUGIN_SERVICES_EXTENSION, sizeof(PLUGIN_SERVICES_EXTENSION) - 1};
    return (const plugin_services *)host->get_extension(host, identifier);
}

#ifdef __cplusplus
}
#endif

#endif
