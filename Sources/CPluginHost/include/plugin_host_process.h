/* plugin_host_process.h - child processes, each by a descriptor that never refers to another process */
#ifndef PLUGIN_HOST_PROCESS_H
#define PLUGIN_HOST_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* Returns a descriptor that refers to a child process, and is readable when the process has ended; -1, and sets errno,
 * if that is not possible. */
int plugin_host_process_open(pid_t process);
/* Creates a pipe whose ends other programs do not inherit: one to read, then one to write. Returns 0; -1, and sets
 * errno. */
int plugin_host_pipe(int ends[2]);

/* Limits how long it may take to connect a socket and to send once over it; beyond the limit, both fail with EAGAIN.
 * Returns 0, or -1 and sets errno. */
int plugin_host_limit_sending(int socket, int64_t microseconds);
/* Kills the process of such a descriptor, unless it has ended. */
void plugin_host_process_kill(int descriptor);
/* Returns the path of the library, or of the program, that has a function; null if there is none. */
const char *plugin_host_library_of(const char *function);
/* Reads how many bytes of memory a child process has in use, and how many nanoseconds of processor time it has used in
 * all its threads. Returns 0; -1 if it has ended or cannot be read. `descriptor` refers to it, so that the figures are
 * never those of a later process with the same number. */
int plugin_host_process_usage(int descriptor, pid_t process, uint64_t *resident, uint64_t *time);
/* Returns how many threads a child process has; 0 if that cannot be read. */
long plugin_host_process_threads(pid_t process);
/* Kills a child process that leads a group, and this group, and reaps it. Returns its status as waitpid does; -1 if the
 * program has reaped it, or ignores SIGCHLD. */
int plugin_host_process_end_group(pid_t process);

/* The name that the host gives to a process which it starts for isolated modules or scans: its first argument. */
#define PLUGIN_HOST_WORKER_NAME "pluginhost-worker"

/* Serves an isolated module, or scans files, if a host has started this process for that; in this case the function
 * does not return. Otherwise returns whether this program may be started for that. A set-user-id program may not: its
 * arguments come from a user with other rights. */
int plugin_host_run_worker_if_asked(int count, char **arguments);

#endif
