/* What the module may reach and use, settled before its file is opened, while the process has one thread. Each part
 * is tried; one that this system lacks is reported to the host, and the end of the process if all are required. */
#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
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

/* The limits of this process; see PLUGIN_WIRE_CONFINE. */
typedef struct worker_limits {
    int64_t sandbox, network;
    uint64_t memory, seconds, descriptors, processes;
    const plugin_value *own_folders, *readable, *writable, *connects, *binds; /* lists */
} worker_limits;

static char missing[MISSING_MAX][MISSING_LENGTH];
static uint32_t missing_count;

/* Notes a part that cannot be had, and the reason. */
static void lacks(const char *part, const char *reason) {
    if (missing_count == MISSING_MAX) return;
    snprintf(missing[missing_count++], MISSING_LENGTH, "%s (%s)", part, reason);
}

static void lacks_by_errno(const char *part) { lacks(part, strerror(errno)); }

/* Tells the host what is missing, before any code of the module runs. */
static void report(int is_required) {
    plugin_value texts[MISSING_MAX];
    for (uint32_t index = 0; index < missing_count; index++) texts[index] = plugin_value_text(missing[index]);
    plugin_value list = plugin_value_list(texts, missing_count);
    plugin_wire_message message = worker_message(PLUGIN_WIRE_CONFINED);
    message.values = &list;
    message.count = 1;
    worker_ask(message);
    if (is_required && missing_count) worker_fail(missing[0], PLUGIN_WIRE_FAIL_UNCONFINED);
}

/* -------------------------------------------------------------------------------------- limits */

static void limit(int resource, uint64_t value, uint64_t hard, const char *name) {
    struct rlimit limit = {value, hard}, present;
    if (getrlimit(resource, &present) == 0 && present.rlim_max != RLIM_INFINITY && present.rlim_max < hard) {
        limit.rlim_max = present.rlim_max; /* what the host may not exceed either */
        if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    }
    if (setrlimit(resource, &limit) != 0) lacks_by_errno(name);
}

static void set_limits(const worker_limits *limits) {
    if (limits->memory) {
#ifdef HAS_SHADOW_MEMORY
        lacks("the limit of memory", "a sanitizer needs more");
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
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0); /* refused without privileges, which are then not there */
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    if (syscall(SYS_capset, &header, none) != 0) lacks_by_errno("the loss of capabilities");
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

/* No network but what is granted, no shared memory of others, and a count of threads of its own. */
static void enter_namespaces(const worker_limits *limits) {
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1", geteuid(), geteuid());
    snprintf(groups, sizeof groups, "%u %u 1", getegid(), getegid());
    int network = limits->network == PLUGIN_WIRE_NETWORK_NONE ? CLONE_NEWNET : 0;
    if (unshare(CLONE_NEWUSER | CLONE_NEWIPC | network) != 0) return lacks_by_errno("namespaces");
    if (write_text("/proc/self/setgroups", "deny") != 0 || write_text("/proc/self/uid_map", users) != 0
        || write_text("/proc/self/gid_map", groups) != 0)
        return lacks_by_errno("namespaces");
    if (is_older_than(5, 14)) return lacks("the limit of threads", "it needs Linux 5.14");
    if (geteuid() == 0 && limits->processes) lacks("the limit of processes", "the kernel has none for root");
    /* In a namespace of its own, other processes of the user do not count. Root has no limit: the host counts. */
    uint64_t threads = PLUGIN_WIRE_THREADS_MAX + limits->processes;
    limit(RLIMIT_NPROC, threads, threads, "the limit of threads");
}

/* ------------------------------------------------------------------------------------ Landlock */

/* As in linux/landlock.h, of which older systems have no or an older version. */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446 };
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
        if (!path) worker_give_up("there is no memory left");
        if (allow_path(rules, path, access) != 0) lacks_by_errno(path);
        free(path);
    }
}

static void allow_ports(int rules, const plugin_value *ports, uint64_t access) {
    for (uint32_t index = 0; index < ports->count; index++) {
        port_rule rule = {access, (uint64_t)ports->as.list[index].as.integer};
        if (syscall(LANDLOCK_ADD, rules, RULE_PORT, &rule, 0) != 0) lacks_by_errno("a rule for a port");
    }
}

static void restrict_files(const worker_limits *limits) {
    long version = syscall(LANDLOCK_CREATE, NULL, 0, 1);
    if (version < 1) return lacks_by_errno("Landlock");
    ruleset_attributes attributes = handled(version);
    if (limits->network == PLUGIN_WIRE_NETWORK_ALL) attributes.ports = 0;
    if (limits->network == PLUGIN_WIRE_NETWORK_PORTS && !attributes.ports)
        lacks("rules for ports", "they need Landlock of version 4, Linux 6.7");
    if (version < 3) lacks("the protection of files from truncation", "it needs Landlock of version 3, Linux 6.2");
    if (limits->processes && !attributes.scopes)
        lacks("the protection of other processes from signals", "it needs Landlock of version 6, Linux 6.12");
    size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    int rules = (int)syscall(LANDLOCK_CREATE, &attributes, size, 0);
    if (rules < 0) return lacks_by_errno("Landlock");
    uint64_t read = FILE_READ | FOLDER_READ | (limits->processes ? FILE_EXECUTE : 0);
    uint64_t write = (attributes.files | read) & ~(limits->processes ? 0 : FILE_EXECUTE);
    allow_all(rules, common_paths, COUNT_OF(common_paths), read);
    if (limits->network != PLUGIN_WIRE_NETWORK_NONE) allow_all(rules, network_paths, COUNT_OF(network_paths), read);
    if (limits->processes) allow_all(rules, program_paths, COUNT_OF(program_paths), read);
    (void)allow_path(rules, "/dev/null", FILE_READ | FILE_WRITE);
    /* Dispatch reads the state of each of its threads from /proc/THREAD, and ends the process if it cannot. What is
     * there about the memory of other processes is refused all the same. */
    (void)allow_path(rules, "/proc", FILE_READ);
    allow_granted(rules, limits->own_folders, read);
    allow_granted(rules, limits->readable, read);
    allow_granted(rules, limits->writable, write);
    if (limits->network == PLUGIN_WIRE_NETWORK_PORTS && attributes.ports) {
        allow_ports(rules, limits->connects, PORT_CONNECT);
        allow_ports(rules, limits->binds, PORT_BIND);
    }
    if (syscall(LANDLOCK_RESTRICT, rules, 0) != 0) lacks_by_errno("Landlock");
    close(rules);
}

/* ------------------------------------------------------------------------------------- seccomp */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE
static struct sock_filter filter[512];
static unsigned short filter_length;

static void add(uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false) {
    filter[filter_length++] = (struct sock_filter){code, if_true, if_false, value};
}

static void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0); }

static void end_with(uint32_t action) { add(BPF_RET | BPF_K, action, 0, 0); }

#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define ARGUMENT(number) (offsetof(struct seccomp_data, args) + 8 * (number)) /* its lower half */

/* The system call is in the accumulator before and after each of these. */

static void refuse(uint32_t call, uint32_t action) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    end_with(action);
}

/* Refuses a call unless one of its arguments is a number. */
static void refuse_unless(uint32_t call, int argument, uint32_t number) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
    load(ARGUMENT(argument));
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 1, 0);
    end_with(REFUSED);
    load(offsetof(struct seccomp_data, nr));
}

/* Refuses a call if one of its arguments is a number. */
static void refuse_if(uint32_t call, int argument, uint32_t number) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
    load(ARGUMENT(argument));
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    end_with(REFUSED);
    load(offsetof(struct seccomp_data, nr));
}

/* Refuses a call if any of some bits of an argument is set. */
static void refuse_with_any(uint32_t call, int argument, uint32_t bits) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
    load(ARGUMENT(argument));
    add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    end_with(REFUSED);
    load(offsetof(struct seccomp_data, nr));
}

/* Refuses a call if all of some bits of an argument are set. */
static void refuse_with_bits(uint32_t call, int argument, uint32_t bits) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 5);
    load(ARGUMENT(argument));
    add(BPF_ALU | BPF_AND | BPF_K, bits, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1);
    end_with(REFUSED);
    load(offsetof(struct seccomp_data, nr));
}

/* Refuses sockets of other families than these three. */
static void allow_families(uint32_t first, uint32_t second, uint32_t third) {
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 6);
    load(ARGUMENT(0));
    add(BPF_JMP | BPF_JEQ | BPF_K, first, 3, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, second, 2, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, third, 1, 0);
    end_with(REFUSED);
    load(offsetof(struct seccomp_data, nr));
}

/* Refuses sockets that are not streams; the type may have flags. */
static void allow_streams_only(uint32_t call) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 5);
    load(ARGUMENT(1));
    add(BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 1, 0);
    end_with(REFUSED);
    load(offsetof(struct seccomp_data, nr));
}

/* Refuses what Landlock's rules for ports do not cover: protocols other than TCP, and connecting while sending. */
static void allow_tcp_only(void) {
    allow_streams_only(SYS_socket);
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5);
    load(ARGUMENT(2));
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 1, 0);
    end_with(REFUSED);
    load(offsetof(struct seccomp_data, nr));
    refuse_with_any(SYS_sendto, 3, MSG_FASTOPEN);
    refuse_with_any(SYS_sendmsg, 2, MSG_FASTOPEN);
    refuse_with_any(SYS_sendmmsg, 3, MSG_FASTOPEN);
}

static const uint32_t always_refused[] = {
    /* other processes */
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_tkill, 424 /* pidfd_send_signal */,
    438 /* pidfd_getfd */, 440 /* process_madvise */, 448 /* process_mrelease */,
    /* memory that is not counted as the module's */
    SYS_memfd_create, 447 /* memfd_secret */, SYS_shmget, SYS_shmat, SYS_msgget, SYS_semget, SYS_mq_open,
    /* rights of files, of which Landlock knows nothing */
#ifdef SYS_chmod
    SYS_chmod, SYS_chown, SYS_lchown,
#endif
    SYS_fchmodat, 452 /* fchmodat2 */, SYS_fchownat, SYS_setxattr, SYS_lsetxattr, SYS_removexattr, SYS_lremovexattr,
    463 /* setxattrat */, 466 /* removexattrat */, 469 /* file_setattr */,
    /* the sandbox itself */
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, 428 /* open_tree */,
    429 /* move_mount */, 430 /* fsopen */, 431 /* fsconfig */, 432 /* fsmount */, 433 /* fspick */,
    442 /* mount_setattr */, SYS_open_by_handle_at, SYS_name_to_handle_at,
    /* large parts of the kernel that no module needs */
    SYS_bpf, SYS_perf_event_open, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_userfaultfd, 425 /* io_uring_setup */,
    426 /* io_uring_enter */, 427 /* io_uring_register */, SYS_kexec_load, SYS_init_module, SYS_finit_module,
    SYS_delete_module, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl, SYS_fanotify_init, SYS_vhangup,
    SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname, SYS_setdomainname,
#ifdef __x86_64__
    SYS_ioperm, SYS_iopl, SYS_modify_ldt, SYS_kexec_file_load,
#endif
};

/* A new process that would be a child of the host, or have privileges in a namespace of its own. */
enum {
    CLONES_ELSEWHERE = CLONE_PARENT | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER
        | CLONE_NEWPID | CLONE_NEWNET
};

/* New processes and programs. clone3 keeps its flags where a filter cannot see them; the C library then uses clone. */
static void refuse_processes(void) {
    refuse(SYS_execve, REFUSED);
    refuse(SYS_execveat, REFUSED);
#ifdef SYS_fork
    refuse(SYS_fork, REFUSED);
    refuse(SYS_vfork, REFUSED);
#endif
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    load(ARGUMENT(0));
    add(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
    end_with(REFUSED);
    load(offsetof(struct seccomp_data, nr));
}

/* What would change limits and priorities of other processes, or make the kernel send them signals. */
static void protect_others(void) {
    refuse_unless(SYS_prlimit64, 0, 0); /* the C library passes 0, for this process */
    refuse_unless(SYS_sched_setaffinity, 0, 0);
    refuse_unless(SYS_sched_setscheduler, 0, 0);
    refuse_unless(SYS_sched_setparam, 0, 0);
    refuse_unless(SYS_sched_setattr, 0, 0);
    refuse_unless(SYS_setpriority, 0, PRIO_PROCESS);
    refuse_unless(SYS_setpriority, 1, 0);
    refuse_unless(SYS_ioprio_set, 0, 1); /* of a process */
    refuse_unless(SYS_ioprio_set, 1, 0);
    refuse_if(SYS_fcntl, 1, F_SETOWN);
    refuse_if(SYS_fcntl, 1, F_SETOWN_EX);
    refuse_if(SYS_fcntl, 1, F_SETSIG);
    refuse_if(SYS_ioctl, 1, FIOSETOWN);
    refuse_if(SYS_ioctl, 1, SIOCSPGRP);
}

/* Rights of open files. A module that may change files may want to set them; but all files that it reads may be root's. */
static void protect_rights(const worker_limits *limits) {
    if (limits->writable->count && geteuid() != 0) return;
    refuse(SYS_fchmod, REFUSED);
    refuse(SYS_fchown, REFUSED);
    refuse(SYS_fsetxattr, REFUSED);
    refuse(SYS_fremovexattr, REFUSED);
}

static void filter_calls(const worker_limits *limits) {
    load(offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    end_with(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1); /* the x32 interface */
    end_with(SECCOMP_RET_KILL_PROCESS);
#endif
    for (size_t index = 0; index < COUNT_OF(always_refused); index++) refuse(always_refused[index], REFUSED);
    refuse(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    if (!limits->processes) refuse_processes();
    else refuse_with_any(SYS_clone, 0, CLONES_ELSEWHERE);
    protect_others();
    protect_rights(limits);
    if (syscall(LANDLOCK_CREATE, NULL, 0, 1) < 3) refuse(SYS_truncate, REFUSED);
    uint32_t own = (uint32_t)getpid();
    if (!limits->processes) refuse_unless(SYS_kill, 0, own); /* else Landlock says which */
    refuse_unless(SYS_tgkill, 0, own);
    refuse_unless(SYS_rt_sigqueueinfo, 0, own);
    refuse_unless(SYS_rt_tgsigqueueinfo, 0, own);
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 4); /* it must end with the host */
    load(ARGUMENT(0));
    add(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PDEATHSIG, 0, 1);
    end_with(REFUSED);
    load(offsetof(struct seccomp_data, nr));
    if (limits->memory) {
        refuse_with_bits(SYS_mmap, 3, MAP_SHARED | MAP_ANONYMOUS);
        refuse_with_any(SYS_mmap, 3, MAP_GROWSDOWN);
    }
    allow_streams_only(SYS_socketpair); /* one of datagrams can reach any socket that has a path */
    switch (limits->network) {
    case PLUGIN_WIRE_NETWORK_NONE: refuse(SYS_socket, REFUSED); break;
    case PLUGIN_WIRE_NETWORK_PORTS:
        allow_families(AF_INET, AF_INET6, AF_INET6);
        allow_tcp_only();
        break;
    default: allow_families(AF_INET, AF_INET6, AF_NETLINK);
    }
    end_with(SECCOMP_RET_ALLOW);
    struct sock_fprog program = {filter_length, filter};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) lacks_by_errno("seccomp");
}
#else
static void filter_calls(const worker_limits *limits) {
    (void)limits;
    lacks("seccomp", "there is no filter for this processor");
}
#endif

/* ----------------------------------------------------------------------------------- all of it */

/* Reads the limits in a message of the host, whose values they refer to. */
static worker_limits limits_in(const plugin_value *values) {
    return (worker_limits){
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

void worker_confine(const plugin_wire_message *message) {
    if (message->count != PLUGIN_WIRE_LIMITS) worker_give_up("the limits of the host cannot be read");
    worker_limits held = limits_in(message->values), *limits = &held;
    be_first_victim();
    set_limits(limits);
    if (limits->sandbox) {
        enter_namespaces(limits);
        drop_capabilities();
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) lacks_by_errno("no_new_privs");
        worker_die_with_host(); /* a change of rights may have undone it */
        restrict_files(limits);
        filter_calls(limits);
    }
    report(limits->sandbox == PLUGIN_WIRE_SANDBOX_REQUIRED);
}
