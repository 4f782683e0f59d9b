#include "messages.h"
#include "values.h"

#include <stdlib.h>
#include <string.h>

wire_head wire_head_of(const plugin_wire_message *message) {
    wire_head head;
    memset(&head, 0, sizeof head);
    head.kind = message->kind;
    head.flags = message->flags;
    head.token = message->token;
    head.a = message->a;
    head.b = message->b;
    if (message->scalar.kind <= PLUGIN_KIND_DOUBLE) head.scalar = message->scalar;
    head.count = message->count;
    return head;
}

int wire_read(const wire_head *head, uint8_t *bytes, plugin_wire_message *message) {
    plugin_value *values = NULL;
    int has_objects = 0;
    if (head->count) {
        wire_in in = {bytes, 0, head->length, 0};
        values = bytes ? wire_take_values(&in, head->count, 0) : NULL;
        has_objects = in.has_objects;
        if (!values || in.used != head->length) return 1;
    }
    *message = (plugin_wire_message){.kind = head->kind & ~WIRE_IN_ROOM,
                                     .flags = head->flags,
                                     .token = head->token,
                                     .a = head->a,
                                     .b = head->b,
                                     .scalar = head->scalar,
                                     .values = values,
                                     .count = head->count,
                                     .has_objects = (uint32_t)has_objects};
    if (message->scalar.kind > PLUGIN_KIND_DOUBLE) message->scalar = plugin_value_null();
    return 0;
}

int wire_make(const wire_head *head, uint8_t *bytes, plugin_wire_message *message) {
    int is_invalid = wire_read(head, bytes, message);
    if (is_invalid) free(bytes);
    return is_invalid;
}

int wire_make_only(const wire_head *head, plugin_wire_message *message) {
    wire_head rest = *head;
    rest.kind &= 0xFFFFu;
    rest.only = 0;
    (void)wire_read(&rest, NULL, message); /* a message without values */
    message->only.kind = WIRE_ONLY_KIND(head->kind);
    message->only.as.integer = (int64_t)head->only;
    message->values = &message->only;
    message->count = 1;
    return message->only.kind > PLUGIN_KIND_DOUBLE;
}

int wire_make_of_room(plugin_wire_rooms *rooms, const wire_head *head, uint32_t room, plugin_wire_message *message) {
    uint8_t *bytes = head->length ? wire_rooms_map(rooms, room, head->length) : NULL;
    if (!bytes) return 1;
    int is_invalid = wire_read(head, bytes, message);
    if (is_invalid) wire_rooms_unmap(rooms, room, bytes, head->length);
    else (message->room = room, message->length = head->length, message->rooms = rooms);
    return is_invalid;
}

void plugin_wire_dispose(plugin_wire_message *message) {
    if (message->rooms) wire_rooms_unmap(message->rooms, message->room, (void *)message->values, message->length);
    else if (message->in_use) *message->in_use = message->length;
    else if (message->values != &message->only) free((void *)message->values); /* the first of its bytes */
    message->values = NULL;
    message->count = 0;
    message->room = 0;
    message->rooms = NULL;
    message->in_use = NULL;
}

uint32_t plugin_wire_measure(const plugin_wire_message *message) {
    wire_out measured = {NULL, 0, PLUGIN_WIRE_MAX_BYTES, 0, 0};
    if (message->count) wire_put_values(&measured, message->values, message->count, 0);
    return measured.has_failed ? UINT32_MAX : (uint32_t)measured.used;
}

int plugin_wire_copy(plugin_wire_message *message, uint32_t limit) {
    if (message->count == 0) {
        message->values = NULL;
        return 0;
    }
    wire_out measured = {NULL, 0, limit, 0, 0};
    wire_put_values(&measured, message->values, message->count, 0);
    wire_head head = wire_head_of(message);
    uint8_t *bytes = measured.has_failed ? NULL : malloc(measured.used);
    if (bytes) {
        wire_out out = {bytes, 0, measured.used, 0, 0};
        wire_put_values(&out, message->values, message->count, 0);
        head.length = (uint32_t)measured.used;
        if (wire_make(&head, bytes, message) == 0) return 0;
    }
    message->values = NULL;
    message->count = 0;
    return 1;
}

uint8_t *plugin_wire_pack(const plugin_wire_message *message, size_t *count) {
    wire_head head = wire_head_of(message);
    head.length = message->room ? message->length : plugin_wire_measure(message);
    if (head.length == UINT32_MAX) return NULL;
    uint32_t room = message->room;
    if (room) head.kind |= WIRE_IN_ROOM;
    size_t length = room ? sizeof room : head.length;
    uint64_t rest = sizeof head + length;
    *count = sizeof rest + rest;
    uint8_t *bytes = malloc(*count);
    if (!bytes) return NULL;
    memcpy(bytes, &rest, sizeof rest);
    memcpy(bytes + sizeof rest, &head, sizeof head);
    wire_out out = {bytes + sizeof rest + sizeof head, 0, length, 0, 0};
    if (room) memcpy(out.base, &room, sizeof room);
    else if (message->count) wire_put_values(&out, message->values, message->count, 0);
    return bytes;
}

