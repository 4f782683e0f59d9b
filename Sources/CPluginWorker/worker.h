/*
 * worker.h - the process that runs one isolated module
 *
 * It opens the module and gives it a table of functions that ask the host, over shared memory. It trusts the host, and
 * the host does not trust it. Plain C, so that the program pluginhost-worker needs no Swift runtime, and modules bring
 * their own. Another program may also contain this code, and be started instead of pluginhost-worker.
 *
 *  serve.c       opens the file, describes it, and receives the one-way messages of the host
 *  exchange.c    channels: asking the host, and executing what it asks for meanwhile
 *  requests.c    the host's table: calls, replies, objects
 *  extensions.c  the extensions of that table
 *  confine.c     limits and sandbox
 *  filter.c      the sandbox's filter of system calls
 *  rooms.c       the descriptors of memory for large values
 *  debugger.c    waiting for a debugger
 *  addresses.c   the report of where a crash was
 *  jobs.c        threads for completions, cancel handlers and the destruction of objects
 *  scan.c        instead of all that: opens files that the host has not opened yet
 */
#ifndef WORKER_H
#define WORKER_H

#include "plugin_wire.h"

#include <pthread.h>

/* The module, as its entry function has described it, and the table that it gets. */
extern const plugin_module *plugin_worker_module;
extern plugin_host plugin_worker_table;
extern plugin_context plugin_worker_context;
extern plugin_wire *plugin_worker_wire;

/* An object or a callback that the module has made. Its address is the number by which the host names it. */
typedef struct plugin_worker_object {
    void *instance; /* or the data of the callback */
    void (*destroy)(void *instance);
    plugin_invoke invoke; /* of a callback */
} plugin_worker_object;

/* A call that runs on this thread. */
typedef struct plugin_worker_frame {
    plugin_token token;
    struct plugin_worker_frame *outer;
} plugin_worker_frame;

/* exchange.c */

/* Begins to ask on behalf of this thread: takes the channel of the call that runs on it, or one of its own. */
uint32_t plugin_worker_begin(void);
/* Begins to reply, or to ask what the host answers immediately: some channels are kept for this. */
uint32_t plugin_worker_begin_brief(void);
void plugin_worker_end(uint32_t channel);
/* Sends a message and waits for the answer, which replaces it; `values` of the message are borrowed. Returns
 * PLUGIN_WIRE_PUT; without an answer, PLUGIN_WIRE_TOO_LARGE or PLUGIN_WIRE_NO_ROOM. Call it between plugin_worker_begin
 * and plugin_worker_end. */
int plugin_worker_exchange(uint32_t channel, plugin_wire_message *message);
/* Does all of this for a message that the host answers immediately and without values. Returns `a` of the answer; 0 if
 * the message is too large. */
uint64_t plugin_worker_ask(plugin_wire_message message);
/* Returns a message without values. */
plugin_wire_message plugin_worker_message(enum plugin_wire_kind kind);
/* Asks for something whose answer is an outcome. The completion gets the outcome on this thread. */
void plugin_worker_ask_for_outcome(plugin_wire_message message, plugin_completion completion, void *data);
/* Serves a channel of the host until the end. For pthread_create; the argument is the number of the channel. */
void *plugin_worker_serve(void *channel);
/* Destroys an instance: UNMAKE, which the host sends over the socket if it cannot wait. */
void plugin_worker_unmake(const plugin_wire_message *message);
/* The token of the call that runs on this thread, or 0. */
plugin_token plugin_worker_current(void);

/* requests.c */

void plugin_worker_make_table(void);
plugin_value plugin_worker_text(plugin_string string);
plugin_string plugin_worker_string(const plugin_value *value);
/* Passes the outcome in a message to a completion, and tells the host that the outcome is no longer needed. */
void plugin_worker_pass_outcome(plugin_wire_message *message, plugin_completion completion, void *data);
/* Passes the error for values that were not sent: PLUGIN_WIRE_TOO_LARGE or PLUGIN_WIRE_NO_ROOM. */
void plugin_worker_fail_unsent(int reason, plugin_completion completion, void *data);
/* The request as values; at most WORKER_REQUEST_VALUES. */
enum { WORKER_REQUEST_VALUES = 11 };
void plugin_worker_put_request(const plugin_request *request, plugin_value *values);
/* A request that was begun, and the receiver of its outcome. */
typedef struct plugin_worker_pending {
    plugin_completion completion;
    void *data;
} plugin_worker_pending;

/* extensions.c */

const void *plugin_worker_extension(const plugin_host *host, plugin_string identifier);

/* jobs.c */

/* Runs a one-way message of the host on this thread, and disposes of it. */
void plugin_worker_run(plugin_wire_message *message);
/* Runs such a message on another thread, which its code may block. Takes over its values. */
void plugin_worker_run_later(const plugin_wire_message *message);
/* A cancel handler that the host has been asked to call. */
typedef struct plugin_worker_handler {
    void (*handler)(void *data, int32_t cancelled);
    void *data;
} plugin_worker_handler;

/* confine.c */

/* Limits what this process may reach and use, as a message CONFINE says, and reports what is not possible. Must be
 * called while the process has one thread and no module. */
void plugin_worker_confine(const plugin_wire_message *message);
/* The limits of this process; see PLUGIN_WIRE_CONFINE. */
typedef struct plugin_worker_limits {
    int64_t sandbox, network;
    uint64_t memory, seconds, descriptors, processes;
    const plugin_value *own_folders, *readable, *writable, *connects, *binds; /* lists */
} plugin_worker_limits;
/* Notes a part of the limits or of the sandbox that is not available, and the reason. */
void plugin_worker_lacks(const char *part, const char *reason);
void plugin_worker_lacks_by_errno(const char *part);
/* The version of Landlock; less than 1, and sets errno, if there is none. */
long plugin_worker_landlock_version(void);

/* filter.c */

/* Refuses system calls from now on. */
void plugin_worker_filter_calls(const plugin_worker_limits *limits);

/* rooms.c */

/* Takes a descriptor that the host has sent. */
void plugin_worker_keep_room(uint32_t room, int descriptor);
/* Makes the shared memory use rooms. */
void plugin_worker_use_rooms(void);

/* debugger.c */

/* Waits until a debugger is attached to this process. */
void plugin_worker_await_debugger(void);

/* addresses.c */

/* Makes a fatal signal write to standard error where the code of the module and of its libraries was, as
 * plugin_host_report_addresses does, and then a line "addresses end". The libraries are in the folder of the module. Requires
 * glibc 2.35 or later. */
void plugin_worker_report_addresses(const char *module);
/* Gives this thread a stack for signals, so that addresses are reported for an overflow of its own stack as well. For
 * threads that never end. */
void plugin_worker_add_signal_stack(void);

/* serve.c */

/* Makes this process end with the host. */
void plugin_worker_die_with_host(void);
/* Tells the host why the file is not served, and waits to be ended. */
_Noreturn void plugin_worker_fail(const char *details, uint64_t reason);
/* Whether a thread receives the host's messages: not while the file is being opened. */
int plugin_worker_listens(void);
/* Receives one of these messages, on the only thread that receives them. */
void plugin_worker_receive_message(void);

/* Sends the host a number: one of the channels for requests of the worker's own threads, which it is to serve; or a
 * room that is no longer used, with PLUGIN_WIRE_LEFT. */
void plugin_worker_announce(uint32_t number);
/* Ends the process, because memory or threads have run out. */
_Noreturn void plugin_worker_give_up(const char *reason);
/* malloc that gives up instead of returning null. */
void *plugin_worker_allocate(size_t size);
/* Describes a module, as far as the host would read the description. `values` are those of the message. */
enum { WORKER_DESCRIPTION_VALUES = 11 };
void plugin_worker_describe(const plugin_module *module, plugin_value *values, plugin_wire_message *message);
/* Closes all descriptors from this one on. */
void plugin_worker_close_from(int first);

/* scan.c */

/* Opens files and calls their entry functions, and ends the process. */
_Noreturn void plugin_worker_scan(int count, char **arguments);

#endif
