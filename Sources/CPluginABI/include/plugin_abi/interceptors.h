/* interceptors.h - code around the calls of others
 *
 * An interceptor stands around the calls for which the configuration of the host names it. The
 * manifest lists it under "interceptors", and its function is "~NAME". It has two arguments: a map
 * that describes the call, with the entries below, and an object that is the rest of the call.
 *
 * The action PLUGIN_INTERCEPTED_REST of that object takes one parameter, a map of the parameters
 * that the intercepted action is to get, and its outcome is that of the action. The interceptor
 * performs it any number of times, or never, and what it replies is the outcome of the call. Map
 * and object are borrowed until it returns. [any thread] */
#ifndef PLUGIN_ABI_INTERCEPTORS_H
#define PLUGIN_ABI_INTERCEPTORS_H

#include "../plugin_abi.h"

#define PLUGIN_INTERCEPTED_TARGET "target" /* string; of an object its type, of an event empty */
#define PLUGIN_INTERCEPTED_ACTION "action" /* string; of an event its name */
#define PLUGIN_INTERCEPTED_PARAMETERS "parameters" /* map, as given, without defaults */
#define PLUGIN_INTERCEPTED_REMOTE "remote" /* bool: whether it comes from another program */
#define PLUGIN_INTERCEPTED_ROUTE "route"   /* string, the pattern of the URL's route; or null */

#define PLUGIN_INTERCEPTED_REST "call"

#endif
