/* Linux calls that Swift's Glibc module does not show. */
#ifndef PLUGIN_HOST_FILE_H
#define PLUGIN_HOST_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Whether some process has the file open for writing: 1 or 0, and 0 where the kernel does not say. `descriptor` is
 * open for reading only. */
int plugin_host_is_being_written(int descriptor);

/* copy_file_range(2) from and to the files' own positions. */
ssize_t plugin_host_copy_range(int from, int to, size_t size);

/* Whether the file system at `path` allows to write files and to map them executable: 1 or 0. */
int plugin_host_allows_libraries(const char *path);

/* The path of the library that the process has loaded under that name, or null. It lives as long as the library. */
const char *plugin_host_loaded_library(const char *name);

#endif /* PLUGIN_HOST_FILE_H */
