/* The arguments: "scan", the process id of the host, the limit of processor time in seconds, and the paths; or
 * "describe", the same two numbers, one path, and the types whose code must not run, one per line. */
#define _GNU_SOURCE
#include "plugin_scan.h"
#include "worker.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

static void limit(int resource, rlim_t most) {
    struct rlimit limits;
    if (getrlimit(resource, &limits) != 0) return;
    if (limits.rlim_max > most) limits.rlim_max = most;
    if (limits.rlim_cur > limits.rlim_max) limits.rlim_cur = limits.rlim_max;
    (void)setrlimit(resource, &limits);
}

static void set_limits(const char *seconds) {
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, strtoul(seconds, NULL, 10));
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) /* whose shadow memory counts */
    limit(RLIMIT_DATA, (rlim_t)4 << 30);
#endif
}

/* Writes down the description and, if there is one, the manifest with types as a further value. */
static void describe(plugin_scan *scan, const plugin_module *module, const plugin_string *typed) {
    plugin_value values[WORKER_DESCRIPTION_VALUES + 1];
    plugin_wire_message message;
    plugin_worker_describe(module, values, &message);
    if (typed) values[message.count++] = plugin_worker_text(*typed);
    plugin_scan_set_description(scan, &message);
}

static void begin_type(void *scan, plugin_string type) {
    char name[PLUGIN_SCAN_REASON_BYTES];
    size_t count = type.count < sizeof name ? type.count : sizeof name - 1;
    memcpy(name, type.bytes, count);
    name[count] = 0;
    plugin_scan_set_reason(scan, 0, name);
}

/* Writes down the description with the types that the module derives, or the type whose code crashes. The description
 * without them is already there. */
static void describe_types(plugin_scan *scan, const plugin_module *module, const char *without) {
    if (module->magic != PLUGIN_ABI_MAGIC || module->abi_major != PLUGIN_ABI_MAJOR || module->size < sizeof *module)
        return;
    const plugin_type_derivation *derivation = plugin_type_derivation_of(module);
    if (!derivation || derivation->size < sizeof *derivation) return;
    plugin_types types = derivation->derive(module->data, (plugin_string){without, strlen(without)}, begin_type, scan);
    if (types.manifest.count > PLUGIN_MANIFEST_MAX_BYTES) return;
    begin_type(scan, types.notes);
    describe(scan, module, &types.manifest);
}

/* `without` is null unless the description is wanted. */
static void scan_file(plugin_scan *scan, uint32_t file, const char *path, const char *without) {
    plugin_scan_set_step(scan, file, PLUGIN_SCAN_OPENING);
    void *image = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!image) {
        const char *reason = dlerror();
        plugin_scan_set_reason(scan, file, reason ? reason : "unknown reason");
        return plugin_scan_set_step(scan, file, PLUGIN_SCAN_REFUSED);
    }
    void *symbol = dlsym(image, PLUGIN_ENTRY_SYMBOL);
    if (!symbol) return plugin_scan_set_step(scan, file, PLUGIN_SCAN_NO_ENTRY);
    plugin_module_entry_function entry;
    memcpy(&entry, &symbol, sizeof entry);
    plugin_scan_set_step(scan, file, PLUGIN_SCAN_ENTERING);
    /* The description is not checked here: before the host reads a part of it, it asks the kernel whether it can be
     * read. */
    const plugin_module *module = entry();
    if (module && without) describe(scan, module, NULL);
    if (module) plugin_scan_set_manifest(scan, PLUGIN_SCAN_MEMORY, file, module);
    plugin_scan_set_step(scan, file, PLUGIN_SCAN_PASSED);
    if (module && without) describe_types(scan, module, without);
}

_Noreturn void plugin_worker_scan(int count, char **arguments) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)strtol(arguments[1], NULL, 10)) _exit(0); /* it has ended already */
    set_limits(arguments[2]);
    plugin_scan *scan = plugin_scan_map(PLUGIN_SCAN_MEMORY);
    if (!scan) plugin_worker_give_up("the shared memory cannot be mapped");
    plugin_worker_close_from(PLUGIN_SCAN_MEMORY + 1);
    fcntl(PLUGIN_SCAN_MEMORY, F_SETFD, FD_CLOEXEC);
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that what a module prints is there if it crashes */
    setenv("SWIFT_BACKTRACE", "enable=no", 1); /* a crash is nothing unusual here */
    if (strcmp(arguments[0], "describe") == 0) {
        scan_file(scan, 0, arguments[3], count > 4 ? arguments[4] : "");
        _exit(0);
    }
    for (int file = 0; file < count - 3 && file < (int)PLUGIN_SCAN_MAX_FILES; file++)
        scan_file(scan, (uint32_t)file, arguments[3 + file], NULL);
    _exit(0);
}
