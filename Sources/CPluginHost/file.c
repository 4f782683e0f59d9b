#define _GNU_SOURCE
#include "plugin_host_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

int plugin_host_is_being_written(int descriptor) {
    /* If the lease is broken before it is released, the kernel sends a signal: choose one that is ignored by
     * default. */
    fcntl(descriptor, F_SETSIG, SIGURG);
    if (fcntl(descriptor, F_SETLEASE, F_RDLCK) != 0) {
        return errno == EAGAIN;
    }
    fcntl(descriptor, F_SETLEASE, F_UNLCK);
    return 0;
}

int plugin_host_hold(const char *path) { return open(path, O_PATH | O_CLOEXEC); }

int plugin_host_share_bytes(int from, int to) { return ioctl(to, FICLONE, from); }

int plugin_host_allows_libraries(const char *path) {
    struct statvfs system;
    return statvfs(path, &system) == 0 && (system.f_flag & (ST_NOEXEC | ST_RDONLY)) == 0;
}

const char *plugin_host_loaded_library(const char *name) {
    void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return NULL;
    }
    struct link_map *map = NULL;
    const char *path = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : NULL;
    dlclose(handle); /* releases the reference of dlopen; the library was loaded before and stays loaded */
    return path;
}

static int argument_count;
static char *const *arguments;

/* glibc passes the arguments of `main` to constructors as well. */
__attribute__((constructor)) static void remember_arguments(int count, char **words) {
    argument_count = count;
    arguments = words;
}

char *const *plugin_host_arguments(int *count) {
    *count = argument_count;
    return arguments;
}
