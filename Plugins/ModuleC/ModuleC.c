/* A module in plain C: one header, and nothing to link. */
#include "plugin_abi.h"

static const plugin_host *host;

#if !__has_include("ModuleC.json") /* makes SwiftPM build this file again when the manifest changes */
#error "ModuleC.json is missing"
#endif
PLUGIN_MANIFEST_FILE("ModuleC.json");

static void add(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
    (void)data, (void)count;
    int64_t sum;
    if (__builtin_add_overflow(arguments[0].as.integer, arguments[1].as.integer, &sum)) {
        plugin_fail(host, call, "overflow", "The sum does not fit into 64 bits.");
        return;
    }
    plugin_reply(host, call, plugin_value_int(sum));
}

/* Replies with the address and the number of the bytes, which are not copied on the way in. */
static void measure(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
    (void)data, (void)count;
    const plugin_entry entries[] = {
        {PLUGIN_STRING("address"), plugin_value_int((int64_t)(intptr_t)arguments[0].as.bytes)},
        {PLUGIN_STRING("count"), plugin_value_int(arguments[0].count)},
    };
    plugin_reply(host, call, plugin_value_map(entries, 2));
}

static void pass_on(void *data, const plugin_value *value, const plugin_error *error) {
    const plugin_call *call = data;
    plugin_pass_on(host, call->token, value, error);
}

/* Calls B by name, and passes on its outcome. */
static void relay(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
    (void)data, (void)count;
    plugin_entry name = {PLUGIN_STRING("name"), arguments[0]};
    plugin_request request = plugin_request_action(PLUGIN_STRING("B"), PLUGIN_STRING("greet"), &name, 1);
    host->perform(host, call->token, &request, pass_on, (void *)call);
}

/* Events come from any thread, several at a time. */
static int64_t sales;

static void count_sale(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
    (void)data, (void)arguments, (void)count;
    __atomic_fetch_add(&sales, 1, __ATOMIC_RELAXED);
    plugin_reply(host, call, plugin_value_null());
}

static void sold(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
    (void)data, (void)arguments, (void)count;
    plugin_reply(host, call, plugin_value_int(__atomic_load_n(&sales, __ATOMIC_RELAXED)));
}

static int32_t activate(void *data, const plugin_host *table) {
    (void)data;
    host = table;
    const plugin_log *log = host->get_extension(host, PLUGIN_STRING(PLUGIN_LOG_EXTENSION));
    if (log) log->write(host, 0, PLUGIN_LOG_DEBUG, PLUGIN_STRING("Counting what is sold."));
    return 0;
}

static const plugin_function functions[] = {
    {PLUGIN_STRING_INIT("C/add"), add, NULL},
    {PLUGIN_STRING_INIT("C/measure"), measure, NULL},
    {PLUGIN_STRING_INIT("C/relay"), relay, NULL},
    {PLUGIN_STRING_INIT("C/sold"), sold, NULL},
    {PLUGIN_STRING_INIT("!shop.sold"), count_sale, NULL},
};

static const plugin_module module = {
    .magic = PLUGIN_ABI_MAGIC,
    .size = sizeof module,
    .abi_major = PLUGIN_ABI_MAJOR,
    .abi_minor = PLUGIN_ABI_MINOR,
    .manifest = PLUGIN_MANIFEST,
    .functions = functions,
    .function_count = sizeof functions / sizeof *functions,
    .activate = activate,
};

PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) { return &module; }
PLUGIN_MODULE_RECORD(plugin_module_entry); /* for a program that this is linked into */
