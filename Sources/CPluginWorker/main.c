/* The arguments: the path of the file, and the process id of the host; or those of scan.c. */
#define _GNU_SOURCE
#include "worker.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

const plugin_module *worker_module;
plugin_host worker_table;
plugin_context worker_context;
plugin_wire *worker_wire;

_Noreturn void worker_give_up(const char *reason) {
    fprintf(stderr, "pluginhost-worker: %s\n", reason);
    _exit(70);
}

void *worker_allocate(size_t size) {
    void *memory = malloc(size);
    if (!memory) worker_give_up("there is no memory left");
    return memory;
}

/* -------------------------------------------------------------------------------------- socket */

static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;

void worker_announce(uint32_t channel) {
    pthread_mutex_lock(&sending);
    if (send(PLUGIN_WIRE_SOCKET, &channel, sizeof channel, MSG_NOSIGNAL) != sizeof channel)
        worker_give_up("the host does not listen any more");
    pthread_mutex_unlock(&sending);
}

/* Reads so many bytes, or ends the process with the host. */
static void read_all(void *bytes, size_t count) {
    for (size_t done = 0; done < count;) {
        ssize_t read = recv(PLUGIN_WIRE_SOCKET, (uint8_t *)bytes + done, count - done, 0);
        if (read == 0) _exit(0);
        if (read < 0 && errno != EINTR) worker_give_up("the host cannot be heard any more");
        if (read > 0) done += (size_t)read;
    }
}

static void serve_channel(uint64_t channel) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, worker_serve, (void *)(uintptr_t)channel) != 0)
        worker_give_up("no thread can be started");
    pthread_detach(thread);
}

static _Noreturn void receive_messages(void) {
    for (;;) {
        uint64_t count;
        read_all(&count, sizeof count);
        uint8_t *bytes = worker_allocate(count);
        read_all(bytes, count);
        plugin_wire_message message;
        if (plugin_wire_unpack(bytes, count, &message)) worker_give_up("a message of the host cannot be read");
        free(bytes);
        if (message.kind == PLUGIN_WIRE_SERVE) serve_channel(message.a);
        else worker_run_later(&message);
    }
}

/* ------------------------------------------------------------------------------------- opening */

/* Tells the host why the file cannot be used, and waits to be ended. */
static _Noreturn void fail(const char *reason, uint64_t code) {
    plugin_value text = plugin_value_text(reason);
    plugin_wire_message message;
    memset(&message, 0, sizeof message);
    message.kind = PLUGIN_WIRE_FAIL;
    message.a = code;
    message.values = &text;
    message.count = 1;
    worker_ask(message);
    receive_messages();
}

/* The names of a table, each with whether it has a function. */
static plugin_value table(const void *start, uint64_t count, size_t stride, size_t function) {
    if (!start || count > 100000) return plugin_value_map(NULL, 0);
    plugin_entry *entries = worker_allocate((count + 1) * sizeof *entries);
    for (uint64_t index = 0; index < count; index++) {
        const uint8_t *entry = (const uint8_t *)start + index * stride;
        memcpy(&entries[index].key, entry, sizeof entries[index].key);
        void *address;
        memcpy(&address, entry + function, sizeof address);
        entries[index].value = plugin_value_bool(address != NULL);
    }
    return plugin_value_map(entries, (uint32_t)count);
}

void worker_describe(const plugin_module *module, plugin_value *values, plugin_wire_message *message) {
    memset(values, 0, WORKER_DESCRIPTION_VALUES * sizeof *values);
    values[0] = plugin_value_int((int64_t)module->magic);
    values[1] = plugin_value_int(module->size);
    values[2] = plugin_value_int(module->abi_major);
    values[3] = plugin_value_int(module->abi_minor);
    if (module->magic == PLUGIN_ABI_MAGIC && module->abi_major == PLUGIN_ABI_MAJOR && module->size >= sizeof *module) {
        int has_text = module->toolchain.count <= 256;
        int has_manifest = module->manifest.count <= PLUGIN_MANIFEST_MAX_BYTES;
        values[4] = has_text ? worker_text(module->toolchain) : plugin_value_null();
        values[5] = plugin_value_int((int64_t)module->toolchain.count);
        values[6] = has_manifest ? worker_text(module->manifest) : plugin_value_null();
        values[7] = plugin_value_int((int64_t)module->manifest.count);
        values[8] = table(module->functions, module->function_count, sizeof(plugin_function),
                          offsetof(plugin_function, invoke));
        values[9] = plugin_value_int((int64_t)module->function_count);
        values[10] = table(module->factories, module->factory_count, sizeof(plugin_factory),
                           offsetof(plugin_factory, make));
    }
    memset(message, 0, sizeof *message);
    message->kind = PLUGIN_WIRE_DESCRIBE;
    message->a = module->magic == PLUGIN_ABI_MAGIC && module->size >= sizeof *module ? module->factory_count : 0;
    message->values = values;
    message->count = WORKER_DESCRIPTION_VALUES;
}

static void describe(void) {
    plugin_value values[WORKER_DESCRIPTION_VALUES];
    plugin_wire_message message;
    worker_describe(worker_module, values, &message);
    uint32_t channel = worker_begin();
    int is_too_large = worker_exchange(channel, &message);
    worker_end(channel);
    if (is_too_large) fail("", 4);
    plugin_wire_dispose(&message);
}

static void open_module(const char *path) {
    void *image = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!image) {
        const char *reason = dlerror();
        fail(reason ? reason : "unknown reason", 1);
    }
    void *symbol = dlsym(image, PLUGIN_ENTRY_SYMBOL);
    if (!symbol) fail("", 2);
    plugin_module_entry_function entry;
    memcpy(&entry, &symbol, sizeof entry);
    worker_module = entry();
    if (!worker_module) fail("", 3);
}

/* --------------------------------------------------------------------------------------- start */

/* Unlike SIG_IGN, a function is not inherited by programs that the module starts. */
static void pass_over(int signal) { (void)signal; }

void worker_close_from(int first) {
    if (close_range((unsigned)first, ~0u, 0) == 0) return;
    /* Kernels before 5.9, and some containers, do not have that. */
    long end = sysconf(_SC_OPEN_MAX);
    for (long descriptor = first; descriptor < end; descriptor++) close((int)descriptor);
}

/* The process ends with the host, and otherwise only by it: not by what ends the host in an orderly way. */
static void attach(const char *host) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid(); /* signals of a terminal are for the host */
    if (getppid() != (pid_t)strtol(host, NULL, 10)) _exit(0); /* it has ended already */
    struct sigaction action = {.sa_handler = pass_over, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    worker_close_from(PLUGIN_WIRE_SOCKET + 1); /* the host has not meant them for the worker */
    fcntl(PLUGIN_WIRE_SOCKET, F_SETFD, FD_CLOEXEC);
}

int main(int count, char **arguments) {
    if (count > 4 && (strcmp(arguments[1], "scan") == 0 || strcmp(arguments[1], "describe") == 0))
        worker_scan(count - 1, arguments + 1);
    if (count != 3) {
        fputs("pluginhost-worker is started by a plugin host, for a module in a process of its own.\n", stderr);
        return 64;
    }
    attach(arguments[2]);
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that what a module prints is there if it crashes */
    worker_wire = plugin_wire_map(PLUGIN_WIRE_MEMORY, PLUGIN_WIRE_WORKER);
    if (!worker_wire) worker_give_up("the shared memory cannot be mapped");
    close(PLUGIN_WIRE_MEMORY);
    worker_make_table();
    open_module(arguments[1]);
    describe();
    receive_messages();
}
