/* GStreamer: the start with plugins that its registry knows.   gstreamer FOLDER */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

enum { REPETITIONS = 9 };

static int compare(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

/* Runs in a process of its own, since a process can start GStreamer only once. Returns the number of plugins; 0 if
 * GStreamer is missing. */
static int start(double *time) {
    int results[2];
    if (pipe(results) != 0) exit(1);
    pid_t child = fork();
    if (child == 0) {
        struct { double time; int plugins; } result = {0, 0};
        void *library = dlopen("libgstreamer-1.0.so.0", RTLD_NOW | RTLD_GLOBAL);
        if (library) {
            int (*init)(int *, char ***, void **) = dlsym(library, "gst_init_check");
            void *(*registry)(void) = dlsym(library, "gst_registry_get");
            void *(*plugins)(void *) = dlsym(library, "gst_registry_get_plugin_list");
            unsigned (*length)(void *) = dlsym(RTLD_DEFAULT, "g_list_length");
            double begin = now();
            if (init && init(NULL, NULL, NULL)) result.time = now() - begin;
            if (registry && plugins && length) result.plugins = (int)length(plugins(registry()));
        }
        _exit(write(results[1], &result, sizeof result) == sizeof result ? 0 : 1);
    }
    struct { double time; int plugins; } result = {0, 0};
    close(results[1]);
    if (read(results[0], &result, sizeof result) != sizeof result) result.plugins = 0;
    close(results[0]);
    waitpid(child, NULL, 0);
    *time = result.time;
    return result.plugins;
}

int main(int count, char **arguments) {
    if (count < 2) return 64;
    char registry[4096];
    snprintf(registry, sizeof registry, "%s/gstreamer.registry", arguments[1]);
    setenv("GST_REGISTRY", registry, 1);
    double times[REPETITIONS];
    int plugins = start(times); /* reads the plugins and writes the registry */
    if (plugins < 10) {
        fprintf(stderr, "SKIPPED: GStreamer, which is not installed. On Debian: apt-get install libgstreamer1.0-0 "
                        "gstreamer1.0-plugins-base gstreamer1.0-plugins-good\n");
        return 0;
    }
    for (int i = 0; i < REPETITIONS; i++) start(times + i);
    char name[64];
    snprintf(name, sizeof name, "GStreamer, %d plugins", plugins);
    qsort(times, REPETITIONS, sizeof *times, compare);
    tell("known", name, 0, times[REPETITIONS / 2] / 1e6);
    return 0;
}
