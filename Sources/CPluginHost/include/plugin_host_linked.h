/* Modules that are linked into the same image as this file, found by their records in the section "plugin_modules"
 * (PLUGIN_MODULE_SECTION in plugin_abi/entry.h). */
#ifndef PLUGIN_HOST_LINKED_H
#define PLUGIN_HOST_LINKED_H

#include <stddef.h>

/* The number of records. */
size_t plugin_host_linked_count(void);

/* Returns the description that the entry function of a record returns; null if there is none. Runs code of the
 * module. */
const void *plugin_host_linked_description(size_t index);

#endif /* PLUGIN_HOST_LINKED_H */
