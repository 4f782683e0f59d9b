/* values.h - values in canonical pre-order, see plugin_wire.h */
#ifndef VALUES_H
#define VALUES_H

#include "plugin_wire.h"

/* A buffer that is filled, or only measured if `base` is null. */
typedef struct wire_out {
    uint8_t *base;
    size_t used, capacity;
    int has_failed;  /* there was no room */
    int has_objects;
} wire_out;

/* Appends values and all that they contain. */
void wire_put_values(wire_out *out, const plugin_value *values, size_t count, uint32_t depth);

/* Returns the eight bytes of a number, a truth value or null, none of which is uninitialised. */
uint64_t wire_bytes_of(const plugin_value *scalar);

/* Bytes of this process that are being read, 8-aligned. Their pointers are assigned in place. */
typedef struct wire_in {
    uint8_t *base;
    size_t used, size;
    int has_objects;
} wire_in;

/* Reads values; null if they do not fit into the bytes, or nest too deeply. */
plugin_value *wire_take_values(wire_in *in, uint64_t count, uint32_t depth);

#endif
