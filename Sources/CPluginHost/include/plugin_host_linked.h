/* The images that are loaded in the process, and the records of modules in the image that contains this file. The
 * records are in the section PLUGIN_MODULE_SECTION (plugin_abi/entry.h). */
#ifndef PLUGIN_HOST_LINKED_H
#define PLUGIN_HOST_LINKED_H

#include <stddef.h>
#include <stdint.h>

/* The program or a library; see dl_iterate_phdr(3). Valid during the call of `body`. */
typedef struct plugin_host_image {
    const char *path;            /* empty for the program */
    uintptr_t base;              /* is added to the addresses in its file */
    const void *program_headers; /* Elf64_Phdr, in memory */
    size_t program_header_count;
} plugin_host_image;

/* Calls `body` for the program, then for each loaded library. `body` must not load libraries. */
void plugin_host_each_image(void (*body)(void *data, const plugin_host_image *image), void *data);

/* Returns 1 if no section of an ELF file for this machine has this name; 0 if one may have it, which includes files that
 * cannot be read or are not well-formed. Takes a fraction of the time that reading all section headers takes. */
int plugin_host_lacks_section(const char *path, const char *name);

/* Returns the records in the image that contains this file, and sets `*count` to their number. They are addresses of
 * entry functions. */
const void *const *plugin_host_own_records(size_t *count);

/* An address in the image that contains this file. */
const void *plugin_host_own_address(void);

#endif /* PLUGIN_HOST_LINKED_H */
