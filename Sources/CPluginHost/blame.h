/* The interface between blame.c, exits.c and signals.c. */
#ifndef PLUGIN_HOST_BLAME_PRIVATE_H
#define PLUGIN_HOST_BLAME_PRIVATE_H

#include <ucontext.h>

#include "plugin_host_blame.h"

/* The label of the module whose code is nearest to the top of the interrupted stack; null if none.
 * Async-signal-safe. */
const char *plugin_host_module_on_stack(const ucontext_t *context);
/* The number of the file that the code at an address comes from; PLUGIN_HOST_NOBODY if none. Async-signal-safe. */
uint64_t plugin_host_file_at(uintptr_t address);
/* The label of the module of a file, or of the file itself if its description has not been read; null if none. Sets
 * `names_module` to whether the label begins with the name of the module. Async-signal-safe. */
const char *plugin_host_label_of(uint64_t file, int *names_module);
/* The file of the innermost call of this thread, or of its step. Async-signal-safe. */
uint64_t plugin_host_file_of_thread(void);
/* The number of the file whose code was interrupted. Async-signal-safe. */
uint64_t plugin_host_culprit(const ucontext_t *context);
/* Writes the lines of plugin_host_report_addresses. The stack is unwound, which may fault or never end if the stack is
 * damaged: call it last. */
void plugin_host_write_addresses(ucontext_t *context);
/* Writes to standard error, for at most a second in all: a pipe that is not read must not keep the process from ending.
 * Async-signal-safe. */
void plugin_host_say(const char *text);
/* Writes the calls of this thread, innermost first, and its step, each on a line of its own that begins with a line
 * feed. Returns whether it has written any. Async-signal-safe. */
int plugin_host_say_running(void);
/* The function with which this thread began; 0 if it is unknown. */
extern __thread uintptr_t plugin_host_thread_origin;
/* Writes {"KIND":NUMBER} to each journal. Async-signal-safe. */
void plugin_host_mark_journals(const char *kind, uint64_t file);

#endif
