#define _GNU_SOURCE
#include "plugin_host_private_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static plugin_host_private_result wrong(const char *fault, int is_folder) {
    return (plugin_host_private_result){.descriptor = -1, .fault = fault, .concerns_folder = is_folder};
}

static plugin_host_private_result failed(int code) { return (plugin_host_private_result){.descriptor = -1, .code = code}; }

/* Opens a folder and checks its owner and its mode. Returns a negative number with `*result` set if that fails. */
static int open_folder(const char *path, plugin_host_private_result *result) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) {
        *result = errno == ENOTDIR || errno == ELOOP ? wrong("is not a folder, or is a symbolic link", 1) : failed(errno);
        return -1;
    }
    struct stat status;
    if (fstat(folder, &status) != 0) {
        *result = failed(errno);
    } else if (status.st_uid != geteuid()) {
        *result = wrong("belongs to another user", 1);
    } else if ((status.st_mode & 077) != 0) {
        *result = wrong("is open to other users; its mode must be 0700", 1);
    } else {
        return folder;
    }
    close(folder);
    return -1;
}

static const char *fault_of(const struct stat *status, size_t limit) {
    if (!S_ISREG(status->st_mode)) return "is not a regular file";
    if (status->st_uid != geteuid()) return "belongs to another user";
    if ((status->st_mode & 07177) != 0) return "is open to other users or executable; its mode must be 0600";
    /* It has none if another host has replaced it since it was opened. */
    if (status->st_nlink > 1) return "has more than one name";
    if ((unsigned long long)status->st_size > limit) return "is too long";
    return NULL;
}

plugin_host_private_result plugin_host_open_private(const char *path, const char *name, size_t limit) {
    plugin_host_private_result result;
    int folder = open_folder(path, &result);
    if (folder < 0) return result;
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int code = errno;
    close(folder);
    if (file < 0) {
        if (code == ELOOP) return wrong("is a symbolic link", 0);
        return code == ENXIO ? wrong("is not a regular file", 0) : failed(code);
    }
    struct stat status;
    const char *fault = NULL;
    code = fstat(file, &status) == 0 ? 0 : errno;
    if (code == 0) fault = fault_of(&status, limit);
    if (code == 0 && fault == NULL) {
        return (plugin_host_private_result){.descriptor = file, .size = (size_t)status.st_size};
    }
    close(file);
    return fault == NULL ? failed(code) : wrong(fault, 0);
}

static int write_all(int file, const unsigned char *bytes, size_t count) {
    while (count > 0) {
        ssize_t step = write(file, bytes, count);
        if (step < 0 && errno == EINTR) continue;
        if (step <= 0) return -1;
        bytes += step;
        count -= (size_t)step;
    }
    return 0;
}

plugin_host_private_result plugin_host_replace_private(
    const char *path, const char *name, const void *bytes, size_t count) {
    static atomic_uint last_number;
    plugin_host_private_result result;
    int folder = open_folder(path, &result);
    if (folder < 0) return result;
    char temporary[NAME_MAX + 1];
    int length = snprintf(
        temporary, sizeof temporary, "%s.%ld.%u.new", name, (long)getpid(), atomic_fetch_add(&last_number, 1));
    result = failed(0);
    if (length < 0 || (size_t)length >= sizeof temporary) {
        close(folder);
        return failed(ENAMETOOLONG);
    }
    /* A process with the same number may have died and left a file behind. */
    unlinkat(folder, temporary, 0);
    int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) {
        result.code = errno;
    } else {
        int is_written = fchmod(file, 0600) == 0 && write_all(file, bytes, count) == 0 && fdatasync(file) == 0;
        if (!is_written || renameat(folder, temporary, folder, name) != 0) {
            result.code = errno == 0 ? EIO : errno;
            unlinkat(folder, temporary, 0);
        }
        close(file);
    }
    close(folder);
    return result;
}

typedef struct aged_name {
    struct timespec written;
    char *name;
} aged_name;

static int newest_first(const void *left, const void *right) {
    const struct timespec *a = &((const aged_name *)left)->written, *b = &((const aged_name *)right)->written;
    if (a->tv_sec != b->tv_sec) return a->tv_sec < b->tv_sec ? 1 : -1;
    return a->tv_nsec == b->tv_nsec ? 0 : a->tv_nsec < b->tv_nsec ? 1 : -1;
}

void plugin_host_prune_private(const char *path, const char *prefix, size_t count) {
    enum { names_max = 65536 };
    plugin_host_private_result result;
    int folder = open_folder(path, &result);
    if (folder < 0) return;
    DIR *stream = fdopendir(folder);
    if (stream == NULL) {
        close(folder);
        return;
    }
    aged_name *names = NULL;
    size_t found = 0, capacity = 0;
    struct dirent *entry;
    for (int seen = 0; seen < names_max && (entry = readdir(stream)) != NULL; seen++) {
        struct stat status;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
        if (fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
        if (found == capacity) {
            aged_name *larger = realloc(names, (capacity = capacity * 2 + 64) * sizeof *names);
            if (larger == NULL) break;
            names = larger;
        }
        char *name = strdup(entry->d_name);
        if (name == NULL) break;
        names[found++] = (aged_name){status.st_mtim, name};
    }
    if (found > count) qsort(names, found, sizeof *names, newest_first);
    for (size_t index = 0; index < found; index++) {
        if (index >= count) unlinkat(folder, names[index].name, 0);
        free(names[index].name);
    }
    free(names);
    closedir(stream);
}
