#include "values.h"

#include <string.h>

/* Replaces a null pointer that has a count: an error, which the reader reports. */
enum { WIRE_NULL_POINTER = 1 };

/* How deeply values may nest in a message: the general limit, the lists and maps that messages add, and one level more,
 * so that values which nest too deeply still arrive, and are refused like any other wrong value. */
enum { DEPTH_MAX = PLUGIN_DEPTH_MAX + 4 };

/* ------------------------------------------------------------------------------------- writing */

static size_t aligned(size_t count) { return (count + 7) & ~(size_t)7; }

/* Reserves room; returns its offset. */
static size_t take(wire_out *out, uint64_t count) {
    size_t at = out->used;
    if (out->has_failed || count > out->capacity - at || aligned(count) > out->capacity - at) {
        out->has_failed = 1;
        return 0;
    }
    out->used += aligned(count);
    return at;
}

static void write_at(wire_out *out, size_t at, const void *bytes, size_t count) {
    if (out->base && !out->has_failed && count) memcpy(out->base + at, bytes, count);
}

static void put_bytes(wire_out *out, const void *bytes, uint64_t count) {
    size_t at = take(out, count);
    if (out->has_failed) return;
    if (out->base && aligned(count) != count) memset(out->base + at + count, 0, aligned(count) - count);
    write_at(out, at, bytes, count);
}

static int has_contents(const plugin_value *value) {
    return value->kind >= PLUGIN_KIND_STRING && value->kind <= PLUGIN_KIND_MAP && value->count && value->as.string;
}

/* A list or map that nests too deeply is sent without its contents, and refused when it is checked. */
static int is_too_deep(const plugin_value *value, uint32_t depth) {
    return depth >= DEPTH_MAX && (value->kind == PLUGIN_KIND_LIST || value->kind == PLUGIN_KIND_MAP);
}

/* Returns a value as it is sent: without a pointer, and without uninitialised bytes. */
static plugin_value bare(wire_out *out, const plugin_value *value, uint32_t depth) {
    plugin_value bare;
    memset(&bare, 0, sizeof bare);
    bare.kind = value->kind;
    switch (value->kind) {
    case PLUGIN_KIND_BOOL: bare.as.boolean = value->as.boolean; break;
    case PLUGIN_KIND_INT: bare.as.integer = value->as.integer; break;
    case PLUGIN_KIND_DOUBLE: bare.as.real = value->as.real; break;
    case PLUGIN_KIND_STRING:
    case PLUGIN_KIND_BYTES:
    case PLUGIN_KIND_LIST:
    case PLUGIN_KIND_MAP:
        if (is_too_deep(value, depth)) break;
        bare.count = value->count;
        if (value->count && !value->as.string) bare.as.integer = WIRE_NULL_POINTER;
        break;
    case PLUGIN_KIND_OBJECT:
        bare.as.object = value->as.object;
        out->has_objects = 1;
        break;
    default: break;
    }
    return bare;
}

uint64_t wire_bytes_of(const plugin_value *scalar) {
    wire_out none = {NULL, 0, 0, 0, 0};
    return (uint64_t)bare(&none, scalar, 0).as.integer;
}

static void put_contents(wire_out *out, const plugin_value *value, uint32_t depth);

static void put_entries(wire_out *out, const plugin_entry *entries, uint32_t count, uint32_t depth) {
    size_t at = take(out, (uint64_t)count * sizeof *entries);
    for (uint32_t index = 0; index < count && !out->has_failed; index++) {
        plugin_entry entry;
        memset(&entry, 0, sizeof entry);
        entry.key.count = entries[index].key.count;
        if (entry.key.count && !entries[index].key.bytes) entry.key.bytes = (const char *)WIRE_NULL_POINTER;
        entry.value = bare(out, &entries[index].value, depth);
        write_at(out, at + index * sizeof entry, &entry, sizeof entry);
    }
    for (uint32_t index = 0; index < count && !out->has_failed; index++) {
        if (entries[index].key.bytes) put_bytes(out, entries[index].key.bytes, entries[index].key.count);
        put_contents(out, &entries[index].value, depth);
    }
}

static void put_contents(wire_out *out, const plugin_value *value, uint32_t depth) {
    if (!has_contents(value) || is_too_deep(value, depth)) return;
    switch (value->kind) {
    case PLUGIN_KIND_LIST: wire_put_values(out, value->as.list, value->count, depth + 1); break;
    case PLUGIN_KIND_MAP: put_entries(out, value->as.map, value->count, depth + 1); break;
    default: put_bytes(out, value->as.bytes, value->count); break;
    }
}

void wire_put_values(wire_out *out, const plugin_value *values, size_t count, uint32_t depth) {
    size_t at = take(out, (uint64_t)count * sizeof *values);
    for (size_t index = 0; index < count && !out->has_failed; index++) {
        plugin_value value = bare(out, &values[index], depth);
        write_at(out, at + index * sizeof value, &value, sizeof value);
    }
    for (size_t index = 0; index < count && !out->has_failed; index++) put_contents(out, &values[index], depth);
}

/* ------------------------------------------------------------------------------------- reading */

/* Returns the next bytes; null if there are fewer. */
static void *next(wire_in *in, uint64_t count) {
    size_t left = in->size - in->used;
    if (count > left || aligned(count) > left) return NULL;
    void *bytes = in->base + in->used;
    in->used += aligned(count);
    return bytes;
}

static int read_value(wire_in *in, plugin_value *value, uint32_t depth);

static int read_entries(wire_in *in, plugin_entry *entries, uint32_t count, uint32_t depth) {
    for (uint32_t index = 0; index < count; index++) {
        plugin_string *key = &entries[index].key;
        int is_null = key->bytes == (const char *)WIRE_NULL_POINTER || !key->count;
        key->bytes = NULL;
        if (!is_null && !(key->bytes = next(in, key->count))) return 0;
        if (!read_value(in, &entries[index].value, depth)) return 0;
    }
    return 1;
}

static int read_value(wire_in *in, plugin_value *value, uint32_t depth) {
    if (value->kind < PLUGIN_KIND_STRING || value->kind > PLUGIN_KIND_MAP) {
        if (value->kind == PLUGIN_KIND_OBJECT) in->has_objects = 1;
        return 1;
    }
    int is_null = value->as.integer == WIRE_NULL_POINTER || !value->count;
    value->as.string = NULL;
    if (is_null) return 1;
    switch (value->kind) {
    case PLUGIN_KIND_LIST: return (value->as.list = wire_take_values(in, value->count, depth + 1)) != NULL;
    case PLUGIN_KIND_MAP: {
        plugin_entry *entries = depth > DEPTH_MAX ? NULL : next(in, (uint64_t)value->count * sizeof *entries);
        value->as.map = entries;
        return entries && read_entries(in, entries, value->count, depth + 1);
    }
    default: return (value->as.bytes = next(in, value->count)) != NULL;
    }
}

plugin_value *wire_take_values(wire_in *in, uint64_t count, uint32_t depth) {
    if (depth > DEPTH_MAX || count > UINT32_MAX) return NULL;
    plugin_value *values = next(in, count * sizeof *values);
    if (!values) return NULL;
    for (uint64_t index = 0; index < count; index++)
        if (!read_value(in, &values[index], depth)) return NULL;
    return values;
}
