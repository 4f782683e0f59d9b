/* plugin_host_notify.h - messages to the service manager, as sd_notify(3) sends them */
#ifndef PLUGIN_HOST_NOTIFY_H
#define PLUGIN_HOST_NOTIFY_H

#include <stdint.h>

/* Sends a message to the datagram socket at an address: the path of a socket, or '@' and an abstract name. Returns 0, or
 * the error number. Does not wait for room. */
int plugin_host_notify(const char *address, const char *message);

/* The time of CLOCK_MONOTONIC in microseconds. */
uint64_t plugin_host_monotonic_microseconds(void);

enum { PLUGIN_HOST_HANGUP_IGNORED, PLUGIN_HOST_HANGUP_OF_SERVICE, PLUGIN_HOST_HANGUP_OF_TERMINAL };
/* Returns what SIGHUP means for this process: nothing if it is ignored, as by nohup(1); a request to reload if the process
 * has no controlling terminal; otherwise the end of the terminal. */
int plugin_host_hangup(void);

#endif
