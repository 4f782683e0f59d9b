/* entry.h - the function that a module exports
 *
 * A complete module. Its action makes an object, and the object calls a callback:
 *
 *     #include "plugin_abi.h"
 *     #include <stdlib.h>
 *
 *     static const plugin_host *host;
 *
 *     // Counters/make: the caller retains what it keeps, and the action releases the object.
 *     static void make(void *data, const plugin_call *call, const plugin_value *arguments,
 *                      uint32_t count) {
 *         int64_t *total = calloc(1, sizeof *total);
 *         plugin_object counter =
 *             total ? host->object_create(host, PLUGIN_STRING("Counter"), total, free) : 0;
 *         if (!counter) {
 *             free(total);
 *             plugin_fail(host, call, "outOfMemory", "No counter can be made.");
 *             return;
 *         }
 *         plugin_reply(host, call, plugin_value_object(counter));
 *         host->object_release(host, counter);
 *     }
 *
 *     static void pass_on(void *data, const plugin_value *value, const plugin_error *error) {
 *         plugin_pass_on(host, *(plugin_token *)data, value, error);
 *     }
 *
 *     // Counter#add: adds, calls the callback `then` with the total, and replies with its outcome.
 *     // The manifest declares "serial": otherwise several threads could add at the same time.
 *     static void add(void *data, const plugin_call *call, const plugin_value *arguments,
 *                     uint32_t count) {
 *         int64_t *total = call->instance;
 *         *total += arguments[0].as.integer;
 *         plugin_entry parameter = {{NULL, 0}, plugin_value_int(*total)}; // by position
 *         plugin_request request = plugin_request_object(
 *             arguments[1].as.object, PLUGIN_STRING("call"), &parameter, 1);
 *         plugin_token token = call->token;
 *         host->perform(host, token, &request, pass_on, &token); // no asynchronous callbacks
 *     }
 *
 *     static int32_t activate(void *data, const plugin_host *table) {
 *         host = table;
 *         return 0;
 *     }
 *
 *     static const plugin_function functions[] = {
 *         {PLUGIN_STRING_INIT("Counters/make"), make, NULL},
 *         {PLUGIN_STRING_INIT("Counter#add"), add, NULL},
 *     };
 *
 *     static const plugin_module module = {
 *         .magic = PLUGIN_ABI_MAGIC,
 *         .size = sizeof module,
 *         .abi_major = PLUGIN_ABI_MAJOR,
 *         .abi_minor = PLUGIN_ABI_MINOR,
 *         .manifest = PLUGIN_STRING_INIT(
 *             "{\"name\": \"Counters\", \"version\": \"1.0.0\", \"concurrency\": \"serial\","
 *             " \"targets\": [{\"name\": \"Counters\", \"actions\": ["
 *             "   {\"name\": \"make\", \"result\": \"object\"}]}],"
 *             " \"types\": [{\"name\": \"Counter\", \"actions\": [{\"name\": \"add\","
 *             "   \"parameters\": [{\"name\": \"n\", \"type\": \"int\", \"required\": true},"
 *             "     {\"name\": \"then\", \"type\": \"object\", \"required\": true}]}]}]}"),
 *         .functions = functions,
 *         .function_count = sizeof functions / sizeof *functions,
 *         .activate = activate,
 *     };
 *
 *     PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) { return &module; }
 *
 * Build it with: cc -std=c11 -shared -fPIC -I FOLDER_OF_THE_HEADER -o libCounters.so counters.c */
#ifndef PLUGIN_ABI_ENTRY_H
#define PLUGIN_ABI_ENTRY_H

#include "../plugin_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The type of the entry function, and its name in a shared library. The function returns the static
 * description of the module, and does nothing else. [one at a time] */
typedef const plugin_module *(*plugin_module_entry_function)(void);
#define PLUGIN_ENTRY_SYMBOL "plugin_module_entry"

/* Precedes the definition of the entry function, and exports the function. A module can also be
 * linked into the program that uses it: with -D PLUGIN_LINKED_IN the function is static, because a
 * program can have the symbol only once. */
#if defined(PLUGIN_LINKED_IN)
#define PLUGIN_MODULE_EXPORT static
#elif defined(__cplusplus)
#define PLUGIN_MODULE_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define PLUGIN_MODULE_EXPORT __attribute__((visibility("default")))
#endif

/* Follows the definition of the entry function in a module that can be linked into a program, or
 * into a library that the program is linked with. The host finds the module by this record: the
 * address of the entry function, in a section of its own. In a module in a plugins folder the
 * record does no harm.
 *
 *     PLUGIN_MODULE_RECORD(plugin_module_entry);
 *
 * Several libraries may export a function of that name, and a reference to it leads to the first
 * one. The record therefore refers to a local name of the function (an alias). */
#if defined(PLUGIN_LINKED_IN)
#define PLUGIN_MODULE_RECORD(function) PLUGIN_MODULE_RECORD_OF(function)
#else
#define PLUGIN_MODULE_RECORD(function)                          \
    static const plugin_module *plugin_module_local_entry(void) \
        __attribute__((alias(#function)));                      \
    PLUGIN_MODULE_RECORD_OF(plugin_module_local_entry)
#endif
#define PLUGIN_MODULE_RECORD_OF(function) \
    __attribute__((used, section(PLUGIN_MODULE_SECTION))) PLUGIN_MODULE_RETAIN static const \
        plugin_module_entry_function plugin_module_record = function
#define PLUGIN_MODULE_SECTION "plugin_modules"

/* Keeps the record if the linker drops sections that nothing refers to. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define PLUGIN_MODULE_RETAIN __attribute__((retain))
#endif
#endif
#ifndef PLUGIN_MODULE_RETAIN
#define PLUGIN_MODULE_RETAIN
#endif

#ifdef __cplusplus
}
#endif

#endif
