/*
 * plugin_host_signals.h - signals that ask for something, and the end of a program.
 *
 * Signals arrive in handlers, not in a mask of blocked signals: a program that a module starts would inherit the mask,
 * and could not be ended; handlers end with exec. The handlers do what is async-signal-safe: atomics, sem_post(3) and
 * _exit(2).
 */
#ifndef PLUGIN_HOST_SIGNALS_H
#define PLUGIN_HOST_SIGNALS_H

#include <stdint.h>

/* ------------------------------------------------------------------------------------------ for who embeds a host -- */

/* Where signals arrive. Never freed, since a handler may run; there may be 16 in a process. */
typedef struct plugin_host_inbox plugin_host_inbox;
/* Lets signals arrive in an inbox. Null where there are 16 already. */
plugin_host_inbox *plugin_host_inbox_open(const int *numbers, int count);
/* Waits for a signal and returns its number; 0 when the inbox is closed. By one thread. */
int plugin_host_inbox_wait(plugin_host_inbox *inbox);
/* Lets the signals do again what they did before, and ends the wait. */
void plugin_host_inbox_close(plugin_host_inbox *inbox);

/* --------------------------------------------------------------------------------------------- for programs alone -- */

/* Takes SIGINT and SIGTERM: the first one asks for the end; the second ends the process with 128 + its number, from
 * inside the handler. A thread that is made here ends it in the same way, without allocating, if the end has not begun
 * `patience` seconds after the first. 0, or the code of the error: EAGAIN where no thread can be had. */
int plugin_host_stop_install(uint32_t patience);
/* Takes the signals again where a module has given them another handler, or ignores them. Returns which: bit 0 for SIGINT,
 * bit 1 for SIGTERM. Does nothing before plugin_host_stop_install. */
int plugin_host_stop_take_back(void);
/* Waits until somebody asks for the end. */
void plugin_host_stop_wait(void);
/* Asks for it, as the first signal does. */
void plugin_host_stop_ask(void);
/* The end has begun. */
void plugin_host_stop_begun(void);

/* Ends the process without running the destructors of anything that was loaded: what stands in the buffers of stdio is
 * written first, for a second at most. A program that was built with a sanitizer or for coverage ends by exit(3), since
 * its report is made there. */
_Noreturn void plugin_host_end(int code);

#endif
