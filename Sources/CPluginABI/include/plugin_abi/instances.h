/* instances.h - targets with instances: making them, and an extension for dropping them
 *
 * In the manifest, a target declares "instance": "shared" for one instance that all calls use, or
 * "perCall" for an instance for each call. Its actions find the instance in call->instance. */
#ifndef PLUGIN_ABI_INSTANCES_H
#define PLUGIN_ABI_INSTANCES_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes and destroys the instances of a target. */
struct plugin_factory {
    plugin_string target;
    /* Returns an instance, which the host owns until `destroy`; or null if none can be made, in
     * which case it may reject call->token with the reason. `call` is borrowed, and must not be
     * passed to plugin_reply. [any thread; for a shared instance one at a time] */
    void *(*make)(void *data, const plugin_call *call);
    /* Destroys an instance that the host no longer needs. [any thread] */
    void (*destroy)(void *data, void *instance);
    void *data; /* passed to both */
};

#define PLUGIN_INSTANCES_EXTENSION "pluginhost.instances/1"

typedef struct plugin_instances {
    uint32_t size;
    uint32_t reserved;
    /* Drops the instance that the calls of a target share: the next call makes another one.
     * `completion` runs once, on this thread and before this returns: with a bool that states
     * whether there was one, or with the error "unknownTarget". Borrows `target`. [any thread] */
    void (*release)(const plugin_host *host, plugin_string target, plugin_completion completion,
                    void *data);
} plugin_instances;

PLUGIN_ABI_ASSERT(sizeof(plugin_factory) == 40, "plugin_factory");
PLUGIN_ABI_ASSERT(sizeof(plugin_instances) == 16, "plugin_instances");

/* Returns this extension, or null if the host does not have it. [any thread] */
static inline const plugin_instances *plugin_instances_of(const plugin_host *host) {
    plugin_string identifier = {PLUGIN_INSTANCES_EXTENSION, sizeof(PLUGIN_INSTANCES_EXTENSION) - 1};
    return (const plugin_instances *)host->get_extension(host, identifier);
}

#ifdef __cplusplus
}
#endif

#endif
