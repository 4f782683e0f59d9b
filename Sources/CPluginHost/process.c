#define _GNU_SOURCE
#include "plugin_host_process.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

int plugin_host_process_open(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int plugin_host_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

void plugin_host_process_kill(int descriptor) { syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, NULL, 0); }
