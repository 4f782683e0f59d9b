/* log.h - an extension: writing to the log of the host */
#ifndef PLUGIN_ABI_LOG_H
#define PLUGIN_ABI_LOG_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_LOG_EXTENSION "pluginhost.log/1"

#define PLUGIN_LOG_DEBUG 0u   /* for the module author */
#define PLUGIN_LOG_INFO 1u    /* normal operation */
#define PLUGIN_LOG_WARNING 2u /* something is wrong, but the module continues */
#define PLUGIN_LOG_ERROR 3u   /* something has failed */

typedef struct plugin_log {
    uint32_t size;
    uint32_t reserved;
    /* Writes a line. `call` is the call that the line is about, or 0; `level` is PLUGIN_LOG_...
     * Borrows `message`. [any thread] */
    void (*write)(const plugin_host *host, plugin_token call, uint32_t level,
                  plugin_string message);
} plugin_log;

PLUGIN_ABI_ASSERT(sizeof(plugin_log) == 16, "plugin_log");

#ifdef __cplusplus
}
#endif

#endif
