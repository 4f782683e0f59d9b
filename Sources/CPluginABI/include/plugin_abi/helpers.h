/* helpers.h - inline functions for modules in C: strings, values, lookups, requests, and the
 * definitions of the reply functions that plugin_abi.h declares. */
#ifndef PLUGIN_ABI_HELPERS_H
#define PLUGIN_ABI_HELPERS_H

#include "../plugin_abi.h"

#include <stdbool.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------- strings */

/* Makes a string of a literal or of an array of char, without the last byte. PLUGIN_STRING_INIT is
 * for initialisers of static data. */
#define PLUGIN_STRING(literal) plugin_string_make(literal, sizeof(literal) - 1)
#define PLUGIN_STRING_INIT(literal) {literal, sizeof(literal) - 1}

/* Makes a string of bytes, which it borrows. [any thread] */
static inline plugin_string plugin_string_make(const char *bytes, uint64_t count) {
    plugin_string string = {bytes, count};
    return string;
}

/* Makes a string of a NUL-terminated text, which it borrows; empty for null. [any thread] */
static inline plugin_string plugin_string_from(const char *text) {
    return plugin_string_make(text, text ? strlen(text) : 0);
}

/* Returns whether a string has the bytes of a NUL-terminated text. Keeps no pointer.
 * [any thread] */
static inline bool plugin_string_equals(plugin_string string, const char *text) {
    return string.count == strlen(text)
        && (string.count == 0 || memcmp(string.bytes, text, (size_t)string.count) == 0);
}

/* ------------------------------------------------------------------------------- making values */

/* Makes a null value. [any thread] */
static inline plugin_value plugin_value_null(void) {
    plugin_value value = {PLUGIN_KIND_NULL, 0, {0}};
    return value;
}

/* Makes a bool: true unless `boolean` is 0. [any thread] */
static inline plugin_value plugin_value_bool(int boolean) {
    plugin_value value = {PLUGIN_KIND_BOOL, 0, {0}};
    value.as.boolean = boolean != 0;
    return value;
}

/* Makes an int. [any thread] */
static inline plugin_value plugin_value_int(int64_t integer) {
    plugin_value value = {PLUGIN_KIND_INT, 0, {0}};
    value.as.integer = integer;
    return value;
}

/* Makes a double. [any thread] */
static inline plugin_value plugin_value_double(double real) {
    plugin_value value = {PLUGIN_KIND_DOUBLE, 0, {0}};
    value.as.real = real;
    return value;
}

/* Makes a string, and borrows its bytes. [any thread] */
static inline plugin_value plugin_value_string(const char *bytes, uint32_t count) {
    plugin_value value = {PLUGIN_KIND_STRING, count, {0}};
    value.as.string = bytes;
    return value;
}

/* Makes a string of a NUL-terminated text, and borrows it; empty for null. [any thread] */
static inline plugin_value plugin_value_text(const char *text) {
    return plugin_value_string(text, text ? (uint32_t)strlen(text) : 0);
}

/* Makes bytes, and borrows them. [any thread] */
static inline plugin_value plugin_value_bytes(const uint8_t *bytes, uint32_t count) {
    plugin_value value = {PLUGIN_KIND_BYTES, count, {0}};
    value.as.bytes = bytes;
    return value;
}

/* Makes a list, and borrows its values. [any thread] */
static inline plugin_value plugin_value_list(const plugin_value *values, uint32_t count) {
    plugin_value value = {PLUGIN_KIND_LIST, count, {0}};
    value.as.list = values;
    return value;
}

/* Makes a map, and borrows its entries. [any thread] */
static inline plugin_value plugin_value_map(const plugin_entry *entries, uint32_t count) {
    plugin_value value = {PLUGIN_KIND_MAP, count, {0}};
    value.as.map = entries;
    return value;
}

/* Makes a value of an object. It does not retain the object. [any thread] */
static inline plugin_value plugin_value_object(plugin_object object) {
    plugin_value value = {PLUGIN_KIND_OBJECT, 0, {0}};
    value.as.object = object;
    return value;
}

/* ------------------------------------------------------------------------------ reading values */

/* Returns the text of a string value, borrowed from it; empty for any other kind, and for a null
 * pointer. [any thread] */
static inline plugin_string plugin_string_of(const plugin_value *value) {
    if (!value || value->kind != PLUGIN_KIND_STRING) return plugin_string_make(NULL, 0);
    return plugin_string_make(value->as.string, value->count);
}

/* Returns the value of a NUL-terminated key, borrowed from the map. Returns null if the key is
 * missing, or if `map` is of another kind or a null pointer. [any thread] */
static inline const plugin_value *plugin_map_find(const plugin_value *map, const char *key) {
    if (!map || map->kind != PLUGIN_KIND_MAP) return NULL;
    for (uint32_t index = map->count; index > 0; index--) { /* of equal keys the last one counts */
        const plugin_entry *entry = &map->as.map[index - 1];
        if (plugin_string_equals(entry->key, key)) return &entry->value;
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------ requests */

/* Makes a request for an action of a target, with all other members 0. Borrows its arguments.
 * [any thread] */
static inline plugin_request plugin_request_action(plugin_string target, plugin_string action,
                                                   const plugin_entry *parameters,
                                                   uint64_t count) {
    plugin_request request;
    memset(&request, 0, sizeof request);
    request.size = sizeof request;
    request.address = PLUGIN_ADDRESS_ACTION;
    request.target = target;
    request.action = action;
    request.parameters = parameters;
    request.parameter_count = count;
    return request;
}

/* Makes a request for an action of an object; the action of a callback is "call". All other members
 * are 0. Borrows its arguments, and does not retain the object. [any thread] */
static inline plugin_request plugin_request_object(plugin_object object, plugin_string action,
                                                   const plugin_entry *parameters,
                                                   uint64_t count) {
    plugin_request request =
        plugin_request_action(plugin_string_make(NULL, 0), action, parameters, count);
    request.address = PLUGIN_ADDRESS_OBJECT;
    request.object = object;
    return request;
}

/* ------------------------------------------------------------------------------------- replies */

static inline int32_t plugin_reply(const plugin_host *host, const plugin_call *call,
                                   plugin_value result) {
    if ((call->flags & PLUGIN_CALL_IN_PLACE) && result.kind <= PLUGIN_KIND_DOUBLE
        && call->result->kind == PLUGIN_KIND_NONE) {
        *call->result = result;
        return PLUGIN_REPLY_ACCEPTED;
    }
    plugin_value borrowed = result; /* keeps `result` in registers on the path above */
    return host->resolve(host, call->token, &borrowed);
}

static inline int32_t plugin_fail(const plugin_host *host, const plugin_call *call,
                                  const char *code, const char *message) {
    plugin_error error = {plugin_string_from(code), plugin_string_from(message), {NULL, 0}};
    return host->reject(host, call->token, &error);
}

static inline int32_t plugin_pass_on(const plugin_host *host, plugin_token call,
                                     const plugin_value *value, const plugin_error *error) {
    return error ? host->reject(host, call, error) : host->resolve(host, call, value);
}

#ifdef __cplusplus
}
#endif

#endif
