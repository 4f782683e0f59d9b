#define _GNU_SOURCE
#include "plugin_host_process.h"
#include "plugin_worker.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define HAS_OTHER_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_OTHER_THREADS 1 /* those of the sanitizer */
#endif
#endif

/* Threads that are already running would not be in the sandbox. */
static void require_one_thread(void) {
#ifndef HAS_OTHER_THREADS
    struct stat tasks; /* a link for each thread, and two of the folder itself */
    if (stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3) return;
    fputs("A program that runs isolated modules must call PluginHost.runWorkerIfAsked() before it starts threads, and "
          "needs /proc.\n",
          stderr);
    _exit(70);
#endif
}

int plugin_host_run_worker_if_asked(int count, char **arguments) {
    if (getauxval(AT_SECURE)) return 0;
    if (count < 3 || strcmp(arguments[0], PLUGIN_HOST_WORKER_NAME) != 0) return 1;
    require_one_thread();
    prctl(PR_SET_NAME, PLUGIN_HOST_WORKER_NAME); /* instead of that of the link /proc/self/exe */
    _exit(plugin_worker_main(count, arguments));
}
