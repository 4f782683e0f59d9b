/* What the module may reach and use, determined before its file is opened, while the process has one thread. Each part
 * is tried; one that this system lacks is reported to the host, and ends the process if all are required. */
#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW_MEMORY 1
#endif
#endif

/* ------------------------------------------------------------------------------------- reports */

enum { MISSING_MAX = 64, MISSING_LENGTH = 512 };

static char missing[MISSING_MAX][MISSING_LENGTH];
static uint32_t missing_count;

void plugin_worker_lacks(const char *part, const char *reason) {
    if (missing_count == MISSING_MAX) return;
    snprintf(missing[missing_count++], MISSING_LENGTH, "%s (%s)", part, reason);
}

void plugin_worker_lacks_by_errno(const char *part) { plugin_worker_lacks(part, strerror(errno)); }

/* Tells the host what is missing, before any code of the module runs. */
static void report(int is_required) {
    plugin_value texts[MISSING_MAX];
    for (uint32_t index = 0; index < missing_count; index++) texts[index] = plugin_value_text(missing[index]);
    plugin_value list = plugin_value_list(texts, missing_count);
    plugin_wire_message message = plugin_worker_message(PLUGIN_WIRE_CONFINED);
    message.values = &list;
    message.count = 1;
    plugin_worker_ask(message);
    if (is_required && missing_count) plugin_worker_fail(missing[0], PLUGIN_WIRE_FAIL_UNCONFINED);
}

/* -------------------------------------------------------------------------------------- limits */

static void limit(int resource, uint64_t value, uint64_t hard, const char *name) {
    struct rlimit limit = {value, hard}, present;
    if (getrlimit(resource, &present) == 0 && present.rlim_max != RLIM_INFINITY && present.rlim_max < hard) {
        limit.rlim_max = present.rlim_max; /* what the host may not exceed either */
        if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    }
    if (setrlimit(resource, &limit) != 0) plugin_worker_lacks_by_errno(name);
}

static void set_limits(const plugin_worker_limits *limits) {
    if (limits->memory) {
#ifdef HAS_SHADOW_MEMORY
        plugin_worker_lacks("the limit of memory", "a sanitizer needs more");
#else
        limit(RLIMIT_DATA, limits->memory, limits->memory, "the limit of memory");
#endif
    }
    /* At the first limit the process gets SIGXCPU, a second later SIGKILL. */
    if (limits->seconds) limit(RLIMIT_CPU, limits->seconds, limits->seconds + 1, "the limit of processor time");
    if (limits->descriptors) limit(RLIMIT_NOFILE, limits->descriptors, limits->descriptors, "the limit of descriptors");
    if (limits->sandbox) limit(RLIMIT_CORE, 0, 0, "the limit of core dumps");
}

/* If memory runs out, the kernel ends this process, and not the host. */
static void be_first_victim(void) {
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t ignored = write(file, "500", 3);
    (void)ignored;
    close(file);
}

/* ---------------------------------------------------------------------------------- privileges */

static void drop_capabilities(void) {
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0); /* refused without privileges, but then there are none to drop */
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    if (syscall(SYS_capset, &header, none) != 0) plugin_worker_lacks_by_errno("the loss of capabilities");
}

/* ---------------------------------------------------------------------------------- namespaces */

static int write_text(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t count = write(file, text, strlen(text));
    int error = errno;
    close(file);
    errno = error;
    return count < 0 ? -1 : 0;
}

static int is_older_than(int major, int minor) {
    struct utsname system;
    int numbers[2] = {0, 0};
    uname(&system);
    sscanf(system.release, "%d.%d", &numbers[0], &numbers[1]);
    return numbers[0] < major || (numbers[0] == major && numbers[1] < minor);
}

/* Enters namespaces without network unless some is granted, without shared memory of others, and with a count of
 * threads of their own. */
static void enter_namespaces(const plugin_worker_limits *limits) {
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1", geteuid(), geteuid());
    snprintf(groups, sizeof groups, "%u %u 1", getegid(), getegid());
    int network = limits->network == PLUGIN_WIRE_NETWORK_NONE ? CLONE_NEWNET : 0;
    if (unshare(CLONE_NEWUSER | CLONE_NEWIPC | network) != 0) return plugin_worker_lacks_by_errno("namespaces");
    if (write_text("/proc/self/setgroups", "deny") != 0 || write_text("/proc/self/uid_map", users) != 0
        || write_text("/proc/self/gid_map", groups) != 0)
        return plugin_worker_lacks_by_errno("namespaces");
    if (is_older_than(5, 14)) return plugin_worker_lacks("the limit of threads", "it needs Linux 5.14");
    if (geteuid() == 0 && limits->processes)
        plugin_worker_lacks("the limit of processes", "the kernel has none for root");
    /* In its own namespace, the limit ignores other processes of the user. It does not apply to root, for which the
     * host counts the threads. */
    uint64_t threads = PLUGIN_WIRE_THREADS_MAX + limits->processes;
    limit(RLIMIT_NPROC, threads, threads, "the limit of threads");
}

/* ------------------------------------------------------------------------------------ Landlock */

/* The definitions of linux/landlock.h, which older systems lack or have in an older version. */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446 };

long plugin_worker_landlock_version(void) { return syscall(LANDLOCK_CREATE, NULL, 0, 1); }

enum { RULE_PATH = 1, RULE_PORT = 2 };
#define FILE_EXECUTE (1ull << 0)
#define FILE_WRITE (1ull << 1)
#define FILE_READ (1ull << 2)
#define FOLDER_READ (1ull << 3)
#define FILE_TRUNCATE (1ull << 14)
#define DEVICE_IOCTL (1ull << 15)
#define PORT_BIND 1ull
#define PORT_CONNECT 2ull

typedef struct ruleset_attributes {
    uint64_t files, ports, scopes;
} ruleset_attributes;

typedef struct path_rule {
    uint64_t access;
    int32_t parent;
} __attribute__((packed)) path_rule;

typedef struct port_rule {
    uint64_t access, port;
} port_rule;

/* What the kernel's version of Landlock can refuse. */
static ruleset_attributes handled(long version) {
    ruleset_attributes attributes = {0x1fff, 0, 0};
    if (version >= 2) attributes.files |= 1ull << 13; /* moves between folders */
    if (version >= 3) attributes.files |= FILE_TRUNCATE;
    if (version >= 5) attributes.files |= DEVICE_IOCTL;
    if (version >= 4) attributes.ports = PORT_BIND | PORT_CONNECT;
    if (version >= 6) attributes.scopes = 3; /* abstract sockets, signals */
    return attributes;
}

static int allow_path(int rules, const char *path, uint64_t access) {
    path_rule rule = {access, open(path, O_PATH | O_CLOEXEC)};
    if (rule.parent < 0) return -1;
    struct stat status;
    if (fstat(rule.parent, &status) == 0 && !S_ISDIR(status.st_mode))
        rule.access &= FILE_EXECUTE | FILE_WRITE | FILE_READ | FILE_TRUNCATE | DEVICE_IOCTL;
    long result = syscall(LANDLOCK_ADD, rules, RULE_PATH, &rule, 0);
    int error = errno;
    close(rule.parent);
    errno = error;
    return (int)result;
}

/* What every module may read: libraries, time zones, locales, and facts about the machine and itself. */
static const char *const common_paths[] = {
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/usr/share/locale",
    "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random",
    "/proc/self", "/sys/devices/system/cpu"};
static const char *const network_paths[] = {"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf",
                                            "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/ssl",
                                            "/usr/share/ca-certificates", "/run/systemd/resolve"};
static const char *const program_paths[] = {"/bin", "/usr/bin", "/usr/local/bin"};

static void allow_all(int rules, const char *const *paths, size_t count, uint64_t access) {
    for (size_t index = 0; index < count; index++) (void)allow_path(rules, paths[index], access);
}

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static void allow_granted(int rules, const plugin_value *paths, uint64_t access) {
    for (uint32_t index = 0; index < paths->count; index++) {
        const plugin_value *text = &paths->as.list[index];
        char *path = strndup(text->as.string, text->count);
        if (!path) plugin_worker_give_up("there is no memory left");
        if (allow_path(rules, path, access) != 0) plugin_worker_lacks_by_errno(path);
        free(path);
    }
}

static void allow_ports(int rules, const plugin_value *ports, uint64_t access) {
    for (uint32_t index = 0; index < ports->count; index++) {
        port_rule rule = {access, (uint64_t)ports->as.list[index].as.integer};
        if (syscall(LANDLOCK_ADD, rules, RULE_PORT, &rule, 0) != 0) plugin_worker_lacks_by_errno("a rule for a port");
    }
}

static void restrict_files(const plugin_worker_limits *limits) {
    long version = plugin_worker_landlock_version();
    if (version < 1) return plugin_worker_lacks_by_errno("Landlock");
    ruleset_attributes attributes = handled(version);
    if (limits->network == PLUGIN_WIRE_NETWORK_ALL) attributes.ports = 0;
    if (limits->network == PLUGIN_WIRE_NETWORK_PORTS && !attributes.ports)
        plugin_worker_lacks("rules for ports", "they need Landlock of version 4, Linux 6.7");
    if (version < 3)
        plugin_worker_lacks("the protection of files from truncation", "it needs Landlock of version 3, Linux 6.2");
    if (limits->processes && !attributes.scopes)
        plugin_worker_lacks("the protection of other processes from signals",
                            "it needs Landlock of version 6, Linux 6.12");
    size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    int rules = (int)syscall(LANDLOCK_CREATE, &attributes, size, 0);
    if (rules < 0) return plugin_worker_lacks_by_errno("Landlock");
    uint64_t read = FILE_READ | FOLDER_READ | (limits->processes ? FILE_EXECUTE : 0);
    uint64_t write = (attributes.files | read) & ~(limits->processes ? 0 : FILE_EXECUTE);
    allow_all(rules, common_paths, COUNT_OF(common_paths), read);
    if (limits->network != PLUGIN_WIRE_NETWORK_NONE) allow_all(rules, network_paths, COUNT_OF(network_paths), read);
    if (limits->processes) allow_all(rules, program_paths, COUNT_OF(program_paths), read);
    (void)allow_path(rules, "/dev/null", FILE_READ | FILE_WRITE);
    /* Dispatch reads the state of each of its threads from /proc/THREAD, and ends the process if it cannot. The files
     * there that give access to the memory of other processes are refused all the same. */
    (void)allow_path(rules, "/proc", FILE_READ);
    allow_granted(rules, limits->own_folders, read);
    allow_granted(rules, limits->readable, read);
    allow_granted(rules, limits->writable, write);
    if (limits->network == PLUGIN_WIRE_NETWORK_PORTS && attributes.ports) {
        allow_ports(rules, limits->connects, PORT_CONNECT);
        allow_ports(rules, limits->binds, PORT_BIND);
    }
    if (syscall(LANDLOCK_RESTRICT, rules, 0) != 0) plugin_worker_lacks_by_errno("Landlock");
    close(rules);
}

/* ----------------------------------------------------------------------------------- all of it */

/* Reads the limits in a message of the host, whose values they refer to. */
static plugin_worker_limits limits_in(const plugin_value *values) {
    return (plugin_worker_limits){
        .sandbox = values[0].as.integer,
        .memory = (uint64_t)values[1].as.integer,
        .seconds = (uint64_t)values[2].as.integer,
        .descriptors = (uint64_t)values[3].as.integer,
        .processes = (uint64_t)values[4].as.integer,
        .own_folders = &values[5],
        .readable = &values[6],
        .writable = &values[7],
        .network = values[8].as.integer,
        .connects = &values[9],
        .binds = &values[10],
    };
}

void plugin_worker_confine(const plugin_wire_message *message) {
    if (message->count != PLUGIN_WIRE_LIMITS) plugin_worker_give_up("the limits of the host cannot be read");
    plugin_worker_limits held = limits_in(message->values), *limits = &held;
    be_first_victim();
    set_limits(limits);
    if (limits->sandbox) {
        enter_namespaces(limits);
        drop_capabilities();
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) plugin_worker_lacks_by_errno("no_new_privs");
        plugin_worker_die_with_host(); /* a change of rights may have undone it */
        restrict_files(limits);
        plugin_worker_filter_calls(limits);
    }
    report(limits->sandbox == PLUGIN_WIRE_SANDBOX_REQUIRED);
}
