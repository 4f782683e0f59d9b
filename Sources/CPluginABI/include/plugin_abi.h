/*
 * plugin_abi.h - the binary interface between a host and its modules
 *
 * A module is a shared library that exports one function, plugin_module_entry, which returns a
 * static description: a manifest in JSON, and the functions behind it. The host gives the module a
 * table of functions. Neither side links against the other. This is C11, and also C++17.
 *
 *  - Strings are UTF-8 (the host checks that) and have a length in bytes. They are not
 *    NUL-terminated; the pointer may be null if the length is 0.
 *  - Data passed by pointer is borrowed: the receiver may read it until the function returns, and
 *    must copy what it keeps. Neither side frees the other's memory.
 *  - Modules are never unloaded: descriptions and tables are valid for the life of the process.
 *  - [any thread]: may be called from any thread, and by several at once.
 *    [one at a time]: the host makes one such call to a module at a time, on any thread.
 *  - A structure with a member `size` may grow at its end in a later minor version. The side
 *    that fills it in sets `size` to its sizeof, and unused members to 0.
 *
 * This file is the core, and includes those in plugin_abi/: helpers, hooks, events, extensions. The
 * article "Compatibility" of PluginABI states what later versions keep.
 */
#ifndef PLUGIN_ABI_H
#define PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------- version, limits */

#define PLUGIN_ABI_MAGIC 0x54534F4847554C50 /* "PLUGHOST", read as a little-endian integer */
#define PLUGIN_ABI_MAJOR 1 /* for breaking changes: a host loads modules of its own major version */
#define PLUGIN_ABI_MINOR 0 /* for additions: a host loads any, see `abiMinor` in the schema */

#define PLUGIN_MANIFEST_MAX_BYTES 1048576
#define PLUGIN_DEPTH_MAX 128 /* of nested synchronous calls, and of nested lists and maps */

/* -------------------------------------------------------------------------------------- values */

typedef struct plugin_string {
    const char *bytes;
    uint64_t count;
} plugin_string;

/* A reference to an object that lives in a module and has actions of its own; 0 means no object.
 * The host counts its holders: the caller of object_create or callback_create is the first one,
 * object_retain adds one, object_release removes one. The object ends when it has no holder and
 * none of its actions runs. In an argument or a result it is borrowed. The use of an ended object
 * is detected and does no harm. Objects that retain each other never end. */
typedef uint64_t plugin_object;

/* The kinds of values, and the members that they use. */
#define PLUGIN_KIND_NULL 0u
#define PLUGIN_KIND_BOOL 1u   /* as.boolean, 0 or 1 */
#define PLUGIN_KIND_INT 2u    /* as.integer */
#define PLUGIN_KIND_DOUBLE 3u /* as.real */
#define PLUGIN_KIND_STRING 4u /* as.string, `count` bytes */
#define PLUGIN_KIND_BYTES 5u  /* as.bytes, `count` bytes */
#define PLUGIN_KIND_LIST 6u   /* as.list, `count` values of any kinds */
#define PLUGIN_KIND_MAP 7u    /* as.map, `count` entries; of equal keys the last one counts */
#define PLUGIN_KIND_OBJECT 8u /* as.object, never 0: no object is a null value */
#define PLUGIN_KIND_NONE 0xFFFFFFFFu /* no value yet: in plugin_call.result only, never passed */

/* A value. The side that passes it owns what it points to. helpers.h makes and reads values. */
typedef struct plugin_value {
    uint32_t kind; /* PLUGIN_KIND_... */
    uint32_t count;
    union {
        uint8_t boolean;
        int64_t integer;
        double real;
        const char *string;
        const uint8_t *bytes;
        const struct plugin_value *list;
        const struct plugin_entry *map;
        plugin_object object;
    } as;
} plugin_value;

/* An entry of a map, or a parameter of a request. Parameters without a key come first, and belong
 * to the declared ones in order. If a parameter is given twice, the first value counts. */
typedef struct plugin_entry {
    plugin_string key;
    plugin_value value;
} plugin_entry;

/* -------------------------------------------------------------------------------------- errors */

/* The reason why a call failed. The article "Errors" of PluginABI lists the codes of the host. */
typedef struct plugin_error {
    plugin_string code;    /* a short word for programs: outOfStock */
    plugin_string message; /* a sentence for people */
    plugin_string source;  /* the module; empty for the host and, in a reply, for the replier */
} plugin_error;

/* -------------------------------------------------------------------------------------- module */

typedef struct plugin_host plugin_host;
typedef struct plugin_call plugin_call;
typedef struct plugin_factory plugin_factory;

/* A function that the host calls for a name in the manifest, such as an action. `arguments` has one
 * value for each declared parameter, in declared order; with "rest": true there is one more, a map
 * (never null) of the named parameters that are not declared. The host has matched names, checked
 * types (an int becomes a double, 3.0 becomes 3) and filled in defaults (else null). `call` and
 * `arguments` are borrowed until the function returns. The function must reply exactly once: before
 * it returns or, if the manifest declares "async": true, at any later time and from any thread.
 *
 * If the module, or the target, declares "concurrency": "serial", the host runs one of its calls at
 * a time, until the reply. This includes object types, subscriptions and interceptors, but not
 * callbacks, completions and `destroy`. A call that would wait for one that it is part of fails
 * with circularWait. [any thread; one at a time if serial] */
typedef void (*plugin_invoke)(void *data, const plugin_call *call, const plugin_value *arguments,
                              uint32_t count);

/* The function behind an entry of the manifest. Routes and services have none, because they lead to
 * actions of targets. Each entry of the following kinds has exactly one:
 *     "Target/action"  an action of a target
 *     "Type#action"    an action of an object type
 *     "@setUp"         a lifecycle hook, see plugin_abi/hooks.h
 *     "!shop.sold"     a subscription to an event, see plugin_abi/events.h
 *     "~limit"         an interceptor, see plugin_abi/interceptors.h */
typedef struct plugin_function {
    plugin_string name;
    plugin_invoke invoke;
    void *data; /* passed to `invoke` */
} plugin_function;

/* The description of a module, which its entry function returns; see plugin_abi/entry.h. The host
 * checks the first 16 bytes before it reads the rest. */
typedef struct plugin_module {
    uint64_t magic; /* PLUGIN_ABI_MAGIC */
    uint32_t size;  /* sizeof(plugin_module) */
    uint16_t abi_major, abi_minor;
    plugin_string toolchain; /* "swift 6.3"; empty for code that needs no Swift runtime */
    plugin_string manifest;  /* JSON, see manifest.schema.json and plugin_abi/manifest.h */
    const plugin_function *functions; /* at most 100,000 */
    uint64_t function_count;
    const plugin_factory *factories; /* of targets with instances, see plugin_abi/instances.h */
    uint64_t factory_count;
    void *data; /* passed to the functions below, each of which may be null */
    /* Called first, with the host's table, to be kept. A result other than 0 refuses the start. The
     * module may call others only from @setUp on, and itself only from @init on. [one at a time] */
    int32_t (*activate)(void *data, const plugin_host *host);
    /* Called after the last call, and after a failed start, even if `activate` has refused: stops
     * the module's threads and timers, and waits until they have ended. [one at a time] */
    void (*deactivate)(void *data);
    /* Returns a static table, or null. For tools only, see plugin_abi/types.h. [one at a time] */
    const void *(*get_extension)(void *data, plugin_string identifier);
} plugin_module;

/* --------------------------------------------------------------------------------------- calls */

/* Identifies a call: to reply to it, to cancel it, or to make it the parent of other calls. 0 means
 * no call. Using the number after the call is over is detected and does no harm. */
typedef uint64_t plugin_token;

#define PLUGIN_CALL_REMOTE 1u   /* the call comes from another program, by a URL */
#define PLUGIN_CALL_IN_PLACE 2u /* `result` may be written */

/* A call that a module receives and replies to. Borrowed until the action returns. */
struct plugin_call {
    uint32_t size;
    uint32_t flags;       /* PLUGIN_CALL_... */
    plugin_token token;   /* outlives this structure */
    void *instance;       /* of the target or the object; null if there is none, as in a callback */
    int64_t deadline;     /* CLOCK_MONOTONIC, in nanoseconds; 0 for none */
    plugin_value *result; /* null without PLUGIN_CALL_IN_PLACE; with it, plugin_reply writes a
                           * scalar (null, bool, int, double) here; read when the action returns */
};

/* The kinds of addresses, and the members of a request that each one uses; it ignores the others.
 *     address  target          action      object               version
 *     ACTION   name of target  its action  -                    -
 *     URL      the URL         -           -                    -
 *     OBJECT   -               its action  the object           -
 *     SERVICE  name of service its action  -                    the lowest; empty for any
 *     EVENT    name of event   -           -                    -
 *     BOUND    -               -           plugin_bound_action  -
 *     CHAIN    name of event   -           where it starts      - */
#define PLUGIN_ADDRESS_ACTION 0u
#define PLUGIN_ADDRESS_URL 1u
#define PLUGIN_ADDRESS_OBJECT 2u /* the action of a callback is "call" */
#define PLUGIN_ADDRESS_SERVICE 3u
#define PLUGIN_ADDRESS_EVENT 4u /* to all subscribers, see plugin_abi/events.h */
#define PLUGIN_ADDRESS_BOUND 5u /* see plugin_abi/bound.h */
#define PLUGIN_ADDRESS_CHAIN 6u /* up from an object to its parents, see plugin_abi/chain.h */

#define PLUGIN_REQUEST_REMOTE 1u /* treat it as coming from another program: remote actions only */
#define PLUGIN_REQUEST_OBJECT 2u /* for a URL: an object is wanted; see plugin_abi/routes.h */
#define PLUGIN_REQUEST_FRESH 4u  /* make an instance of the target for this call alone */
#define PLUGIN_REQUEST_STICKY 8u /* of an event: modules that start later get it, too */

/* A call that a module makes; see plugin_request_action in plugin_abi/helpers.h. */
typedef struct plugin_request {
    uint32_t size;
    uint32_t address; /* PLUGIN_ADDRESS_... */
    plugin_string target;
    plugin_string action;
    plugin_object object;
    const plugin_entry *parameters; /* by name or by position, see plugin_entry */
    uint64_t parameter_count;       /* at most 1048576 */
    int64_t timeout; /* nanoseconds from now; 0 for none or, for an async action, the host's */
    uint32_t flags;  /* PLUGIN_REQUEST_... */
    uint32_t method; /* of a URL: PLUGIN_METHOD_..., see plugin_abi/routes.h; 0 for GET */
    plugin_string version;
} plugin_request;

/* Receives the outcome of a request, once: `value` or `error`, borrowed until the completion
 * returns; the other one is null. A null completion ignores the outcome. [the function that takes
 * the completion states the thread] */
typedef void (*plugin_completion)(void *data, const plugin_value *value, const plugin_error *error);

/* ------------------------------------------------------------------------------------- replies */

#define PLUGIN_REPLY_ACCEPTED 0
#define PLUGIN_REPLY_STALE 1   /* the call is over or belongs to another module; nothing was done */
#define PLUGIN_REPLY_REFUSED 2 /* not UTF-8, too deep, or an ended object; the caller gets an error.
                                * The declared type of the result is not checked. */

/* Replies with a result before the action returns. When it has returned, `call` is invalid: keep
 * call->token, and use host->resolve. Borrows `result`. Returns PLUGIN_REPLY_...; a second reply
 * replaces a scalar result, and the host logs it. [any thread; one at a time per call] */
static inline int32_t plugin_reply(const plugin_host *host, const plugin_call *call,
                                   plugin_value result);

/* Replies with an error before the action returns; later, use host->reject. Borrows `code` and
 * `message`, which are NUL-terminated. Returns PLUGIN_REPLY_... [any thread] */
static inline int32_t plugin_fail(const plugin_host *host, const plugin_call *call,
                                  const char *code, const char *message);

/* Replies with the outcome that a completion has received, before or after the action returns.
 * Borrows the outcome. Returns PLUGIN_REPLY_... [any thread] */
static inline int32_t plugin_pass_on(const plugin_host *host, plugin_token call,
                                     const plugin_value *value, const plugin_error *error);

/* ---------------------------------------------------------------------------------------- host */

#define PLUGIN_OBJECT_ASYNC 1u /* of a callback: it may reply later */

/* The host's functions for one module. The first argument, the table, identifies that module. */
struct plugin_host {
    uint32_t size;
    uint16_t abi_major, abi_minor;
    void *implementation; /* for the host's own use */

    /* Calls a synchronous action; an asynchronous one is an error, and so is a callback with
     * PLUGIN_OBJECT_ASYNC: use `call` for objects of unknown origin. `parent`, here and in `call`,
     * is the call for which this one is made; 0 means the one that runs on this thread, if any. It
     * serves to detect recursion and circular waits; its deadline is not inherited. `completion`
     * runs before this returns, on this or the replying thread. Borrows `request`. [any thread] */
    void (*perform)(const plugin_host *host, plugin_token parent, const plugin_request *request,
                    plugin_completion completion, void *data);
    /* Calls an action of either kind. `completion` runs on any thread, maybe before this returns.
     * Borrows `request`. Returns a token for `cancel`, or 0 if the call is over. [any thread] */
    plugin_token (*call)(const plugin_host *host, plugin_token parent,
                         const plugin_request *request, plugin_completion completion, void *data);
    /* Ends a call that this module has made, with the error "cancelled". The action is notified
     * through on_cancel, and continues until it ends. Ignores other tokens. [any thread] */
    void (*cancel)(const plugin_host *host, plugin_token call);

    /* Replies to a call by its token, before or after the action returns. Borrows `result`; a null
     * pointer means null. Objects may be released then. Returns PLUGIN_REPLY_... [any thread] */
    int32_t (*resolve)(const plugin_host *host, plugin_token call, const plugin_value *result);
    /* Replies with an error. Borrows `error`. Returns PLUGIN_REPLY_... [any thread] */
    int32_t (*reject)(const plugin_host *host, plugin_token call, const plugin_error *error);
    /* Sets the cancel handler of an asynchronous call to this module. It runs once, on any thread,
     * possibly before this returns: with 1 when the call is cancelled or its deadline passes,
     * otherwise with 0 when the call is over. A second handler for the same call, or a handler for
     * any other call, runs immediately with 0. [any thread] */
    void (*on_cancel)(const plugin_host *host, plugin_token call,
                      void (*handler)(void *data, int32_t cancelled), void *data);

    /* Makes an object of a declared type; the caller is its first holder. The object owns
     * `instance` until it ends; then `destroy` (may be null) gets it back, once, on any thread,
     * possibly within object_release: call that without a lock that `destroy` acquires. Returns 0,
     * and owns nothing, if the manifest has no such type or too many objects exist. [any thread] */
    plugin_object (*object_create)(const plugin_host *host, plugin_string type, void *instance,
                                   void (*destroy)(void *instance));
    /* Makes a callback: an object with one action, "call", which gets any number of arguments, of
     * any kinds. Owns `data` as an object owns its instance. `flags`: 0 or PLUGIN_OBJECT_ASYNC.
     * Returns 0, and owns nothing, if `invoke` is null or too many objects exist. [any thread] */
    plugin_object (*callback_create)(const plugin_host *host, plugin_invoke invoke, void *data,
                                     void (*destroy)(void *data), uint32_t flags);
    /* Adds a holder. Returns 0, or 1 if it has ended or has 16 million holders. [any thread] */
    int32_t (*object_retain)(const plugin_host *host, plugin_object object);
    /* Removes a holder. Returns 0, or 1 if the object has ended. [any thread] */
    int32_t (*object_release)(const plugin_host *host, plugin_object object);

    /* Returns the table of an extension, or null if the host does not have it. [any thread] */
    const void *(*get_extension)(const plugin_host *host, plugin_string identifier);
};

#ifdef __cplusplus
}
#endif
#include "plugin_abi/all.h"
#endif
