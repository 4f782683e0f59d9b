/* A module in C that needs only the C library: it shows what an isolated process costs without a Swift runtime. */
#include "plugin_abi.h"

static const plugin_host *host;

static const char manifest[] =
    "{\"name\": \"Plain\", \"version\": \"1.0.0\", \"targets\": [{\"name\": \"Plain\", \"actions\": ["
    "  {\"name\": \"one\", \"result\": \"int\", \"parameters\": [{\"name\": \"n\", \"type\": \"int\", \"required\": true}]},"
    "  {\"name\": \"length\", \"result\": \"int\", \"parameters\": ["
    "     {\"name\": \"bytes\", \"type\": \"bytes\", \"required\": true}]},"
    "  {\"name\": \"crash\"}"
    "]}]}";

static void one(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
    (void)data, (void)count;
    plugin_reply(host, call, plugin_value_int(arguments[0].as.integer + 1));
}

static void length(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
    (void)data, (void)count;
    plugin_reply(host, call, plugin_value_int(arguments[0].count));
}

static void crash(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
    (void)data, (void)call, (void)arguments, (void)count;
    __builtin_trap();
}

static const plugin_function functions[] = {
    {PLUGIN_STRING_INIT("Plain/one"), one, 0},
    {PLUGIN_STRING_INIT("Plain/length"), length, 0},
    {PLUGIN_STRING_INIT("Plain/crash"), crash, 0},
};

static int32_t activate(void *data, const plugin_host *given) {
    (void)data;
    host = given;
    return 0;
}

static const plugin_module module = {
    .magic = PLUGIN_ABI_MAGIC,
    .size = sizeof module,
    .abi_major = PLUGIN_ABI_MAJOR,
    .abi_minor = PLUGIN_ABI_MINOR,
    .manifest = PLUGIN_STRING_INIT(manifest),
    .functions = functions,
    .function_count = sizeof functions / sizeof *functions,
    .activate = activate,
};

PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) { return &module; }
