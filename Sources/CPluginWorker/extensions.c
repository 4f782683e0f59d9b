#include "worker.h"

#include <stdlib.h>
#include <string.h>

static plugin_wire_message message_of(enum plugin_wire_kind kind, const plugin_value *values, uint32_t count) {
    plugin_wire_message message = plugin_worker_message(kind);
    message.values = values;
    message.count = count;
    return message;
}

/* ---------------------------------------------------------------- log, profile, configuration */

static void write_log(const plugin_host *host, plugin_token call, uint32_t level, plugin_string text) {
    (void)host;
    plugin_value value = plugin_worker_text(text);
    plugin_wire_message message = message_of(PLUGIN_WIRE_LOG, &value, 1);
    message.token = call;
    message.a = level;
    plugin_worker_ask(message);
}

static void mark(const plugin_host *host, plugin_string name, int64_t duration) {
    (void)host;
    plugin_value value = plugin_worker_text(name);
    plugin_wire_message message = message_of(PLUGIN_WIRE_MARK, &value, 1);
    message.b = duration;
    plugin_worker_ask(message);
}

static void read_configuration(const plugin_host *host, void (*receiver)(void *, const plugin_value *), void *data) {
    (void)host;
    plugin_value empty = plugin_value_map(NULL, 0);
    plugin_wire_message message = message_of(PLUGIN_WIRE_CONFIGURATION, NULL, 0);
    uint32_t channel = plugin_worker_begin();
    plugin_worker_exchange(channel, &message);
    int is_there = message.flags & PLUGIN_WIRE_VALUE && message.count && message.values->kind == PLUGIN_KIND_MAP;
    if (receiver) receiver(data, is_there ? message.values : &empty); /* an error is not a configuration */
    plugin_wire_dispose(&message);
    plugin_worker_end(channel);
}

/* -------------------------------------------------------------------------------- call context */

/* Reads the hexadecimal digits of a traceparent, which the host has made. */
static void read_digits(const char *digits, uint8_t *bytes, size_t count) {
    for (size_t index = 0; index < count; index++) {
        unsigned both = 0;
        for (size_t half = 0; half < 2; half++) {
            char digit = digits[2 * index + half];
            both = both << 4 | (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
        }
        bytes[index] = (uint8_t)both;
    }
}

static int32_t read_call_context(const plugin_host *host, plugin_token call,
                                 void (*receiver)(void *, const plugin_call_context *), void *data) {
    (void)host;
    plugin_wire_message message = message_of(PLUGIN_WIRE_CALL_CONTEXT, NULL, 0);
    message.token = call ? call : plugin_worker_current();
    uint32_t channel = plugin_worker_begin_brief();
    int32_t is_there = plugin_worker_exchange(channel, &message) == 0 && message.a && message.count == 3;
    if (is_there && receiver) {
        plugin_call_context context = {.size = sizeof context};
        context.trace_parent = plugin_worker_string(&message.values[0]);
        context.trace_state = plugin_worker_string(&message.values[1]);
        context.caller = plugin_worker_string(&message.values[2]);
        if (context.trace_parent.count == 55) { /* 00-TRACEID-SPANID-FLAGS */
            const char *text = context.trace_parent.bytes;
            read_digits(text + 3, context.trace_id, sizeof context.trace_id);
            read_digits(text + 36, context.span_id, sizeof context.span_id);
            read_digits(text + 53, &context.trace_flags, 1);
        }
        receiver(data, &context);
    }
    plugin_wire_dispose(&message);
    plugin_worker_end(channel);
    return is_there;
}

/* ------------------------------------------------------------------------------- bound actions */

static plugin_bound_action bind_action(const plugin_host *host, plugin_string target, plugin_string action) {
    (void)host;
    plugin_value values[2] = {plugin_worker_text(target), plugin_worker_text(action)};
    return plugin_worker_ask(message_of(PLUGIN_WIRE_BIND, values, 2));
}

static int32_t perform_bound(const plugin_host *host, plugin_bound_action action, const plugin_value *arguments,
                             uint32_t count, plugin_value *result, plugin_completion completion, void *data) {
    (void)host;
    plugin_wire_message message = message_of(PLUGIN_WIRE_BOUND, arguments, arguments ? count : 0);
    message.a = action;
    message.flags = count; /* what stands there if `arguments` is null, which the host refuses */
    uint32_t channel = plugin_worker_begin();
    int32_t is_there = 0;
    int unsent = plugin_worker_exchange(channel, &message);
    if (unsent) {
        plugin_worker_fail_unsent(unsent, completion, data);
    } else if (result && message.a) {
        *result = message.scalar;
        is_there = 1;
        plugin_wire_dispose(&message);
    } else {
        plugin_worker_pass_outcome(&message, completion, data);
        plugin_wire_dispose(&message);
    }
    plugin_worker_end(channel);
    return is_there;
}

/* --------------------------------------------------------------------------- chain, instances */

static plugin_object receiver_of(const plugin_host *host, plugin_token call) {
    (void)host;
    plugin_wire_message message = message_of(PLUGIN_WIRE_RECEIVER, NULL, 0);
    message.token = call;
    return plugin_worker_ask(message);
}

static int32_t set_parent(const plugin_host *host, plugin_object object, plugin_object parent) {
    (void)host;
    plugin_wire_message message = message_of(PLUGIN_WIRE_PARENT, NULL, 0);
    message.a = object;
    message.token = parent;
    return (int32_t)plugin_worker_ask(message);
}

static void drop_instance(const plugin_host *host, plugin_string target, plugin_completion completion, void *data) {
    (void)host;
    plugin_value value = plugin_worker_text(target);
    plugin_worker_ask_for_outcome(message_of(PLUGIN_WIRE_DROP, &value, 1), completion, data);
}

/* --------------------------------------------------------------------------------------- routes */

static int32_t can_open(const plugin_host *host, plugin_token parent, const plugin_request *request) {
    (void)host;
    if (!request) return 0;
    plugin_value values[WORKER_REQUEST_VALUES];
    plugin_worker_put_request(request, values);
    plugin_wire_message message = message_of(PLUGIN_WIRE_CAN_OPEN, values, WORKER_REQUEST_VALUES);
    message.token = parent ? parent : plugin_worker_current();
    return (int32_t)plugin_worker_ask(message);
}

static void build_url(const plugin_host *host, const plugin_request *request, plugin_completion completion,
                      void *data) {
    (void)host;
    plugin_value values[WORKER_REQUEST_VALUES];
    if (request) plugin_worker_put_request(request, values);
    plugin_wire_message message = message_of(PLUGIN_WIRE_BUILD, values, request ? WORKER_REQUEST_VALUES : 0);
    plugin_worker_ask_for_outcome(message, completion, data);
}

/* ------------------------------------------------------------------------------------- services */

/* Descriptions of services, whose entries are valid for the life of the process: equal ones share their memory. */
static struct {
    pthread_mutex_t lock;
    struct description {
        uint8_t *bytes;
        size_t count;
        plugin_wire_message message;
        struct description *next;
    } *first;
} descriptions = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns a lasting copy of a map. */
static const plugin_value *lasting(const plugin_value *map) {
    plugin_wire_message message = message_of(0, map, 1);
    size_t count = 0;
    uint8_t *bytes = plugin_wire_pack(&message, &count);
    if (!bytes) plugin_worker_give_up("there is no memory left");
    pthread_mutex_lock(&descriptions.lock);
    struct description *known = descriptions.first;
    while (known && (known->count != count || memcmp(known->bytes, bytes, count) != 0)) known = known->next;
    if (known) {
        free(bytes);
    } else {
        known = plugin_worker_allocate(sizeof *known);
        *known = (struct description){bytes, count, message, descriptions.first};
        if (plugin_wire_copy(&known->message, PLUGIN_WIRE_MAX_BYTES)) plugin_worker_give_up("there is no memory left");
        descriptions.first = known;
    }
    pthread_mutex_unlock(&descriptions.lock);
    return known->message.values;
}

/* Passes on the description in an outcome. An object in it is borrowed, and is left out of the lasting copy. */
static void pass_description(plugin_wire_message *message, plugin_completion completion, void *data) {
    const plugin_value *map = message->values;
    int is_map = (message->flags & PLUGIN_WIRE_VALUE) && message->count == 1 && map->kind == PLUGIN_KIND_MAP;
    if (!is_map || !completion) return plugin_worker_pass_outcome(message, completion, data);
    plugin_wire_message lent = *message;
    plugin_entry *entries = NULL;
    plugin_value with_object;
    if (message->has_objects) {
        entries = plugin_worker_allocate(map->count * sizeof *entries);
        memcpy(entries, map->as.map, map->count * sizeof *entries);
        with_object = plugin_value_map(entries, map->count);
        plugin_entry *last = &entries[map->count - 1];
        plugin_value object = last->value;
        last->value = plugin_value_null();
        memcpy(entries, lasting(&with_object)->as.map, map->count * sizeof *entries);
        last->value = object;
        lent.values = &with_object;
    } else {
        lent.values = lasting(map);
    }
    plugin_worker_pass_outcome(&lent, completion, data);
    free(entries);
}

static void ask_for_description(plugin_wire_message message, plugin_completion completion, void *data) {
    uint32_t channel = plugin_worker_begin();
    int unsent = plugin_worker_exchange(channel, &message);
    if (unsent) {
        plugin_worker_fail_unsent(unsent, completion, data);
    } else {
        pass_description(&message, completion, data);
        plugin_wire_dispose(&message);
    }
    plugin_worker_end(channel);
}

static void service_info(const plugin_host *host, plugin_string name, plugin_string version,
                         plugin_completion completion, void *data) {
    (void)host;
    plugin_value values[2] = {plugin_worker_text(name), plugin_worker_text(version)};
    ask_for_description(message_of(PLUGIN_WIRE_INFO, values, 2), completion, data);
}

static void request_service(const plugin_host *host, plugin_token parent, plugin_string name, plugin_string version,
                            plugin_completion completion, void *data) {
    (void)host;
    plugin_value values[2] = {plugin_worker_text(name), plugin_worker_text(version)};
    plugin_wire_message message = message_of(PLUGIN_WIRE_REQUEST, values, 2);
    message.token = parent ? parent : plugin_worker_current();
    ask_for_description(message, completion, data);
}

/* The receiver of a description that arrives later. */
static void pass_later_description(void *data, const plugin_value *value, const plugin_error *error) {
    plugin_worker_pending *asked = data;
    if (value && value->kind == PLUGIN_KIND_MAP) {
        if (asked->completion) asked->completion(asked->data, lasting(value), NULL);
    } else if (asked->completion) {
        asked->completion(asked->data, value, error);
    }
    free(asked);
}

static plugin_token await_service(const plugin_host *host, plugin_token parent, plugin_string name,
                                  plugin_string version, int64_t timeout, plugin_completion completion, void *data) {
    (void)host;
    plugin_worker_pending *asked = plugin_worker_allocate(sizeof *asked);
    *asked = (plugin_worker_pending){completion, data};
    plugin_worker_pending *pending = plugin_worker_allocate(sizeof *pending);
    *pending = (plugin_worker_pending){pass_later_description, asked};
    plugin_value values[2] = {plugin_worker_text(name), plugin_worker_text(version)};
    plugin_wire_message message = message_of(PLUGIN_WIRE_AWAIT, values, 2);
    message.token = parent ? parent : plugin_worker_current();
    message.a = (uint64_t)(uintptr_t)pending;
    message.b = timeout;
    uint32_t channel = plugin_worker_begin();
    plugin_token token = 0;
    int unsent = plugin_worker_exchange(channel, &message);
    if (unsent) {
        free(pending);
        free(asked);
        plugin_worker_fail_unsent(unsent, completion, data);
    } else {
        token = message.token;
        plugin_wire_dispose(&message);
    }
    plugin_worker_end(channel);
    return token;
}

/* --------------------------------------------------------------------------------------- tables */

static const plugin_log log_table = {sizeof log_table, 0, write_log};
static const plugin_profile profile_table = {sizeof profile_table, 0, mark};
static const plugin_configuration configuration_table = {sizeof configuration_table, 0, read_configuration};
static const plugin_bound bound_table = {sizeof bound_table, 0, bind_action, perform_bound};
static const plugin_chain chain_table = {sizeof chain_table, 0, receiver_of, set_parent};
static const plugin_instances instances_table = {sizeof instances_table, 0, drop_instance};
static const plugin_routes routes_table = {sizeof routes_table, 0, can_open, build_url};
static const plugin_call_contexts call_contexts_table = {sizeof call_contexts_table, 0, read_call_context};
static const plugin_services services_table = {sizeof services_table, 0, service_info, request_service, await_service};

const void *plugin_worker_extension(const plugin_host *host, plugin_string identifier) {
    (void)host;
    static const struct {
        const char *name;
        const void *table;
    } extensions[] = {
        {PLUGIN_SERVICES_EXTENSION, &services_table},
        {PLUGIN_LOG_EXTENSION, &log_table},
        {PLUGIN_BOUND_EXTENSION, &bound_table},
        {PLUGIN_CONTEXT_EXTENSION, &plugin_worker_context},
        {PLUGIN_CONFIGURATION_EXTENSION, &configuration_table},
        {PLUGIN_ROUTES_EXTENSION, &routes_table},
        {PLUGIN_INSTANCES_EXTENSION, &instances_table},
        {PLUGIN_CHAIN_EXTENSION, &chain_table},
        {PLUGIN_PROFILE_EXTENSION, &profile_table},
        {PLUGIN_CALL_CONTEXT_EXTENSION, &call_contexts_table},
    };
    for (size_t index = 0; index < sizeof extensions / sizeof *extensions; index++)
        if (plugin_string_equals(identifier, extensions[index].name)) return extensions[index].table;
    return NULL;
}
