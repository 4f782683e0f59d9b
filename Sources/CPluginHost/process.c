#define _GNU_SOURCE
#include "plugin_host_process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int plugin_host_process_open(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int plugin_host_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

int plugin_host_limit_sending(int socket, int64_t microseconds) {
    struct timeval limit = {microseconds / 1000000, microseconds % 1000000};
    return setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

const char *plugin_host_library_of(const char *function) {
    void *address = dlsym(RTLD_DEFAULT, function);
    Dl_info library;
    return address && dladdr(address, &library) ? library.dli_fname : NULL;
}

void plugin_host_process_kill(int descriptor) { syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, NULL, 0); }

/* Reads the beginning of a file of a process in /proc. Returns 0 or -1. */
static int read_text(pid_t process, const char *name, char *text, size_t size) {
    snprintf(text, size, "/proc/%d/%s", (int)process, name);
    int file = open(text, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t count = read(file, text, size - 1);
    close(file);
    if (count <= 0) return -1;
    text[count] = 0;
    return 0;
}

long plugin_host_process_threads(pid_t process) {
    char text[1024];
    long threads = 0;
    if (read_text(process, "stat", text, sizeof text) != 0) return 0;
    const char *rest = strrchr(text, ')'); /* the name before it may contain anything */
    if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld", &threads) != 1)
        return 0;
    return threads;
}

/* Reads the resident pages of a process. Returns 0 or -1. */
static int read_resident(pid_t process, uint64_t *resident) {
    char text[256];
    if (read_text(process, "statm", text, sizeof text) != 0) return -1;
    unsigned long long pages = 0;
    if (sscanf(text, "%*u %llu", &pages) != 1) return -1;
    *resident = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return 0;
}

int plugin_host_process_usage(int descriptor, pid_t process, uint64_t *resident, uint64_t *time) {
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return -1;
    *time = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    if (read_resident(process, resident) != 0) return -1;
    /* If the process has not ended until now, its number cannot have passed to another one. */
    struct pollfd end = {.fd = descriptor, .events = POLLIN};
    return poll(&end, 1, 0) == 0 ? 0 : -1;
}

int plugin_host_process_end_group(pid_t process) {
    /* Until the process is reaped, no other process or group has its number. */
    siginfo_t info;
    info.si_pid = 0;
    if (waitid(P_PID, (id_t)process, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return -1;
    if (info.si_pid == 0) kill(process, SIGKILL);
    while (waitid(P_PID, (id_t)process, &info, WEXITED | WNOWAIT) != 0)
        if (errno != EINTR) return -1;
    kill(-process, SIGKILL);
    int status;
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return status;
}
