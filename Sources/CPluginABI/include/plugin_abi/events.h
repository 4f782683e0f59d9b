/* events.h - events, which go to everybody who subscribes to them
 *
 * Subscribing: the manifest lists the event under "events", and the function "!EVENT" gets it, like
 * an action, with those parameters of the event that the manifest declares. Its reply is ignored
 * unless it is an error.
 *
 * Posting: a request with the address PLUGIN_ADDRESS_EVENT. Its parameters have names. Subscribers
 * get it in the order of level, priority and name of their modules, then the program does. One that
 * fails does not stop the others. host->perform starts asynchronous subscribers and does not wait
 * for them; host->call waits. The result is a map with the two entries below. */
#ifndef PLUGIN_ABI_EVENTS_H
#define PLUGIN_ABI_EVENTS_H

#include "../plugin_abi.h"

#define PLUGIN_EVENT_DELIVERED "delivered" /* int: how many got it, those that failed included */
#define PLUGIN_EVENT_FAILURES "failures"   /* list: for each that failed, a map with "code",
                                            * "message" and "source" */

#endif
