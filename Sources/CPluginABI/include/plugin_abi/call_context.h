/* call_context.h - an extension: the trace that a call is part of, and on whose
 * behalf it is made
 *
 * The program can make a call with a call context: when it serves a request from outside, the trace
 * of that request, and the name of whoever was authenticated. All calls that the call leads to,
 * from module to module, have the same context, whatever their addresses, until the program's call
 * is over. Modules can read the context, but not change it. */
#ifndef PLUGIN_ABI_CALL_CONTEXT_H
#define PLUGIN_ABI_CALL_CONTEXT_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_CALL_CONTEXT_EXTENSION "pluginhost.call-context/1"

#define PLUGIN_TRACE_SAMPLED 1u             /* the caller may have recorded its part of the trace */
#define PLUGIN_TRACE_STATE_MAX_BYTES 512    /* the host leaves out whole entries at the end */
#define PLUGIN_CALL_CALLER_MAX_BYTES 1024   /* the host refuses a longer name */

/* The trace has the form of W3C Trace Context. If there is none, its numbers are 0 and its texts
 * are empty. */
typedef struct plugin_call_context {
    uint32_t size;
    uint8_t trace_flags; /* PLUGIN_TRACE_...; other bits may be set */
    uint8_t reserved[3];
    uint8_t trace_id[16];
    uint8_t span_id[8];         /* of the caller: the parent of spans that are made for this call */
    plugin_string trace_parent; /* trace, span and flags: "00-TRACEID-SPANID-FLAGS" */
    plugin_string trace_state;  /* for tracing systems, to be passed on with trace_parent */
    plugin_string caller;       /* on whose behalf the call is made; empty if that is not known */
} plugin_call_context;

PLUGIN_ABI_ASSERT(offsetof(plugin_call_context, trace_id) == 8, "plugin_call_context.trace_id");
PLUGIN_ABI_ASSERT(offsetof(plugin_call_context, caller) == 64, "plugin_call_context.caller");
PLUGIN_ABI_ASSERT(sizeof(plugin_call_context) == 80, "plugin_call_context");

typedef struct plugin_call_contexts {
    uint32_t size;
    uint32_t reserved;
    /* Calls `receiver` once, on this thread and before this returns, with the context of `call`,
     * which is borrowed until `receiver` returns, and then returns 1. `call` is a call that this
     * module runs; 0 means the one that runs on this thread. Returns 0, without calling `receiver`,
     * if that call has no context or is over, or if the program's call is over. [any thread] */
    int32_t (*read)(const plugin_host *host, plugin_token call,
                    void (*receiver)(void *data, const plugin_call_context *context), void *data);
} plugin_call_contexts;

PLUGIN_ABI_ASSERT(sizeof(plugin_call_contexts) == 16, "plugin_call_contexts");

/* Returns this extension, or null if the host does not have it. [any thread] */
static inline const plugin_call_contexts *plugin_call_contexts_of(const plugin_host *host) {
    plugin_string identifier = {PLUGIN_CALL_CONTEXT_EXTENSION,
                                sizeof(PLUGIN_CALL_CONTEXT_EXTENSION) - 1};
    return (const plugin_call_contexts *)host->get_extension(host, identifier);
}

#ifdef __cplusplus
}
#endif

#endif
