/* bound.h - an extension: names that are resolved once, for an action that is called many times
 *
 * A bound action is a number. A request with the address PLUGIN_ADDRESS_BOUND and that number as
 * its object is the same call as one by target and action, with the same checks and errors, but
 * without the lookup. A bound action is not tied to a loaded version of the module: when modules
 * are added, replaced or removed, the next call goes where a call by name would go. */
#ifndef PLUGIN_ABI_BOUND_H
#define PLUGIN_ABI_BOUND_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_BOUND_EXTENSION "pluginhost.bound/1"

typedef uint64_t plugin_bound_action; /* 0 is none */

typedef struct plugin_bound {
    uint32_t size;
    uint32_t reserved;
    /* Returns the bound action for an action of a target. The module need not be loaded yet; until
     * it is, calls fail. Equal names give equal numbers, and a number need not be released. Returns
     * 0 if the names are not valid UTF-8, or if too many other names are bound; at least 100000 can
     * be. Borrows the names. [any thread] */
    plugin_bound_action (*bind)(const plugin_host *host, plugin_string target,
                                plugin_string action);
    /* Calls a synchronous bound action with `count` arguments in declared order, followed by the
     * rest, if the action has one: a map, which can be left out. This has the effect of
     * host->perform with a request for it and 0 as the parent, but is faster.
     *
     * Returns 1 if the result is in `result`: null, a bool, an int or a double. Returns 0 if
     * `completion` has received the outcome instead, of any kind, as for host->perform; `result` is
     * then unchanged. If `result` is a null pointer, `completion` always receives the outcome.
     * Borrows `arguments`, which must not change until this returns. [any thread] */
    int32_t (*perform)(const plugin_host *host, plugin_bound_action action,
                       const plugin_value *arguments, uint32_t count, plugin_value *result,
                       plugin_completion completion, void *data);
} plugin_bound;

PLUGIN_ABI_ASSERT(sizeof(plugin_bound) == 24, "plugin_bound");

/* Returns this extension, or null if the host does not have it. [any thread] */
static inline const plugin_bound *plugin_bound_of(const plugin_host *host) {
    plugin_string identifier = {PLUGIN_BOUND_EXTENSION, sizeof(PLUGIN_BOUND_EXTENSION) - 1};
    return (const plugin_bound *)host->get_extension(host, identifier);
}

#ifdef __cplusplus
}
#endif

#endif
