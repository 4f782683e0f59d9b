/* layout.h - sizes and offsets in the core, on which compilers and other languages must agree. The
 * extensions assert their own. */
#ifndef PLUGIN_ABI_LAYOUT_H
#define PLUGIN_ABI_LAYOUT_H

#ifdef __cplusplus
#define PLUGIN_ABI_ASSERT(condition, text) static_assert(condition, text)
#else
#define PLUGIN_ABI_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#include "../plugin_abi.h"

PLUGIN_ABI_ASSERT(sizeof(void *) == 8, "64-bit machines only");
PLUGIN_ABI_ASSERT(sizeof(plugin_string) == 16, "plugin_string");
PLUGIN_ABI_ASSERT(sizeof(plugin_value) == 16, "plugin_value");
PLUGIN_ABI_ASSERT(offsetof(plugin_value, as) == 8, "plugin_value.as");
PLUGIN_ABI_ASSERT(sizeof(plugin_entry) == 32, "plugin_entry");
PLUGIN_ABI_ASSERT(sizeof(plugin_error) == 48, "plugin_error");
PLUGIN_ABI_ASSERT(sizeof(plugin_function) == 32, "plugin_function");
PLUGIN_ABI_ASSERT(offsetof(plugin_module, toolchain) == 16, "plugin_module.toolchain");
PLUGIN_ABI_ASSERT(sizeof(plugin_module) == 112, "plugin_module");
PLUGIN_ABI_ASSERT(offsetof(plugin_call, result) == 32, "plugin_call.result");
PLUGIN_ABI_ASSERT(sizeof(plugin_call) == 40, "plugin_call");
PLUGIN_ABI_ASSERT(offsetof(plugin_request, method) == 76, "plugin_request.method");
PLUGIN_ABI_ASSERT(offsetof(plugin_request, version) == 80, "plugin_request.version");
PLUGIN_ABI_ASSERT(sizeof(plugin_request) == 96, "plugin_request");
PLUGIN_ABI_ASSERT(offsetof(plugin_host, perform) == 16, "plugin_host.perform");
PLUGIN_ABI_ASSERT(sizeof(plugin_host) == 104, "plugin_host");

#endif
