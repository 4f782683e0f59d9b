/* Modules that are linked into the same image as this file, found by the records that they leave in the section
 * "plugin_modules" (PLUGIN_MODULE_SECTION in plugin_abi/entry.h). */
#ifndef PLUGIN_HOST_LINKED_H
#define PLUGIN_HOST_LINKED_H

#include <stddef.h>

/* How many records there are. */
size_t plugin_host_linked_count(void);

/* The description that the function of a record returns; null where there is none. Runs code of the module. */
const void *plugin_host_linked_description(size_t index);

#endif /* PLUGIN_HOST_LINKED_H */
