/* instances.h - targets with instances: making them, and an extension for dropping them
 *
 * The manifest says for a target "instance": "shared", for one that all calls use, or "perCall",
 * for one for each call. Its actions find it in call->instance. */
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
    /* Returns an instance, which is the host's until `destroy`, or null if none can be made; then
     * it may reject call->token to say why. `call` is borrowed, and is not for plugin_reply.
     * [any thread; for a shared instance one at a time] */
    void *(*make)(void *data, const plugin_call *call);
    /* Gets an instance back when the host needs it no longer. [any thread] */
    void (*destroy)(void *data, void *instance);
    void *data; /* passed to both */
};

#define PLUGIN_INSTANCES_EXTENSION "pluginhost.instances/1"

typedef struct plugin_instances {
    uint32_t size;
    uint32_t reserved;
    /* Drops the instance that the calls of a target share: the next call makes another.
     * `completion` runs once, on this thread and before this returns: with a bool, whether there
     * was one, or with the error "unknownTarget". Borrows `target`. [any thread] */
    void (*release)(const plugin_host *host, plugin_string target, plugin_completion completion,
                    void *data);
} plugin_instances;

PLUGIN_ABI_ASSERT(sizeof(plugin_factory) == 40, "plugin_factory");
PLUGIN_ABI_ASSERT(sizeof(plugin_instances) == 16, "plugin_instances");

#ifdef __cplusplus
}
#endif

#endif
