/*
 * plugin_abi.h - all that a host and a module binary share.
 *
 * A module is a shared library that exports one function, plugin_module_entry. It returns a
 * static description: what the module is (a manifest, JSON) and the functions behind it. The host
 * hands the module a table of its own functions. Nothing else crosses the border, and nobody links
 * against anybody. C11; compiles as C++17.
 *
 * Rules that hold everywhere:
 *  - A string is a pointer and a length in bytes, UTF-8, never NUL-terminated. Where the length is
 *    0 the pointer may be null.
 *  - What is passed is borrowed: the receiver may read it until the function returns, and copies
 *    what it needs longer. No memory is freed on the other side of the border.
 *  - Functions marked [any thread] may be called from any thread, also concurrently. Functions
 *    marked [host: one at a time] are called by the host, never two of one module at a time.
 *  - Structures that begin with `size` may grow at their end in a later minor version; `size` says
 *    how much of it the giver knows.
 *  - Nothing is unloaded: code, static data and what the host hands out stay valid for the life of
 *    the process.
 */
#ifndef PLUGIN_ABI_H
#define PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define PLUGIN_ABI_ASSERT(condition, text) static_assert(condition, text)
extern "C" {
#else
#define PLUGIN_ABI_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* ---------------------------------------------------------------------------------- version -- */

#define PLUGIN_ABI_MAGIC 0x54534F4847554C50 /* "PLUGHOST", read as a little-endian integer */
#define PLUGIN_ABI_MAJOR 1 /* breaking changes: a host loads modules of its own major only */
#define PLUGIN_ABI_MINOR 2 /* additions: a host loads modules of any minor */

#define PLUGIN_ENTRY_SYMBOL "plugin_module_entry"
#define PLUGIN_MANIFEST_MAX_BYTES 1048576
#define PLUGIN_DEPTH_MAX 128 /* of nested synchronous calls, and of nested lists and maps */

/* ----------------------------------------------------------------------------------- values -- */

typedef struct plugin_string {
    const char *bytes;
    uint64_t count;
} plugin_string;

#define PLUGIN_KIND_NULL 0u
#define PLUGIN_KIND_BOOL 1u   /* as.boolean, 0 or 1 */
#define PLUGIN_KIND_INT 2u    /* as.integer */
#define PLUGIN_KIND_DOUBLE 3u /* as.real */
#define PLUGIN_KIND_STRING 4u /* as.string, `count` bytes of UTF-8 */
#define PLUGIN_KIND_BYTES 5u  /* as.bytes, `count` bytes */
#define PLUGIN_KIND_LIST 6u   /* as.list, `count` values */
#define PLUGIN_KIND_MAP 7u    /* as.map, `count` entries; of equal keys the last one counts */
#define PLUGIN_KIND_OBJECT 8u /* as.object, a handle minted by the host */
#define PLUGIN_KIND_NONE 0xFFFFFFFFu /* no value: never passed as one (since 1.1) */

typedef uint64_t plugin_object; /* 0 is no object */

/* 16 bytes. The pointed-to memory belongs to the giver. */
typedef struct plugin_value {
    uint32_t kind;
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

/* A named value: of a map, or a parameter of a request, where an empty key means "by position". */
typedef struct plugin_entry {
    plugin_string key;
    plugin_value value;
} plugin_entry;

/* An error. `code` is a short word for programs (`outOfStock`), `message` a sentence for people.
 * `source` is the module that failed. Empty on reject, it stands for the module that rejects, and the host fills
 * it in; who passes on the error of another module leaves that one's name there.
 * Codes that the host itself uses (with an empty source) are listed in the documentation. */
typedef struct plugin_error {
    plugin_string code;
    plugin_string message;
    plugin_string source;
} plugin_error;

/* ------------------------------------------------------------------------------ module side -- */

typedef struct plugin_host plugin_host;

/* Names one call, for its reply and as the parent of calls made for it. Never 0 for a call; 0 as a
 * parent means that a call is made for no other. A token is a number, not a pointer: using one that
 * is over is found and reported, never harmful. */
typedef uint64_t plugin_token;

#define PLUGIN_CALL_REMOTE 1u   /* the call comes from another program, by a URL */
#define PLUGIN_CALL_IN_PLACE 2u /* the result may be written to `result` (since 1.1) */

typedef struct plugin_call {
    uint32_t size;
    uint32_t flags;     /* PLUGIN_CALL_... */
    plugin_token token; /* who replies, and what nested calls name as their parent */
    void *instance;     /* of the target or the object type; null where there is none */
    int64_t deadline;   /* CLOCK_MONOTONIC, in nanoseconds; 0 for none */
    /* With PLUGIN_CALL_IN_PLACE: where the action may write null, a bool, an int or a double as its reply, instead of
     * calling resolve; until then the kind is PLUGIN_KIND_NONE. The host takes it when the action returns: a resolve or
     * reject before that counts in its place, and the deadline is looked at then. (since 1.1) */
    plugin_value *result;
} plugin_call;

/* An action. [any thread, unless the manifest says "concurrency": "serial"]
 *
 * `arguments` holds one value for each declared parameter, in declared order, `count` of them: the
 * host has matched names, checked and converted types, and filled in defaults. An optional
 * parameter without a value is PLUGIN_KIND_NULL. Strings are valid UTF-8. `call` and `arguments`
 * live until the function returns.
 *
 * The action replies exactly once. If it is synchronous it does so before it returns, with plugin_reply (below), resolve or
 * reject; if the manifest says "async": true with resolve or reject, before or after that and from any thread. */
typedef void (*plugin_invoke)(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count);

/* The function behind one action: "target/action", "type#action", "@hook" for a lifecycle hook, "!event" for a
 * subscription to an event, or "~interceptor". Each action, hook, subscription and interceptor in the manifest has
 * exactly one, and there are no others.
 *
 * An interceptor stands around calls for which the host's configuration names it. It has two arguments: the call, a map
 * with "target", "action" (strings; of an event an empty one and its name), "parameters" (map), "remote" (bool) and
 * "route" (string, or null), and the rest of the call, an object. It performs the object's action "call" with a map as the one parameter, the parameters that the
 * action is to get, any number of times or never, and replies with what is to be the outcome. */
typedef struct plugin_function {
    plugin_string name;
    plugin_invoke invoke;
    void *data; /* handed to `invoke` */
} plugin_function;

/* The lifecycle hooks are functions of the kind of actions: they reply like these, and what they reject is the reason why
 * they failed. They have no arguments but where it is said, and never overlap. [host: one at a time]
 *
 *   @setUp      before the module's actions can be called. A rejection refuses the module.
 *   @init       when all newcomers are set up: they can call each other, and nobody else can yet. A rejection refuses the
 *               module.
 *   @didStart   when all newcomers are initialised.
 *   @willStop   before the end, while calls go on.
 *   @tearDown   after the last call has ended.
 *
 * When a new file replaces a module that has @suspend, state is handed over. The host holds new calls of the module back
 * and waits for the running ones; then it calls, each with a deadline:
 *
 *   @suspend    of the old one. The reply is the state, any value; the module does nothing more with what it stands
 *               for. If the manifest says "exclusive", it lets go of what it owns (a port, a lock). It has ended before
 *               the @init of the new one begins.
 *   @resume     of the new one, before its @init, with two arguments: the state, and the version (string) of the module
 *               that gave it. A rejection refuses the replacement. It is not called where there is no state: at the
 *               start, or after a version without @suspend.
 *   @unsuspend  of the old one, when @suspend has been called and the replacement has failed, whatever the reason; also
 *               after a @suspend that was rejected or late. The module goes on as if nothing had been, takes back what
 *               it let go of, and gets the calls that were held back.
 */

/* How the instances of a target are made, for targets whose manifest says "instance". */
typedef struct plugin_factory {
    plugin_string target;
    /* Returns the instance, or null if it cannot be made; then call->token may be rejected to say why.
     * [any thread; for a shared instance one at a time] */
    void *(*make)(void *data, const plugin_call *call);
    /* Called when the host needs the instance no longer. [any thread] */
    void (*destroy)(void *data, void *instance);
    void *data;
} plugin_factory;

/* The description that plugin_module_entry returns. Static: it is read for as long as the process lives.
 * The first 16 bytes are checked before anything else is read. */
typedef struct plugin_module {
    uint64_t magic; /* PLUGIN_ABI_MAGIC */
    uint32_t size;  /* sizeof(plugin_module) */
    uint16_t abi_major;
    uint16_t abi_minor;
    plugin_string toolchain; /* "swift 6.3"; empty for code that needs no Swift runtime */
    plugin_string manifest;  /* JSON, see manifest.schema.json */
    const plugin_function *functions;
    uint64_t function_count;
    const plugin_factory *factories;
    uint64_t factory_count;
    void *data; /* handed to the functions below */
    /* Gives the module the host's table, before any action is called. It keeps the pointer and returns
     * 0, or another number to refuse. Calls can be made from the setUp hook on. [host: one at a time] */
    int32_t (*activate)(void *data, const plugin_host *host);
    /* After the last action has ended: stop threads and timers. May be null. [host: one at a time] */
    void (*deactivate)(void *data);
    /* An interface by name and revision, or null if there is none of that name. May be null. [any thread] */
    const void *(*get_extension)(void *data, plugin_string identifier);
} plugin_module;

/* The one symbol that a module exports, under the name PLUGIN_ENTRY_SYMBOL. Does nothing but return the
 * description. [host: one at a time]
 *
 *     PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void);
 */
typedef const plugin_module *(*plugin_module_entry_function)(void);

/* A module can also be linked into the program that calls it. There the symbol could exist only once, so
 * PLUGIN_LINKED_IN is defined when it is compiled, the function is the module's own, and the program finds it by a
 * record in the section PLUGIN_MODULE_SECTION: the address of the function, one record for each module. In a shared
 * library the record does no harm.
 *
 *     PLUGIN_MODULE_RECORD(plugin_module_entry);
 */
#define PLUGIN_MODULE_SECTION "plugin_modules"
#define PLUGIN_MODULE_RECORD(function) \
    __attribute__((used, section(PLUGIN_MODULE_SECTION))) PLUGIN_MODULE_RETAIN static const \
        plugin_module_entry_function plugin_module_record = function

#if defined(PLUGIN_LINKED_IN)
#define PLUGIN_MODULE_EXPORT static
#elif defined(__cplusplus)
#define PLUGIN_MODULE_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define PLUGIN_MODULE_EXPORT __attribute__((visibility("default")))
#endif

/* Linkers may drop sections that nothing refers to; this keeps the record. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define PLUGIN_MODULE_RETAIN __attribute__((retain))
#endif
#endif
#ifndef PLUGIN_MODULE_RETAIN
#define PLUGIN_MODULE_RETAIN
#endif

/* -------------------------------------------------------------------------------- host side -- */

#define PLUGIN_ADDRESS_ACTION 0u /* target, action */
#define PLUGIN_ADDRESS_URL 1u    /* target is the URL */
#define PLUGIN_ADDRESS_OBJECT 2u /* object, action */
#define PLUGIN_ADDRESS_SERVICE 3u /* target is the name of a service; action; version: the smallest that will do */
#define PLUGIN_ADDRESS_EVENT 4u  /* target is the name of an event, which everybody gets who subscribes to it; see below */
#define PLUGIN_ADDRESS_BOUND 5u  /* object is a bound action; see PLUGIN_BOUND_EXTENSION */
#define PLUGIN_ADDRESS_CHAIN 6u  /* target is the name of an event that runs up the chain; see PLUGIN_CHAIN_EXTENSION */

#define PLUGIN_REQUEST_REMOTE 1u /* treat it as coming from another program: remote actions only */
#define PLUGIN_REQUEST_OBJECT 2u /* of a URL: the caller wants an object; the action sees it as the parameter _object */
#define PLUGIN_REQUEST_FRESH 4u  /* an instance of the target is made for this call, whatever the manifest says */

#define PLUGIN_REQUEST_STICKY 8u /* of an event: modules that come later get it, too, when they have started */

/* An event goes to all subscribers, modules first, in the order of level, priority and name. Its parameters have names;
 * those that a subscriber does not declare are left out for it. `perform` starts the asynchronous subscribers and does
 * not wait for them, `call` waits. One that fails does not stop the others. The result is a map: "delivered" (int), how
 * many got it, and "failures" (list), a map with "code", "message" and "source" for each that failed. */

/* An event that runs up the chain begins at `object`; if that is 0, at the object that the parent call works on, and
 * where there is none, at the module that calls. See PLUGIN_CHAIN_EXTENSION. */

/* What is asked for. Borrowed until the function that takes it returns. */
typedef struct plugin_request {
    uint32_t size;
    uint32_t address; /* PLUGIN_ADDRESS_... */
    plugin_string target;
    plugin_string action;
    plugin_object object;
    const plugin_entry *parameters;
    uint64_t parameter_count; /* at most 1048576 */
    int64_t timeout; /* nanoseconds from now; 0 for the default: none, or the host's for asynchronous calls */
    uint32_t flags;  /* PLUGIN_REQUEST_... */
    uint32_t reserved;
    plugin_string version; /* of a service: the smallest one that will do; empty for any */
} plugin_request;

/* Takes the outcome of a request, exactly once. Either `value` or `error` is null; both are borrowed.
 * Strings in `value` are valid UTF-8, and it is nested at most PLUGIN_DEPTH_MAX deep. */
typedef void (*plugin_completion)(void *data, const plugin_value *value, const plugin_error *error);

#define PLUGIN_OBJECT_ASYNC 1u  /* callback_create: it replies later */

#define PLUGIN_REPLY_ACCEPTED 0
#define PLUGIN_REPLY_STALE 1   /* replied before, or too late: nothing happened */
#define PLUGIN_REPLY_REFUSED 2 /* the value was invalid; the caller has got an error that says so */

/* The host's functions for one module, valid for the life of the process. Every function takes the table
 * as its first argument, knows by it which module calls, and is [any thread]. */
struct plugin_host {
    uint32_t size;
    uint16_t abi_major;
    uint16_t abi_minor;
    void *implementation; /* the host's own */

    /* Calls a synchronous action; `completion` is called before it returns, on this thread or, if the action
     * replies from another one, there. An asynchronous action is the error asynchronousAction. */
    void (*perform)(const plugin_host *host, plugin_token parent, const plugin_request *request,
                    plugin_completion completion, void *data);
    /* Calls an action of either kind; `completion` may be called before this returns. Returns a token for
     * cancel, or 0 when the call is already over. */
    plugin_token (*call)(const plugin_host *host, plugin_token parent, const plugin_request *request,
                         plugin_completion completion, void *data);
    /* Ends a call that this module has made by `call`, with the error cancelled. The action is told, and goes on until
     * it ends. A token of others' calls, or of one that is over, is ignored. */
    void (*cancel)(const plugin_host *host, plugin_token call);

    /* The reply to a call: with a value (null means PLUGIN_KIND_NULL) or with an error. The caller has taken
     * what it needs when these return. They return PLUGIN_REPLY_... */
    int32_t (*resolve)(const plugin_host *host, plugin_token call, const plugin_value *result);
    int32_t (*reject)(const plugin_host *host, plugin_token call, const plugin_error *error);
    /* Asks to be told when nobody waits for an asynchronous call any longer. `handler` is called exactly once,
     * with 1 if the call was cancelled or its deadline passed, with 0 when it has ended in another way; maybe
     * before this returns, and from any thread. A call has one handler: a second one is called at once, with 0, and
     * so is one for a call that is not the module's own, or not asynchronous. */
    void (*on_cancel)(const plugin_host *host, plugin_token call, void (*handler)(void *data, int32_t cancelled),
                      void *data);

    /* Makes an object of a type that the manifest declares. It has one holder, the caller of this function, and
     * `destroy` is called once, when the last holder releases it. 0: the manifest declares no such type. */
    plugin_object (*object_create)(const plugin_host *host, plugin_string type, void *instance,
                                   void (*destroy)(void *instance));
    /* Makes an object with one action, "call", that takes any arguments by position (a closure as a value).
     * `flags` is 0 or PLUGIN_OBJECT_ASYNC. */
    plugin_object (*callback_create)(const plugin_host *host, plugin_invoke invoke, void *data,
                                     void (*destroy)(void *data), uint32_t flags);
    /* Adds and removes a holder. Who receives an object in a value and keeps it longer retains it. A handle that
     * nobody holds any more is found and ignored; these return 0, or 1 for such a handle. */
    int32_t (*object_retain)(const plugin_host *host, plugin_object object);
    int32_t (*object_release)(const plugin_host *host, plugin_object object);

    /* An interface of the host by name and revision; null where the host does not have it. */
    const void *(*get_extension)(const plugin_host *host, plugin_string identifier);
};

/* ------------------------------------------------------------------- extensions of the host -- */

/* Writing to the host's log. */
#define PLUGIN_LOG_EXTENSION "pluginhost.log/1"
#define PLUGIN_LOG_DEBUG 0u
#define PLUGIN_LOG_INFO 1u
#define PLUGIN_LOG_WARNING 2u
#define PLUGIN_LOG_ERROR 3u
typedef struct plugin_log {
    uint32_t size;
    uint32_t reserved;
    /* `call` is the call that the message is about, or 0. [any thread] */
    void (*write)(const plugin_host *host, plugin_token call, uint32_t level, plugin_string message);
} plugin_log;

/* What the module was given. Constant. */
#define PLUGIN_CONTEXT_EXTENSION "pluginhost.context/1"
typedef struct plugin_context {
    uint32_t size;
    uint32_t reserved;
    plugin_string module;       /* the name in the manifest */
    plugin_string file;         /* the file it came from, in the plugins folder (what runs is a copy) */
    plugin_string folder;       /* the folder of that file: resources lie beside it; empty in a part of the program */
    plugin_value configuration; /* a map, empty when nothing was configured for the module when it was loaded */
    plugin_value values; /* what every module is told: a map with "environment" (string), "arguments" (list of strings),
                          * "launchTime" (double, seconds since 1970) and "values" (map, the program's own) */
} plugin_context;

/* Services: what implements them, instances that last longer than a call, and waiting for them. A single call needs
 * none of this: PLUGIN_ADDRESS_SERVICE does it.
 *
 * Each function tells `completion` a map: name, version, module, target, priority, singleton, summary, file where a
 * file declares the service and not the module, and from `request` object as the last entry; or the error unknownService. The entries of a map without an object live as long
 * as the process: who wants to know later may read them then. `version` is the smallest one that will do, or empty. [any thread] */
#define PLUGIN_SERVICES_EXTENSION "pluginhost.services/1"
typedef struct plugin_services {
    uint32_t size;
    uint32_t reserved;
    /* What implements a service. Nothing is made. */
    void (*info)(const plugin_host *host, plugin_string name, plugin_string version, plugin_completion completion,
                 void *data);
    /* The same, and an object with an instance of its own, on which the actions of the service's target are performed.
     * It is borrowed: who keeps it retains it; the instance is destroyed with it. Null for a singleton and for a target
     * that has no instances: these are called by PLUGIN_ADDRESS_SERVICE. */
    void (*request)(const plugin_host *host, plugin_token parent, plugin_string name, plugin_string version,
                    plugin_completion completion, void *data);
    /* Tells what implements the service as soon as something does; deadlineExceeded when `timeout` (nanoseconds; 0 for
     * the host's default) has passed before. Returns a token for cancel, or 0 when it is over. */
    plugin_token (*wait)(const plugin_host *host, plugin_token parent, plugin_string name, plugin_string version,
                         int64_t timeout, plugin_completion completion, void *data);
} plugin_services;

/* What is configured for the module now; it can change while the module runs. */
#define PLUGIN_CONFIGURATION_EXTENSION "pluginhost.configuration/1"
typedef struct plugin_configuration {
    uint32_t size;
    uint32_t reserved;
    /* Calls `receiver` once, before it returns, with a map that is empty when nothing is configured. The map is
     * borrowed until `receiver` returns. [any thread] */
    void (*read)(const plugin_host *host, void (*receiver)(void *data, const plugin_value *configuration), void *data);
} plugin_configuration;

/* Bound actions: names that are resolved once, for calls that are made many times. A bound action is a number; a
 * request with the address PLUGIN_ADDRESS_BOUND and that number as its object is the same call as one by target and
 * action, with the same checks and the same errors, and without the lookup. It is not tied to a copy of the module:
 * when modules come, change or go, the next call goes where a call by name would go. */
#define PLUGIN_BOUND_EXTENSION "pluginhost.bound/1"
typedef uint64_t plugin_bound_action; /* 0 is none */
typedef struct plugin_bound {
    uint32_t size;
    uint32_t reserved;
    /* The bound action of a target's action, whether a module offers it now or not: what is missing is the error of the
     * call. The same names give the same number. There is nothing to release. 0 when the names are no UTF-8, or when
     * there are a hundred thousand others. [any thread] */
    plugin_bound_action (*bind)(const plugin_host *host, plugin_string target, plugin_string action);
    /* Performs a bound synchronous action with `count` arguments in declared order, which stay as they are until this
     * returns: the call that `perform` of the host's table makes of such a request with 0 as its parent, in the least
     * time. Returns 1 when the result is in `result`: null, a bool, an int or a double. Returns 0 when `completion` has
     * been told the outcome instead, which may be such a value, too; then `result` is as it was. Without `result` it is
     * always told. (since 1.2) [any thread] */
    int32_t (*perform)(const plugin_host *host, plugin_bound_action action, const plugin_value *arguments,
                       uint32_t count, plugin_value *result, plugin_completion completion, void *data);
} plugin_bound;

/* Questions about URLs. */
#define PLUGIN_ROUTES_EXTENSION "pluginhost.routes/1"
typedef struct plugin_routes {
    uint32_t size;
    uint32_t reserved;
    /* Whether opening a URL would reach an action: 1 if it resolves, its parameters check and the guard passes, else 0.
     * The request is the one that `perform` would get, with the address PLUGIN_ADDRESS_URL. [any thread] */
    int32_t (*can_open)(const plugin_host *host, const plugin_request *request);
    /* Builds the URL of a route: `target` of the request is the name of the route or its pattern, and its parameters,
     * which have names, are the values of the groups, and of the query. Tells `completion` a string, or an error.
     * [any thread] */
    void (*build)(const plugin_host *host, const plugin_request *request, plugin_completion completion, void *data);
} plugin_routes;

/* Instances of targets. */
#define PLUGIN_INSTANCES_EXTENSION "pluginhost.instances/1"
typedef struct plugin_instances {
    uint32_t size;
    uint32_t reserved;
    /* Drops the instance that the calls of a target share: the next call makes another. Tells `completion` whether there
     * was one (bool), or the error unknownTarget. [any thread] */
    void (*release)(const plugin_host *host, plugin_string target, plugin_completion completion, void *data);
} plugin_instances;

/* Events along a chain. Objects can have a parent: of a page that a navigator shows it is the page below. A request with
 * the address PLUGIN_ADDRESS_CHAIN asks the object where it begins, then its parent, and so on, then the module of the
 * object (or of the caller, where no object is), then the program, until one handles the event.
 *
 * Who handles an event has an action of the name "handle.EVENT": of the object's type, or of one of the module's targets.
 * It gets the event's parameters that it declares, and, if it declares them, "_event" (string, the name) and "_parameters"
 * (map, all of them). It replies with null or true: it has handled the event, and nobody else is asked; with false: the
 * next one is asked; or with a map, of which each entry may be left out: "handled" (bool; false), "result" (any value),
 * and "parameters" (map), which the next ones get in place of the event's. One that fails passes the event on as it was.
 *
 * The result of the request is a map: "handled" (bool), "handler" (string, who it was, or null), "result" (any),
 * "parameters" (map, as they were in the end) and "failures" (list), a map with "code", "message" and "source" for each
 * handler that failed. `perform` cannot ask asynchronous handlers: they count as failed. */
#define PLUGIN_CHAIN_EXTENSION "pluginhost.chain/1"
#define PLUGIN_PARENT_SET 0
#define PLUGIN_PARENT_GONE 1     /* nobody holds the object or the parent any more: nothing happened */
#define PLUGIN_PARENT_CIRCULAR 2 /* the object is the parent, or above it: nothing happened */
typedef struct plugin_chain {
    uint32_t size;
    uint32_t reserved;
    /* The object whose action `call` is, borrowed as long as the call runs; 0 for an action of a target. [any thread] */
    plugin_object (*receiver)(const plugin_host *host, plugin_token call);
    /* Gives an object a parent, which it does not hold; 0 takes it away. Returns PLUGIN_PARENT_... [any thread] */
    int32_t (*set_parent)(const plugin_host *host, plugin_object object, plugin_object parent);
} plugin_chain;

/* ----------------------------------------------------------------------- small constructors -- */

static inline plugin_string plugin_string_make(const char *bytes, uint64_t count) {
    plugin_string string = {bytes, count};
    return string;
}

/* For string literals: as an expression, and in the initializer of a static table. */
#define PLUGIN_STRING(literal) plugin_string_make(literal, sizeof(literal) - 1)
#define PLUGIN_STRING_INIT(literal) {literal, sizeof(literal) - 1}

static inline plugin_value plugin_value_null(void) {
    plugin_value value = {PLUGIN_KIND_NULL, 0, {0}};
    return value;
}
static inline plugin_value plugin_value_bool(int boolean) {
    plugin_value value = {PLUGIN_KIND_BOOL, 0, {0}};
    value.as.boolean = boolean != 0;
    return value;
}
static inline plugin_value plugin_value_int(int64_t integer) {
    plugin_value value = {PLUGIN_KIND_INT, 0, {0}};
    value.as.integer = integer;
    return value;
}
static inline plugin_value plugin_value_double(double real) {
    plugin_value value = {PLUGIN_KIND_DOUBLE, 0, {0}};
    value.as.real = real;
    return value;
}
static inline plugin_value plugin_value_string(const char *bytes, uint32_t count) {
    plugin_value value = {PLUGIN_KIND_STRING, count, {0}};
    value.as.string = bytes;
    return value;
}
static inline plugin_value plugin_value_bytes(const uint8_t *bytes, uint32_t count) {
    plugin_value value = {PLUGIN_KIND_BYTES, count, {0}};
    value.as.bytes = bytes;
    return value;
}
static inline plugin_value plugin_value_list(const plugin_value *values, uint32_t count) {
    plugin_value value = {PLUGIN_KIND_LIST, count, {0}};
    value.as.list = values;
    return value;
}
static inline plugin_value plugin_value_map(const plugin_entry *entries, uint32_t count) {
    plugin_value value = {PLUGIN_KIND_MAP, count, {0}};
    value.as.map = entries;
    return value;
}
static inline plugin_value plugin_value_object(plugin_object object) {
    plugin_value value = {PLUGIN_KIND_OBJECT, 0, {0}};
    value.as.object = object;
    return value;
}

/* Replies to a call with a result, before the action returns: in place where the call has a place for it, else with
 * resolve. Not for a call that has returned: that one has nothing left but its token. Returns PLUGIN_REPLY_...
 * [any thread, one at a time] */
static inline int32_t plugin_reply(const plugin_host *host, const plugin_call *call, plugin_value result) {
    if ((call->flags & PLUGIN_CALL_IN_PLACE) && result.kind <= PLUGIN_KIND_DOUBLE
        && call->result->kind == PLUGIN_KIND_NONE) {
        *call->result = result;
        return PLUGIN_REPLY_ACCEPTED;
    }
    plugin_value lent = result; /* so that the way above needs no memory for it */
    return host->resolve(host, call->token, &lent);
}

/* ----------------------------------------------------------------------------------- layout -- */

PLUGIN_ABI_ASSERT(sizeof(void *) == 8, "64-bit machines only");
PLUGIN_ABI_ASSERT(sizeof(plugin_string) == 16, "plugin_string");
PLUGIN_ABI_ASSERT(sizeof(plugin_value) == 16, "plugin_value");
PLUGIN_ABI_ASSERT(offsetof(plugin_value, as) == 8, "plugin_value.as");
PLUGIN_ABI_ASSERT(sizeof(plugin_entry) == 32, "plugin_entry");
PLUGIN_ABI_ASSERT(sizeof(plugin_error) == 48, "plugin_error");
PLUGIN_ABI_ASSERT(offsetof(plugin_call, result) == 32, "plugin_call.result");
PLUGIN_ABI_ASSERT(sizeof(plugin_call) == 40, "plugin_call");
PLUGIN_ABI_ASSERT(sizeof(plugin_function) == 32, "plugin_function");
PLUGIN_ABI_ASSERT(sizeof(plugin_factory) == 40, "plugin_factory");
PLUGIN_ABI_ASSERT(offsetof(plugin_module, toolchain) == 16, "plugin_module.toolchain");
PLUGIN_ABI_ASSERT(sizeof(plugin_module) == 112, "plugin_module");
PLUGIN_ABI_ASSERT(sizeof(plugin_request) == 96, "plugin_request");
PLUGIN_ABI_ASSERT(offsetof(plugin_request, version) == 80, "plugin_request.version");
PLUGIN_ABI_ASSERT(offsetof(plugin_host, perform) == 16, "plugin_host.perform");
PLUGIN_ABI_ASSERT(sizeof(plugin_host) == 104, "plugin_host");
PLUGIN_ABI_ASSERT(sizeof(plugin_log) == 16, "plugin_log");
PLUGIN_ABI_ASSERT(sizeof(plugin_context) == 88, "plugin_context");
PLUGIN_ABI_ASSERT(sizeof(plugin_services) == 32, "plugin_services");
PLUGIN_ABI_ASSERT(sizeof(plugin_bound) == 24, "plugin_bound");
PLUGIN_ABI_ASSERT(sizeof(plugin_routes) == 24, "plugin_routes");
PLUGIN_ABI_ASSERT(sizeof(plugin_instances) == 16, "plugin_instances");
PLUGIN_ABI_ASSERT(sizeof(plugin_chain) == 24, "plugin_chain");

#ifdef __cplusplus
}
#endif

#endif /* PLUGIN_ABI_H */
