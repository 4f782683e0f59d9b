/* messages.h - messages as bytes, see plugin_wire.h */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "rooms.h"

/* The head of a message. */
typedef struct wire_head {
    uint32_t kind, flags;
    uint64_t token, a;
    int64_t b;
    plugin_value scalar;
    union {
        struct {
            uint32_t count, length; /* of the values: how many, and how many bytes they take */
        };
        uint64_t only; /* of WIRE_IN_HEAD */
    };
} wire_head;

/* A flag of the kind in a head: the values are in a room. */
#define WIRE_IN_ROOM 0x80000000u
/* A flag of the kind in a head of the host: the only value is a number, a truth value or null. Its bytes are in `only`,
 * its kind in bits 16 to 23 of `kind`. The worker then needs only the line of the cache for which it has waited. */
#define WIRE_IN_HEAD 0x40000000u
#define WIRE_ONLY_KIND(kind) ((kind) >> 16 & 0xFFu)

/* Returns the head of a message without its length. */
wire_head wire_head_of(const plugin_wire_message *message);
/* Makes a message of a head and its bytes, to which the message then refers. Returns 0, or 1 if they are not valid. */
int wire_read(const wire_head *head, uint8_t *bytes, plugin_wire_message *message);
/* Like wire_read, with bytes from malloc, which it takes over. */
int wire_make(const wire_head *head, uint8_t *bytes, plugin_wire_message *message);
/* Makes a message from a head that contains its only value. Returns 0, or 1 if the kind of the value is not valid. */
int wire_make_only(const wire_head *head, plugin_wire_message *message);
/* Makes a message of a head and the values in a room. Returns 0, or 1 if they are not valid. */
int wire_make_of_room(plugin_wire_rooms *rooms, const wire_head *head, uint32_t room, plugin_wire_message *message);

#endif
