/*
 * plugin_scan.h - the memory that a host shares with a scan process
 *
 * A scan process opens files before the host does. It notes how far it has come with each file, and why the dynamic
 * linker refuses one, and copies the manifests. If there is only one file, the process may also describe its module.
 * The files can write to the memory, too, so the host relies only on the fact that a file has passed; a name is a
 * claim.
 */
#ifndef PLUGIN_SCAN_H
#define PLUGIN_SCAN_H

#include "plugin_wire.h"

/* The most files of one process, and the size of the text for each one, with the zero at its end. */
#define PLUGIN_SCAN_MAX_FILES 64u
#define PLUGIN_SCAN_REASON_BYTES 1000u
/* The descriptor of the memory in a scan process. */
#define PLUGIN_SCAN_MEMORY 3

/* How far the process has come with a file. */
enum plugin_scan_step {
    PLUGIN_SCAN_WAITING,
    PLUGIN_SCAN_OPENING,  /* its constructors run */
    PLUGIN_SCAN_ENTERING, /* its entry function runs */
    PLUGIN_SCAN_PASSED,
    PLUGIN_SCAN_REFUSED,  /* by the dynamic linker, for a reason */
    PLUGIN_SCAN_NO_ENTRY, /* it has no entry function */
};

typedef struct plugin_scan plugin_scan;

/* Creates the memory, sealed against changes of its size. Returns a descriptor, or -1 and sets errno. */
int plugin_scan_create(void);
/* Maps the memory. Returns null, and sets errno, if that is not possible. The descriptor may be closed afterwards. */
plugin_scan *plugin_scan_map(int descriptor);
void plugin_scan_unmap(plugin_scan *scan);

void plugin_scan_set_step(plugin_scan *scan, uint32_t file, enum plugin_scan_step step);
/* Returns what the memory says, which need not be one of the steps. */
uint32_t plugin_scan_get_step(const plugin_scan *scan, uint32_t file);
void plugin_scan_set_reason(plugin_scan *scan, uint32_t file, const char *reason);
/* Copies the reason to `reason`, with a zero at its end. */
void plugin_scan_get_reason(const plugin_scan *scan, uint32_t file, char reason[PLUGIN_SCAN_REASON_BYTES]);

/* Stores the description of the module of the only file, unless it is too large. */
void plugin_scan_set_description(plugin_scan *scan, const plugin_wire_message *message);
/* Copies and checks the description. Returns 0; 1 if there is none, or it is not valid. */
int plugin_scan_get_description(const plugin_scan *scan, plugin_wire_message *message);

/* Stores the manifest of the module of a file, if its description can be read. `descriptor` is that of the memory. */
void plugin_scan_set_manifest(plugin_scan *scan, int descriptor, uint32_t file, const plugin_module *module);
/* Copies the manifest to `bytes`, which can hold PLUGIN_MANIFEST_MAX_BYTES. Returns its length, or 0. */
uint64_t plugin_scan_get_manifest(const plugin_scan *scan, uint32_t file, uint8_t *bytes);

#endif
