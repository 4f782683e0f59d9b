/* The interface between calls.c, threads.c and signals.c. */
#ifndef PLUGIN_HOST_THREAD_CONTEXT_H
#define PLUGIN_HOST_THREAD_CONTEXT_H

#include "plugin_host_calls.h"

/* Adds a stack for signal handlers, so that the overflow of a thread's own stack can be reported. */
void plugin_host_add_signal_stack(void);
void plugin_host_remove_signal_stack(void);
/* Makes threads get such a stack from now on. */
void plugin_host_want_signal_stacks(void);

#endif
