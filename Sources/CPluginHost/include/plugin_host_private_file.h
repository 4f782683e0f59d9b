/* Files that only this user can write, and that are replaced as a whole. */
#ifndef PLUGIN_HOST_PRIVATE_FILE_H
#define PLUGIN_HOST_PRIVATE_FILE_H

#include <stddef.h>

/* The outcome of an operation. */
typedef struct plugin_host_private_result {
    /* The open file, which the caller closes; -1 unless a file was opened. */
    int descriptor;
    /* Its size in bytes. */
    size_t size;
    /* What is wrong with the folder or the file, a static text; null if nothing is, or if `code` states it. */
    const char *fault;
    /* An error number; 0 if there is none. ENOENT if the folder or the file does not exist. */
    int code;
    /* 1 if `fault` is about the folder, 0 if it is about the file. */
    int concerns_folder;
} plugin_host_private_result;

/* Opens a file of at most `limit` bytes for reading. The folder must belong to the effective user and be closed to all
 * others (mode 0700); the file must be a regular file with one name that belongs to the effective user and that others
 * can neither read nor write. Links are not followed, except those in the path above the folder. Never blocks on a
 * FIFO. */
plugin_host_private_result plugin_host_open_private(const char *folder, const char *name, size_t limit);

/* Replaces a file in such a folder atomically: writes a file with a temporary name, which begins with `name`, flushes it
 * to the disk, and renames it. */
plugin_host_private_result plugin_host_replace_private(
    const char *folder, const char *name, const void *bytes, size_t count);

/* Keeps the `count` most recently written regular files of the folder whose names begin with `prefix`, and removes the
 * others. Looks at no more than 65,536 names. */
void plugin_host_prune_private(const char *folder, const char *prefix, size_t count);

#endif /* PLUGIN_HOST_PRIVATE_FILE_H */
