/* chain.h - an extension: events that go up a chain of objects
 *
 * An object can have a parent. The parent of a page that a navigator shows is the page below it. A
 * request with the address PLUGIN_ADDRESS_CHAIN asks an object to handle the event, then the parent
 * of that object and so on, then the module of the first object, then the program, until one of
 * them has handled it. The chain starts at `object`; if that is 0, at the receiver of the parent
 * call; if there is none, at the calling module.
 *
 * A handler is an action "handle.EVENT" of the object's type, or of a target of the module; or an
 * action of any name whose declaration has "handles": "PREFIX", which handles all events that begin
 * with the prefix; an empty one means all events. The handler of the event itself is asked first,
 * then longer prefixes before shorter ones. A handler gets those parameters of the event that it
 * declares. If it declares "_event" (string) or "_parameters" (map), it gets the name of the event,
 * or all parameters. It replies with
 *  - null or true: it has handled the event, and no other handler is asked;
 *  - false: the next handler is asked;
 *  - a map with any of "handled" (bool; default false), "result" (any) and "parameters" (map;
 *    replaces the parameters of the event for the next handlers).
 * If it fails, the next handler is asked, with the parameters that the failed one got.
 *
 * The result of the request is a map: "handled" (bool), "handler" (string that names the handler,
 * or null), "result" (any), "parameters" (map, as they were at the end) and "failures" (list),
 * which has a map of "code", "message" and "source" for each handler that failed. host->perform
 * cannot ask asynchronous handlers, which count as failed; host->call can. */
#ifndef PLUGIN_ABI_CHAIN_H
#define PLUGIN_ABI_CHAIN_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_CHAIN_EXTENSION "pluginhost.chain/1"

#define PLUGIN_PARENT_SET 0
#define PLUGIN_PARENT_GONE 1     /* the object or the parent has no holder; nothing was done */
#define PLUGIN_PARENT_CIRCULAR 2 /* the object is the parent, or above it; nothing was done */

typedef struct plugin_chain {
    uint32_t size;
    uint32_t reserved;
    /* Returns the receiver of a call, the object whose action runs, borrowed while the call runs; 0
     * for an action of a target. [any thread] */
    plugin_object (*receiver)(const plugin_host *host, plugin_token call);
    /* Sets the parent of an object; 0 removes it. Does not retain the parent. Returns
     * PLUGIN_PARENT_... [any thread] */
    int32_t (*set_parent)(const plugin_host *host, plugin_object object, plugin_object parent);
} plugin_chain;

PLUGIN_ABI_ASSERT(sizeof(plugin_chain) == 24, "plugin_chain");

/* Returns this extension, or null if the host does not have it. [any thread] */
static inline const plugin_chain *plugin_chain_of(const plugin_host *host) {
    plugin_string identifier = {PLUGIN_CHAIN_EXTENSION, sizeof(PLUGIN_CHAIN_EXTENSION) - 1};
    return (const plugin_chain *)host->get_extension(host, identifier);
}

#ifdef __cplusplus
}
#endif

#endif
