/* What Linux and glibc know, and Swift's Glibc module does not show. */
#ifndef PLUGIN_HOST_FILE_H
#define PLUGIN_HOST_FILE_H

/* Whether some process has the file open for writing: 1 or 0, and 0 where the kernel does not say. `descriptor` is
 * open for reading only. */
int plugin_host_is_being_written(int descriptor);

/* Makes an empty file share all bytes of another one until one of them is written to (FICLONE, ioctl_ficlonerange(2)):
 * 0, or -1 where the file system cannot. */
int plugin_host_share_bytes(int from, int to);

/* Whether the file system at `path` allows to write files and to map them executable: 1 or 0. */
int plugin_host_allows_libraries(const char *path);

/* The path of the library that the process has loaded under that name, or null. It lives as long as the library. */
const char *plugin_host_loaded_library(const char *name);

/* The words that the process was started with, `*count` of them; they live as long as the process. Swift reads them from
 * /proc/self/cmdline, and has none where /proc is not mounted. */
char *const *plugin_host_arguments(int *count);

#endif /* PLUGIN_HOST_FILE_H */
