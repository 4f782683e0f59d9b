/*
 * plugin_host_signals.h - signals that request something, and the end of a program.
 *
 * Signals are received by handlers, not through a mask of blocked signals: a program that a module starts would inherit
 * the mask and could not be ended by a signal, whereas exec resets handlers. The handlers do only what is
 * async-signal-safe: atomics, sem_post(3) and exit_group(2).
 */
#ifndef PLUGIN_HOST_SIGNALS_H
#define PLUGIN_HOST_SIGNALS_H

#include <stdint.h>

/* --------------------------------------------------------------------------------- for programs that embed a host -- */

/* A receiver of signals. Never freed, because a handler may be running; a process can have at most 16. */
typedef struct plugin_host_inbox plugin_host_inbox;
/* Opens an inbox that receives these signals. Null if there are already 16. */
plugin_host_inbox *plugin_host_inbox_open(const int *numbers, int count);
/* Waits for a signal and returns its number; 0 if the inbox is closed. For one thread only. */
int plugin_host_inbox_wait(plugin_host_inbox *inbox);
/* Restores the previous handling of the signals, and ends the wait. */
void plugin_host_inbox_close(plugin_host_inbox *inbox);

/* ---------------------------------------------------------------------------------- for the program `pluginhost` -- */

/* Handles SIGINT and SIGTERM, and SIGHUP if it is not ignored and there is a controlling terminal: the first signal
 * requests the end; the second one ends the process with 128 + its number, from inside the handler. A thread that is
 * created here ends the process in the same way, without allocating, if the end has not begun `patience` seconds after
 * the first signal. Returns 0, or the error code: EAGAIN if no thread can be created. */
int plugin_host_stop_install(uint32_t patience);
/* Installs the handlers again if a module has installed others or ignores the signals. Returns which ones: bit 0 for
 * SIGINT, bit 1 for SIGTERM, bit 2 for SIGHUP. Does nothing before plugin_host_stop_install. */
int plugin_host_stop_take_back(void);
/* Waits until the end is requested. */
void plugin_host_stop_wait(void);
/* Requests the end, as the first signal does. */
void plugin_host_stop_ask(void);
/* Reports that the end has begun. */
void plugin_host_stop_begun(void);

/* Ends the process without running the destructors of anything that was loaded; the buffers of stdio are written first,
 * for at most a second. A program that was built with a sanitizer or for coverage ends by exit(3), which writes its
 * report. */
_Noreturn void plugin_host_end(int code);

#endif
