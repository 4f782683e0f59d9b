/* interceptors.h - code that runs around calls
 *
 * An interceptor runs around the calls for which the configuration of the host names it. The
 * manifest lists it under "interceptors", and its function is "~NAME". It has two arguments: a map
 * that describes the call, with the entries below, and an object that continues the call.
 *
 * The action PLUGIN_INTERCEPTED_CONTINUE of that object calls the intercepted action, and returns
 * its outcome. It has one parameter: a map of the parameters for the intercepted action. The
 * interceptor may perform it any number of times, or not at all. The reply of the interceptor is
 * the outcome of the call. The map and the object are borrowed until the interceptor returns.
 * [any thread] */
#ifndef PLUGIN_ABI_INTERCEPTORS_H
#define PLUGIN_ABI_INTERCEPTORS_H

#include "../plugin_abi.h"

#define PLUGIN_INTERCEPTED_TARGET "target" /* string; an object's type, or empty for an event */
#define PLUGIN_INTERCEPTED_ACTION "action" /* string; the name of the action or event */
#define PLUGIN_INTERCEPTED_PARAMETERS "parameters" /* map, as given, without defaults */
#define PLUGIN_INTERCEPTED_REMOTE "remote" /* bool: whether another program calls */
#define PLUGIN_INTERCEPTED_ROUTE "route"   /* string, the pattern of the URL's route; or null */

#define PLUGIN_INTERCEPTED_CONTINUE "call"

#endif
