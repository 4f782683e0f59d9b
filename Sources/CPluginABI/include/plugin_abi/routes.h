/* routes.h - an extension: questions about URLs
 *
 * A manifest declares routes to its own actions. A group of the pattern provides the parameter of
 * the same name; other programs reach the action only if it declares "remote": true.
 *
 *     "routes": [{"pattern": "ledger://account/:name", "action": "Ledger/open"}]
 *
 * A route with a "method" matches only requests with that method. Routes with the same pattern
 * conflict unless each has a method of its own. A URL that is opened without a method is opened
 * with GET.
 *
 * An action that declares the parameter _url, _pattern or _object gets the URL, the pattern of its
 * route, or whether the caller wants an object (PLUGIN_REQUEST_OBJECT). */
#ifndef PLUGIN_ABI_ROUTES_H
#define PLUGIN_ABI_ROUTES_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_ROUTES_EXTENSION "pluginhost.routes/1"

/* The HTTP methods that a request for a URL can have. */
#define PLUGIN_METHOD_GET 1u
#define PLUGIN_METHOD_POST 2u
#define PLUGIN_METHOD_PUT 3u
#define PLUGIN_METHOD_PATCH 4u
#define PLUGIN_METHOD_DELETE 5u

typedef struct plugin_routes {
    uint32_t size;
    uint32_t reserved;
    /* Returns 1 if opening a URL would reach an action: the URL resolves, its parameters are valid,
     * and the program's guard lets it pass. Otherwise returns 0. `parent` and `request` are as for
     * host->perform, with the address PLUGIN_ADDRESS_URL. Borrows `request`. [any thread] */
    int32_t (*can_open)(const plugin_host *host, plugin_token parent,
                        const plugin_request *request);
    /* Builds the URL of a route. The target of `request` is the name of the route or its pattern;
     * the parameters, by name, are the values for its groups and for the query. Borrows `request`.
     * `completion` runs once, on this thread and before this returns, with a string or an error.
     * [any thread] */
    void (*build)(const plugin_host *host, const plugin_request *request,
                  plugin_completion completion, void *data);
} plugin_routes;

PLUGIN_ABI_ASSERT(sizeof(plugin_routes) == 24, "plugin_routes");

/* Returns this extension, or null if the host does not have it. [any thread] */
static inline const plugin_routes *plugin_routes_of(const plugin_host *host) {
    plugin_string identifier = {PLUGIN_ROUTES_EXTENSION, sizeof(PLUGIN_ROUTES_EXTENSION) - 1};
    return (const plugin_routes *)host->get_extension(host, identifier);
}

#ifdef __cplusplus
}
#endif

#endif
