#include "worker.h"

#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------- values */

plugin_value plugin_worker_text(plugin_string string) {
    /* A count that does not fit is refused by the host, as an error of the text. */
    uint32_t count = string.count > UINT32_MAX ? UINT32_MAX : (uint32_t)string.count;
    return plugin_value_string(string.count > UINT32_MAX ? NULL : string.bytes, count);
}

plugin_string plugin_worker_string(const plugin_value *value) { return plugin_string_of(value); }

plugin_wire_message plugin_worker_message(enum plugin_wire_kind kind) {
    plugin_wire_message message;
    memset(&message, 0, sizeof message);
    message.kind = kind;
    return message;
}

void plugin_worker_put_request(const plugin_request *borrowed, plugin_value *values) {
    plugin_request request;
    memset(&request, 0, sizeof request);
    request.size = borrowed->size; /* a shorter request is refused for its size */
    if (borrowed->size >= sizeof request) request = *borrowed;
    int is_sound = request.parameter_count <= 1048576 && (request.parameters || !request.parameter_count);
    values[0] = plugin_value_int(request.size);
    values[1] = plugin_value_int(request.address);
    values[2] = plugin_worker_text(request.target);
    values[3] = plugin_worker_text(request.action);
    values[4] = plugin_value_int((int64_t)request.object);
    /* What is no list of parameters is described to the host, which refuses it. */
    values[5] = plugin_value_map(is_sound ? request.parameters : NULL, is_sound ? (uint32_t)request.parameter_count : 0);
    values[6] = plugin_value_int((int64_t)request.parameter_count);
    values[7] = plugin_value_int(request.timeout);
    values[8] = plugin_value_int(request.flags);
    values[9] = plugin_worker_text(request.version);
    values[10] = plugin_value_int(request.method);
}

/* ------------------------------------------------------------------------------------ outcomes */

static plugin_error error_of(const plugin_value *values, uint32_t count) {
    plugin_error error = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    if (count < 3) return error;
    error.code = plugin_worker_string(&values[0]);
    error.message = plugin_worker_string(&values[1]);
    error.source = plugin_worker_string(&values[2]);
    return error;
}

void plugin_worker_pass_outcome(plugin_wire_message *message, plugin_completion completion, void *data) {
    if (completion) {
        if (message->flags & PLUGIN_WIRE_ERROR) {
            plugin_error error = error_of(message->values, message->count);
            completion(data, NULL, &error);
        } else {
            completion(data, message->flags & PLUGIN_WIRE_VALUE ? message->values : &message->scalar, NULL);
        }
    }
    if (message->b) {
        plugin_wire_message done = plugin_worker_message(PLUGIN_WIRE_DONE);
        done.a = (uint64_t)message->b;
        plugin_worker_ask(done);
    }
}

#define TEXT_OF(number) #number
#define NUMBER(number) TEXT_OF(number)
#define LIMIT                                                                                                          \
    " more than " NUMBER(PLUGIN_WIRE_MAX_MIB) " MiB, which is the most that can be passed to or from an "              \
    "isolated module. Pass less at a time, or use a file."

static plugin_error no_room(void) {
    return (plugin_error){PLUGIN_STRING("overloaded"),
                          PLUGIN_STRING("There is no memory for the values: the large values of an isolated module may "
                                        "take " NUMBER(PLUGIN_WIRE_ROOMS_GIB) " GiB at a time. Pass less at a time."),
                          {NULL, 0}};
}

void plugin_worker_fail_unsent(int reason, plugin_completion completion, void *data) {
    plugin_error error = {PLUGIN_STRING("invalidValue"), PLUGIN_STRING("The values take" LIMIT), {NULL, 0}};
    if (reason == PLUGIN_WIRE_NO_ROOM) error = no_room();
    if (completion) completion(data, NULL, &error);
}

void plugin_worker_ask_for_outcome(plugin_wire_message message, plugin_completion completion, void *data) {
    uint32_t channel = plugin_worker_begin();
    int unsent = plugin_worker_exchange(channel, &message);
    if (unsent) {
        plugin_worker_fail_unsent(unsent, completion, data);
    } else {
        plugin_worker_pass_outcome(&message, completion, data);
        plugin_wire_dispose(&message);
    }
    plugin_worker_end(channel);
}

/* --------------------------------------------------------------------------------------- calls */

static plugin_token parent_or_current(plugin_token parent) { return parent ? parent : plugin_worker_current(); }

static void perform(const plugin_host *host, plugin_token parent, const plugin_request *request,
                    plugin_completion completion, void *data) {
    (void)host;
    plugin_value values[WORKER_REQUEST_VALUES];
    plugin_wire_message message = plugin_worker_message(PLUGIN_WIRE_PERFORM);
    message.token = parent_or_current(parent);
    if (request) {
        plugin_worker_put_request(request, values);
        message.values = values;
        message.count = WORKER_REQUEST_VALUES;
    }
    plugin_worker_ask_for_outcome(message, completion, data);
}

static plugin_token call(const plugin_host *host, plugin_token parent, const plugin_request *request,
                         plugin_completion completion, void *data) {
    (void)host;
    plugin_value values[WORKER_REQUEST_VALUES];
    plugin_worker_pending *pending = plugin_worker_allocate(sizeof *pending);
    *pending = (plugin_worker_pending){completion, data};
    plugin_wire_message message = plugin_worker_message(PLUGIN_WIRE_BEGIN);
    message.token = parent_or_current(parent);
    message.a = (uint64_t)(uintptr_t)pending;
    if (request) {
        plugin_worker_put_request(request, values);
        message.values = values;
        message.count = WORKER_REQUEST_VALUES;
    }
    uint32_t channel = plugin_worker_begin();
    plugin_token token = 0;
    int unsent = plugin_worker_exchange(channel, &message);
    if (unsent) {
        free(pending);
        plugin_worker_fail_unsent(unsent, completion, data);
    } else {
        token = message.token;
        plugin_wire_dispose(&message);
    }
    plugin_worker_end(channel);
    return token;
}

static void cancel(const plugin_host *host, plugin_token call) {
    (void)host;
    plugin_wire_message message = plugin_worker_message(PLUGIN_WIRE_CANCEL);
    message.token = call;
    plugin_worker_ask(message);
}

/* ------------------------------------------------------------------------------------- replies */

/* Sends a reply and sets its status. Returns why it was not sent, or PLUGIN_WIRE_PUT. */
static int reply(plugin_wire_message message, int32_t *status) {
    uint32_t channel = plugin_worker_begin_brief();
    int unsent = plugin_worker_exchange(channel, &message);
    if (!unsent) {
        *status = (int32_t)message.a;
        plugin_wire_dispose(&message);
    }
    plugin_worker_end(channel);
    return unsent;
}

/* Returns the beginning of a text, so short that an error with three of them can be sent. */
static plugin_string beginning(plugin_string text) {
    enum { BYTES_MAX = 65536 };
    if (!text.bytes || text.count <= BYTES_MAX) return text;
    uint64_t count = BYTES_MAX;
    while (count && ((unsigned char)text.bytes[count] & 0xC0) == 0x80) count--; /* not within a character */
    return (plugin_string){text.bytes, count};
}

static int32_t reject(const plugin_host *host, plugin_token call, const plugin_error *error) {
    (void)host;
    plugin_wire_message message = plugin_worker_message(PLUGIN_WIRE_REJECT);
    message.token = call;
    plugin_value values[3];
    if (error) {
        values[0] = plugin_worker_text(error->code);
        values[1] = plugin_worker_text(error->message);
        values[2] = plugin_worker_text(error->source);
        message.values = values;
        message.count = 3;
        if (plugin_wire_measure(&message) > PLUGIN_WIRE_CHANNEL_BYTES) {
            values[0] = plugin_worker_text(beginning(error->code));
            values[1] = plugin_worker_text(beginning(error->message));
            values[2] = plugin_worker_text(beginning(error->source));
        }
    }
    int32_t status = PLUGIN_REPLY_REFUSED;
    reply(message, &status);
    return status;
}

static int32_t resolve(const plugin_host *host, plugin_token call, const plugin_value *result) {
    plugin_value null = plugin_value_null();
    plugin_wire_message message = plugin_worker_message(PLUGIN_WIRE_RESOLVE);
    message.token = call;
    message.values = result ? result : &null;
    message.count = 1;
    int32_t status;
    int unsent = reply(message, &status);
    if (!unsent) return status;
    plugin_error error = {PLUGIN_STRING("invalidResult"), PLUGIN_STRING("The result takes" LIMIT), {NULL, 0}};
    if (unsent == PLUGIN_WIRE_NO_ROOM) error = no_room();
    return reject(host, call, &error) == PLUGIN_REPLY_ACCEPTED ? PLUGIN_REPLY_REFUSED : PLUGIN_REPLY_STALE;
}

static void on_cancel(const plugin_host *host, plugin_token call, void (*handler)(void *, int32_t), void *data) {
    (void)host;
    if (!handler) return;
    plugin_worker_handler *kept = plugin_worker_allocate(sizeof *kept);
    *kept = (plugin_worker_handler){handler, data};
    plugin_wire_message message = plugin_worker_message(PLUGIN_WIRE_ON_CANCEL);
    message.token = call;
    message.a = (uint64_t)(uintptr_t)kept;
    plugin_worker_ask(message);
}

/* ------------------------------------------------------------------------------------- objects */

static plugin_worker_object *make_object(void *instance, void (*destroy)(void *), plugin_invoke invoke) {
    plugin_worker_object *object = plugin_worker_allocate(sizeof *object);
    *object = (plugin_worker_object){instance, destroy, invoke};
    return object;
}

static plugin_object object_create(const plugin_host *host, plugin_string type, void *instance,
                                   void (*destroy)(void *)) {
    (void)host;
    plugin_worker_object *object = make_object(instance, destroy, NULL);
    plugin_value name = plugin_worker_text(type);
    plugin_wire_message message = plugin_worker_message(PLUGIN_WIRE_OBJECT);
    message.a = (uint64_t)(uintptr_t)object;
    message.values = &name;
    message.count = 1;
    plugin_object handle = plugin_worker_ask(message);
    if (!handle) free(object);
    return handle;
}

static plugin_object callback_create(const plugin_host *host, plugin_invoke invoke, void *data,
                                     void (*destroy)(void *), uint32_t flags) {
    (void)host;
    if (!invoke) return 0;
    plugin_worker_object *callback = make_object(data, destroy, invoke);
    plugin_wire_message message = plugin_worker_message(PLUGIN_WIRE_NEW_CALLBACK);
    message.a = (uint64_t)(uintptr_t)callback;
    message.flags = flags;
    plugin_object handle = plugin_worker_ask(message);
    if (!handle) free(callback);
    return handle;
}

static int32_t ask_about(enum plugin_wire_kind kind, plugin_object object) {
    plugin_wire_message message = plugin_worker_message(kind);
    message.a = object;
    return (int32_t)plugin_worker_ask(message);
}

static int32_t object_retain(const plugin_host *host, plugin_object object) {
    (void)host;
    return ask_about(PLUGIN_WIRE_RETAIN, object);
}

static int32_t object_release(const plugin_host *host, plugin_object object) {
    (void)host;
    return ask_about(PLUGIN_WIRE_RELEASE, object);
}

void plugin_worker_make_table(void) {
    plugin_worker_table = (plugin_host){
        .size = sizeof plugin_worker_table,
        .abi_major = PLUGIN_ABI_MAJOR,
        .abi_minor = PLUGIN_ABI_MINOR,
        .perform = perform,
        .call = call,
        .cancel = cancel,
        .resolve = resolve,
        .reject = reject,
        .on_cancel = on_cancel,
        .object_create = object_create,
        .callback_create = callback_create,
        .object_retain = object_retain,
        .object_release = object_release,
        .get_extension = plugin_worker_extension,
    };
}
