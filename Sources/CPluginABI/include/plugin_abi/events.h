/* events.h - events, which are delivered to all their subscribers
 *
 * Subscribing: the manifest lists the event under "events", and the function "!EVENT" is called
 * like an action, with those parameters of the event that the manifest declares and, with
 * "rest": true, a map of the others. Its reply is ignored unless it is an error.
 *
 *     "events": [{"name": "shop.sold", "parameters": [{"name": "item", "type": "string"}]}]
 *
 * Posting: a request with the address PLUGIN_ADDRESS_EVENT. All parameters must have names. Modules
 * get the event in the order in which they start, then the program does. The failure of one
 * subscriber does not keep the event from the others. host->perform starts asynchronous subscribers
 * and does not wait for them; host->call waits for them. The result is a map with the two entries
 * below. */
#ifndef PLUGIN_ABI_EVENTS_H
#define PLUGIN_ABI_EVENTS_H

#include "../plugin_abi.h"

#define PLUGIN_EVENT_DELIVERED "delivered" /* int: how many subscribers got it, failed or not */
#define PLUGIN_EVENT_FAILURES "failures"   /* list: for each failed one, a map with "code",
                                            * "message" and "source" */

#endif
