/* The arguments: the path of the file, and the process id of the host; then "debug" to wait for a debugger, or
 * "addresses" to report where a crash was; or those of scan.c. */
#define _GNU_SOURCE
#include "plugin_worker.h"
#include "worker.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

const plugin_module *plugin_worker_module;
plugin_host plugin_worker_table;
plugin_context plugin_worker_context;
plugin_wire *plugin_worker_wire;

_Noreturn void plugin_worker_give_up(const char *reason) {
    fprintf(stderr, "pluginhost-worker: %s\n", reason);
    _exit(70);
}

void *plugin_worker_allocate(size_t size) {
    void *memory = malloc(size);
    if (!memory) plugin_worker_give_up("there is no memory left");
    return memory;
}

/* -------------------------------------------------------------------------------------- socket */

static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;

void plugin_worker_announce(uint32_t number) {
    pthread_mutex_lock(&sending);
    if (send(PLUGIN_WIRE_SOCKET, &number, sizeof number, MSG_NOSIGNAL) != sizeof number)
        plugin_worker_give_up("the host no longer reads its socket");
    pthread_mutex_unlock(&sending);
}

static int received = -1; /* the descriptor that has come with the message that is being read */

/* Reads `count` bytes, or ends the process if the host has ended. */
static void read_all(void *bytes, size_t count) {
    for (size_t done = 0; done < count;) {
        int64_t read = plugin_wire_hear(PLUGIN_WIRE_SOCKET, (uint8_t *)bytes + done, count - done, &received);
        if (read == 0) _exit(0);
        if (read < 0 && errno != EINTR) plugin_worker_give_up("messages of the host can no longer be received");
        if (read > 0) done += (size_t)read;
    }
}

static void serve_channel(uint64_t channel) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, plugin_worker_serve, (void *)(uintptr_t)channel) != 0)
        plugin_worker_give_up("no thread can be started");
    pthread_detach(thread);
}

/* Receives a message over the socket. */
static plugin_wire_message receive(void) {
    uint64_t count;
    read_all(&count, sizeof count);
    uint8_t *bytes = plugin_worker_allocate(count);
    read_all(bytes, count);
    plugin_wire_message message;
    if (plugin_wire_unpack(plugin_worker_wire, bytes, count, &message))
        plugin_worker_give_up("a message of the host cannot be read");
    free(bytes);
    return message;
}

static void keep_room(uint64_t room) {
    if (received < 0) plugin_worker_give_up("no descriptor is left for a large value");
    plugin_worker_keep_room((uint32_t)room, received);
    received = -1;
}

void plugin_worker_receive_message(void) {
    plugin_wire_message message = receive();
    switch (message.kind) {
    case PLUGIN_WIRE_SERVE: serve_channel(message.a); break;
    case PLUGIN_WIRE_HAND_OVER: keep_room(message.a); break;
    default: plugin_worker_run_later(&message);
    }
}

static atomic_int listens;

int plugin_worker_listens(void) { return atomic_load(&listens); }

static _Noreturn void receive_messages(void) {
    atomic_store(&listens, 1);
    for (;;) plugin_worker_receive_message();
}

/* ------------------------------------------------------------------------------------- opening */

_Noreturn void plugin_worker_fail(const char *details, uint64_t reason) {
    plugin_value text = plugin_value_text(details);
    plugin_wire_message message;
    memset(&message, 0, sizeof message);
    message.kind = PLUGIN_WIRE_FAIL;
    message.a = reason;
    message.values = &text;
    message.count = 1;
    plugin_worker_ask(message);
    receive_messages();
}

/* Returns the names in a table, each with whether it has a function. */
static plugin_value table(const void *start, uint64_t count, size_t stride, size_t function) {
    if (!start || count > 100000) return plugin_value_map(NULL, 0);
    plugin_entry *entries = plugin_worker_allocate((count + 1) * sizeof *entries);
    for (uint64_t index = 0; index < count; index++) {
        const uint8_t *entry = (const uint8_t *)start + index * stride;
        memcpy(&entries[index].key, entry, sizeof entries[index].key);
        void *address;
        memcpy(&address, entry + function, sizeof address);
        entries[index].value = plugin_value_bool(address != NULL);
    }
    return plugin_value_map(entries, (uint32_t)count);
}

void plugin_worker_describe(const plugin_module *module, plugin_value *values, plugin_wire_message *message) {
    memset(values, 0, WORKER_DESCRIPTION_VALUES * sizeof *values);
    values[0] = plugin_value_int((int64_t)module->magic);
    values[1] = plugin_value_int(module->size);
    values[2] = plugin_value_int(module->abi_major);
    values[3] = plugin_value_int(module->abi_minor);
    if (module->magic == PLUGIN_ABI_MAGIC && module->abi_major == PLUGIN_ABI_MAJOR && module->size >= sizeof *module) {
        int has_text = module->toolchain.count <= 256;
        int has_manifest = module->manifest.count <= PLUGIN_MANIFEST_MAX_BYTES;
        values[4] = has_text ? plugin_worker_text(module->toolchain) : plugin_value_null();
        values[5] = plugin_value_int((int64_t)module->toolchain.count);
        values[6] = has_manifest ? plugin_worker_text(module->manifest) : plugin_value_null();
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
    plugin_worker_describe(plugin_worker_module, values, &message);
    if (plugin_wire_measure(&message) > PLUGIN_WIRE_DESCRIPTION_MIB << 20)
        plugin_worker_fail("", PLUGIN_WIRE_FAIL_TOO_LARGE);
    plugin_worker_ask(message);
}

static void open_module(const char *path) {
    void *image = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!image) {
        const char *reason = dlerror();
        plugin_worker_fail(reason ? reason : "unknown reason", PLUGIN_WIRE_FAIL_OPEN);
    }
    void *symbol = dlsym(image, PLUGIN_ENTRY_SYMBOL);
    if (!symbol) plugin_worker_fail("", PLUGIN_WIRE_FAIL_NO_ENTRY);
    plugin_module_entry_function entry;
    memcpy(&entry, &symbol, sizeof entry);
    plugin_worker_module = entry();
    if (!plugin_worker_module) plugin_worker_fail("", PLUGIN_WIRE_FAIL_NULL);
}

/* --------------------------------------------------------------------------------------- start */

/* Unlike SIG_IGN, a function is not inherited by programs that the module starts. */
static void pass_over(int signal) { (void)signal; }

void plugin_worker_close_from(int first) {
    if (close_range((unsigned)first, ~0u, 0) == 0) return;
    /* Kernels before 5.9, and some containers, do not have close_range(2). */
    long end = sysconf(_SC_OPEN_MAX);
    for (long descriptor = first; descriptor < end; descriptor++) close((int)descriptor);
}

static pid_t host_process;

void plugin_worker_die_with_host(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != host_process) _exit(0); /* it has ended already */
}

/* The process ends when the host ends it or itself ends, but not by the signals that make the host shut down in an
 * orderly way. */
static void attach(const char *host) {
    host_process = (pid_t)strtol(host, NULL, 10);
    plugin_worker_die_with_host();
    setsid(); /* signals of a terminal are for the host */
    struct sigaction action = {.sa_handler = pass_over, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    plugin_worker_close_from(PLUGIN_WIRE_SOCKET + 1); /* the host has not meant them for the worker */
    fcntl(PLUGIN_WIRE_SOCKET, F_SETFD, FD_CLOEXEC);
}

int plugin_worker_main(int count, char **arguments) {
    if (count > 4 && (strcmp(arguments[1], "scan") == 0 || strcmp(arguments[1], "describe") == 0))
        plugin_worker_scan(count - 1, arguments + 1);
    int is_debugged = count == 4 && strcmp(arguments[3], "debug") == 0;
    int reports_addresses = count == 4 && strcmp(arguments[3], "addresses") == 0;
    if (count != 3 && !is_debugged && !reports_addresses) {
        fputs("pluginhost-worker is started by a plugin host, for a module in a process of its own.\n", stderr);
        return 64;
    }
    attach(arguments[2]);
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that what a module prints is there if it crashes */
    plugin_worker_wire = plugin_wire_map(PLUGIN_WIRE_MEMORY, PLUGIN_WIRE_WORKER);
    if (!plugin_worker_wire) plugin_worker_give_up("the shared memory cannot be mapped");
    close(PLUGIN_WIRE_MEMORY);
    plugin_worker_use_rooms();
    plugin_worker_make_table();
    plugin_wire_message limits = receive();
    plugin_worker_confine(&limits);
    plugin_wire_dispose(&limits);
    if (is_debugged) plugin_worker_await_debugger();
    if (reports_addresses) plugin_worker_report_addresses(arguments[1]);
    open_module(arguments[1]);
    describe();
    receive_messages();
}
