#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_CHANNEL = UINT32_MAX };

static __thread uint32_t own = NO_CHANNEL; /* the channel on which this thread asks */
static __thread uint32_t uses;             /* of `own`, if this thread has taken it itself */
static __thread plugin_worker_frame *top;

plugin_token plugin_worker_current(void) { return top ? top->token : 0; }

/* ------------------------------------------------------------------------------------ channels */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t is_free;
    uint8_t is_taken[PLUGIN_WIRE_UP_CHANNELS];
    uint8_t is_announced[PLUGIN_WIRE_UP_CHANNELS];
} up = {.lock = PTHREAD_MUTEX_INITIALIZER, .is_free = PTHREAD_COND_INITIALIZER};

/* The last channels are not for requests that wait for other code, which may need an answer from this module. */
enum { BRIEF_CHANNELS = 16 };

static uint32_t free_channel(uint32_t end) {
    for (uint32_t index = 0; index < end; index++)
        if (!up.is_taken[index]) return index;
    return NO_CHANNEL;
}

/* Begins to ask on one of the channels before `end`. */
static uint32_t begin(uint32_t end) {
    if (own != NO_CHANNEL) {
        uses++;
        return own;
    }
    pthread_mutex_lock(&up.lock);
    uint32_t index;
    while ((index = free_channel(end)) == NO_CHANNEL) pthread_cond_wait(&up.is_free, &up.lock);
    up.is_taken[index] = 1;
    int is_new = !up.is_announced[index];
    up.is_announced[index] = 1;
    pthread_mutex_unlock(&up.lock);
    own = PLUGIN_WIRE_DOWN_CHANNELS + index;
    uses = 1;
    if (is_new) plugin_worker_announce(own);
    return own;
}

uint32_t plugin_worker_begin(void) { return begin(PLUGIN_WIRE_UP_CHANNELS - BRIEF_CHANNELS); }

uint32_t plugin_worker_begin_brief(void) { return begin(PLUGIN_WIRE_UP_CHANNELS); }

void plugin_worker_end(uint32_t channel) {
    if (--uses > 0 || channel < PLUGIN_WIRE_DOWN_CHANNELS) return;
    own = NO_CHANNEL;
    pthread_mutex_lock(&up.lock);
    up.is_taken[channel - PLUGIN_WIRE_DOWN_CHANNELS] = 0;
    pthread_cond_broadcast(&up.is_free); /* not every thread may take every channel */
    pthread_mutex_unlock(&up.lock);
}

/* --------------------------------------------------------------------------- what the host asks */

static void invoke(plugin_invoke function, void *data, const plugin_wire_message *message,
                   plugin_wire_message *reply) {
    plugin_value result = {PLUGIN_KIND_NONE, 0, {0}};
    int is_in_place = (message->flags & PLUGIN_CALL_IN_PLACE) != 0;
    void *instance = (void *)(uintptr_t)message->scalar.as.integer;
    plugin_call call = {sizeof call, message->flags & ~PLUGIN_WIRE_OF_OBJECT, message->token, instance, message->b,
                        is_in_place ? &result : NULL};
    plugin_value none = plugin_value_null();
    plugin_worker_frame frame = {message->token, top};
    top = &frame;
    function(data, &call, message->values ? message->values : &none, message->count);
    top = frame.outer;
    if (result.kind != PLUGIN_KIND_NONE) {
        reply->flags = PLUGIN_WIRE_SCALAR;
        /* A kind that may not be written in place is reported by the host. */
        reply->scalar = result.kind <= PLUGIN_KIND_DOUBLE ? result : plugin_value_null();
        reply->a = result.kind;
    }
}

static void call_function(const plugin_wire_message *message, plugin_wire_message *reply) {
    const plugin_function *function = &plugin_worker_module->functions[message->a];
    plugin_wire_message call = *message;
    if (message->flags & PLUGIN_WIRE_OF_OBJECT) {
        const plugin_worker_object *object = (const plugin_worker_object *)(uintptr_t)message->scalar.as.integer;
        call.scalar.as.integer = (int64_t)(uintptr_t)object->instance;
    }
    invoke(function->invoke, function->data, &call, reply);
}

static void call_callback(const plugin_wire_message *message, plugin_wire_message *reply) {
    const plugin_worker_object *callback = (const plugin_worker_object *)(uintptr_t)message->a;
    invoke(callback->invoke, callback->instance, message, reply);
}

static void make_instance(const plugin_wire_message *message, plugin_wire_message *reply) {
    const plugin_factory *factory = &plugin_worker_module->factories[message->a];
    plugin_call call = {sizeof call, message->flags, message->token, NULL, message->b, NULL};
    plugin_worker_frame frame = {message->token, top};
    top = &frame;
    reply->a = (uint64_t)(uintptr_t)factory->make(factory->data, &call);
    top = frame.outer;
}

void plugin_worker_unmake(const plugin_wire_message *message) {
    const plugin_factory *factory = &plugin_worker_module->factories[message->a];
    if (factory->destroy) factory->destroy(factory->data, (void *)(uintptr_t)message->token);
}

/* Keeps the context, whose memory lives as long as the process. */
static void activate(const plugin_wire_message *message, plugin_wire_message *reply) {
    plugin_wire_message kept = *message;
    if (plugin_wire_copy(&kept, PLUGIN_WIRE_MAX_BYTES)) plugin_worker_give_up("there is no memory left");
    const plugin_value *values = kept.values;
    plugin_worker_context = (plugin_context){
        sizeof plugin_worker_context, 0, plugin_worker_string(&values[0]), plugin_worker_string(&values[1]),
        plugin_worker_string(&values[2]), values[3], values[4]};
    const plugin_module *module = plugin_worker_module;
    reply->a = module->activate ? (uint32_t)module->activate(module->data, &plugin_worker_table) : 0;
}

static void deactivate(void) {
    if (plugin_worker_module->deactivate) plugin_worker_module->deactivate(plugin_worker_module->data);
    fflush(NULL);
}

/* Executes a message of the host, and disposes of it. */
static plugin_wire_message execute(plugin_wire_message *message) {
    plugin_wire_message reply;
    memset(&reply, 0, sizeof reply);
    reply.kind = PLUGIN_WIRE_RETURN;
    switch (message->kind) {
    case PLUGIN_WIRE_CALL: call_function(message, &reply); break;
    case PLUGIN_WIRE_CALLBACK: call_callback(message, &reply); break;
    case PLUGIN_WIRE_MAKE: make_instance(message, &reply); break;
    case PLUGIN_WIRE_UNMAKE: plugin_worker_unmake(message); break;
    case PLUGIN_WIRE_ACTIVATE: activate(message, &reply); break;
    case PLUGIN_WIRE_DEACTIVATE: deactivate(); break;
    default: plugin_worker_run(message);
    }
    plugin_wire_dispose(message);
    return reply;
}

void *plugin_worker_serve(void *argument) {
    own = (uint32_t)(uintptr_t)argument;
    uses = 1;
    plugin_worker_add_signal_stack();
    for (;;) {
        plugin_wire_await(plugin_worker_wire, own, 0);
        plugin_wire_message message;
        if (plugin_wire_receive(plugin_worker_wire, own, &message))
            plugin_worker_give_up("a message of the host cannot be read");
        plugin_wire_message reply = execute(&message);
        plugin_wire_send(plugin_worker_wire, own, &reply);
    }
}

/* ------------------------------------------------------------------------- what the worker asks */

/* Waits for the answer to what was sent, which it puts into `message`. */
static void await_answer(uint32_t channel, plugin_wire_message *message) {
    for (;;) {
        plugin_wire_await_answer(plugin_worker_wire, channel);
        if (plugin_wire_receive(plugin_worker_wire, channel, message))
            plugin_worker_give_up("a message of the host cannot be read");
        if (message->kind == PLUGIN_WIRE_ANSWER) return;
        plugin_wire_message reply = execute(message);
        plugin_wire_send(plugin_worker_wire, channel, &reply);
    }
}

/* Puts the values of a message into a room of the host. Returns PLUGIN_WIRE_PUT, or why that is not possible. */
static int put_into_room(uint32_t channel, plugin_wire_message *message) {
    uint32_t length = plugin_wire_measure(message);
    if (length == UINT32_MAX) return PLUGIN_WIRE_TOO_LARGE;
    plugin_wire_message room = plugin_worker_message(PLUGIN_WIRE_ROOM);
    room.b = length;
    plugin_wire_send(plugin_worker_wire, channel, &room);
    await_answer(channel, &room);
    uint32_t number = (uint32_t)room.a;
    plugin_wire_dispose(&room);
    return number && plugin_wire_fill(plugin_worker_wire, number, message) == 0 ? PLUGIN_WIRE_PUT : PLUGIN_WIRE_NO_ROOM;
}

int plugin_worker_exchange(uint32_t channel, plugin_wire_message *message) {
    if (plugin_wire_send(plugin_worker_wire, channel, message)) {
        plugin_wire_message in_room = *message;
        int result = put_into_room(channel, &in_room);
        if (result != PLUGIN_WIRE_PUT) return result;
        plugin_wire_send(plugin_worker_wire, channel, &in_room);
    }
    await_answer(channel, message);
    return PLUGIN_WIRE_PUT;
}

uint64_t plugin_worker_ask(plugin_wire_message message) {
    uint32_t channel = plugin_worker_begin_brief();
    uint64_t result = 0;
    if (plugin_worker_exchange(channel, &message) == 0) {
        result = message.a;
        plugin_wire_dispose(&message);
    }
    plugin_worker_end(channel);
    return result;
}
