/* Functions of Linux and glibc that Swift's Glibc module does not offer. For whole files of this user alone, see
 * plugin_host_private_file.h. */
#ifndef PLUGIN_HOST_FILE_H
#define PLUGIN_HOST_FILE_H

/* Returns 1 if some process has the file open for writing; otherwise, or if the kernel cannot tell, 0. `descriptor`
 * must be open for reading only. */
int plugin_host_is_being_written(int descriptor);

/* Returns a descriptor that keeps the content of a file in existence and from which nothing can be read (O_PATH, open(2));
 * links are followed. -1 on failure. */
int plugin_host_hold(const char *path);

/* Makes an empty file share all bytes of another one until one of them is written to (FICLONE, ioctl_ficlonerange(2)).
 * Returns 0, or -1 if the file system does not support it. */
int plugin_host_share_bytes(int from, int to);

/* Returns 1 if files on the file system at `path` can be written and mapped executable; otherwise 0. */
int plugin_host_allows_libraries(const char *path);

/* Returns the path of the library that the process has loaded under that name, or null. It lives as long as the
 * library. */
const char *plugin_host_loaded_library(const char *name);

/* Returns the arguments with which the process was started, and sets `*count` to their number. They live as long as the
 * process. Swift reads them from /proc/self/cmdline, and has none if /proc is not mounted. */
char *const *plugin_host_arguments(int *count);

#endif /* PLUGIN_HOST_FILE_H */
