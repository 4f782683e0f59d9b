/* rooms.h - memory for the values of one message, see plugin_wire.h */
#ifndef ROOMS_H
#define ROOMS_H

#include "plugin_wire.h"

/* Makes the table of the rooms that one side knows. Messages in rooms keep the table. Returns null if there is no
 * memory. */
plugin_wire_rooms *wire_rooms_create(void);
void wire_rooms_release(plugin_wire_rooms *rooms);
void wire_rooms_set(plugin_wire_rooms *rooms, int (*take)(uint32_t), void (*leave)(uint32_t));
/* Creates a memfd that never changes its size. Returns -1, and sets errno, if that is not possible. */
int wire_memory_create(const char *name, size_t size);

/* See plugin_wire.h. */
uint32_t wire_rooms_put(plugin_wire_rooms *rooms, plugin_wire_message *message, uint32_t length);
int wire_rooms_lend(plugin_wire_rooms *rooms, uint32_t number);
uint32_t wire_rooms_give(plugin_wire_rooms *rooms, uint32_t length, int *descriptor);
int wire_rooms_leave(plugin_wire_rooms *rooms, uint32_t number);
void wire_rooms_close(plugin_wire_rooms *rooms);
int wire_rooms_fill(plugin_wire_rooms *rooms, uint32_t number, const plugin_wire_message *message, uint32_t length);

/* Maps a room with values of the other side, each room only once. Returns null if it is not valid. */
uint8_t *wire_rooms_map(plugin_wire_rooms *rooms, uint32_t number, uint32_t length);
/* Unmaps such a room; or, if `bytes` is null, removes a room with this side's values that were not sent. */
void wire_rooms_unmap(plugin_wire_rooms *rooms, uint32_t number, void *bytes, uint32_t length);

#endif
