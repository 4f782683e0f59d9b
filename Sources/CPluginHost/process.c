#define _GNU_SOURCE
#include "plugin_host_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int plugin_host_process_open(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int plugin_host_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

void plugin_host_process_kill(int descriptor) { syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, NULL, 0); }

int plugin_host_process_end_group(pid_t process) {
    /* While it is not reaped, no other process or group has its number. */
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
