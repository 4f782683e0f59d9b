/* chain.h - an extension: events that go up a chain of objects
 *
 * An object can have a parent: that of a page that a navigator shows is the page below. A request
 * with the address PLUGIN_ADDRESS_CHAIN asks the object where it starts to handle the event, then
 * the parent of that object and so on, then the module of the object, then the program, until one
 * has handled it. It starts at `object`; if that is 0, at the object that the parent call works on;
 * if there is none, at the module that calls.
 *
 * A handler is an action "handle.EVENT" of the object's type, or of a target of the module. It gets
 * those parameters of the event that it declares, and as "_event" (string) the name, as
 * "_parameters" (map) all of them, if it declares these. It replies with
 *  - null or true: it has handled the event, and nobody else is asked;
 *  - false: the next one is asked;
 *  - a map with any of "handled" (bool; default false), "result" (any) and "parameters" (map; what
 *    the next ones get in place of the event's).
 * If it fails, the next one is asked, with the parameters that it got.
 *
 * The result of the request is a map: "handled" (bool), "handler" (string, who it was, or null),
 * "result" (any), "parameters" (map, as they were at the end) and "failures" (list), with a map of
 * "code", "message" and "source" for each handler that failed. host->perform cannot ask
 * asynchronous handlers, which count as failed; host->call can. */
#ifndef PLUGIN_ABI_CHAIN_H
#define PLUGIN_ABI_CHAIN_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_CHAIN_EXTENSION "pluginhost.chain/1"

#define PLUGIN_PARENT_SET 0
#define PLUGIN_PARENT_GONE 1     /* the object or the parent has no holder: nothing has happened */
#define PLUGIN_PARENT_CIRCULAR 2 /* the object is the parent, or above it: nothing has happened */

typedef struct plugin_chain {
    uint32_t size;
    uint32_t reserved;
    /* Returns the object whose action a call is, borrowed while the call runs; 0 for an action of a
     * target. [any thread] */
    plugin_object (*receiver)(const plugin_host *host, plugin_token call);
    /* Gives an object a parent, or none if that is 0. It does not retain the parent. Returns
     * PLUGIN_PARENT_... [any thread] */
    int32_t (*set_parent)(const plugin_host *host, plugin_object object, plugin_object parent);
} plugin_chain;

PLUGIN_ABI_ASSERT(sizeof(plugin_chain) == 24, "plugin_chain");

#ifdef __cplusplus
}
#endif

#endif
