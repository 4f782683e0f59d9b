/* profile.h - an extension: marks of the module in the profile of the host
 *
 * The profile shows how long discovery, loading, hooks and events took, as a table and as a trace
 * that Chrome's viewer opens. A module can add marks of its own to it. */
#ifndef PLUGIN_ABI_PROFILE_H
#define PLUGIN_ABI_PROFILE_H

#include "../plugin_abi.h"
#include "layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGIN_PROFILE_EXTENSION "pluginhost.profile/1"

#define PLUGIN_MARK_NAME_MAX_BYTES 256 /* a longer name is cut off */
#define PLUGIN_MARKS_MAX 10000         /* of a module, over all its generations */

typedef struct plugin_profile {
    uint32_t size;
    uint32_t reserved;
    /* Adds a mark for work that has just ended and took `duration` nanoseconds, or for this moment
     * if `duration` is 0. Beyond PLUGIN_MARKS_MAX, or when the profile is full, the mark is only
     * counted. Takes a lock for a moment. Borrows `name`. [any thread] */
    void (*mark)(const plugin_host *host, plugin_string name, int64_t duration);
} plugin_profile;

PLUGIN_ABI_ASSERT(sizeof(plugin_profile) == 16, "plugin_profile");

#ifdef __cplusplus
}
#endif

#endif
