/* The last part of the sandbox: a filter of system calls (seccomp). All that it does not name is allowed. */
#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* The number of the system call is in the accumulator before and after each of these functions. */

static void refuse(uint32_t call, uint32_t action) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    end_with(action);
}

/* Begins to examine an argument of a call, with the `steps` instructions that are added next. Unless one of them jumps
 * over the instructions of refuse_then, those refuse the call. */
static void look_at(uint32_t call, int argument, uint8_t steps) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, steps + 3);
    load(ARGUMENT(argument));
}

static void refuse_then(void) {
    end_with(REFUSED);
    load(offsetof(struct seccomp_data, nr));
}

/* Refuses a call unless one of its arguments equals a number. */
static void refuse_unless(uint32_t call, int argument, uint32_t number) {
    look_at(call, argument, 1);
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 1, 0);
    refuse_then();
}

/* Refuses a call if one of its arguments equals a number. */
static void refuse_if(uint32_t call, int argument, uint32_t number) {
    look_at(call, argument, 1);
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    refuse_then();
}

/* Refuses a call if any of the given bits of an argument is set. */
static void refuse_with_any(uint32_t call, int argument, uint32_t bits) {
    look_at(call, argument, 1);
    add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    refuse_then();
}

/* Refuses a call if all of the given bits of an argument are set. */
static void refuse_with_all(uint32_t call, int argument, uint32_t bits) {
    look_at(call, argument, 2);
    add(BPF_ALU | BPF_AND | BPF_K, bits, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1);
    refuse_then();
}

/* Refuses sockets of other families than these three. */
static void allow_families(uint32_t first, uint32_t second, uint32_t third) {
    look_at(SYS_socket, 0, 3);
    add(BPF_JMP | BPF_JEQ | BPF_K, first, 3, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, second, 2, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, third, 1, 0);
    refuse_then();
}

/* Refuses sockets that are not streams; the type may have flags. */
static void allow_streams_only(uint32_t call) {
    look_at(call, 1, 2);
    add(BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 1, 0);
    refuse_then();
}

/* Refuses what Landlock's rules for ports do not cover: protocols other than TCP, and connecting while sending. */
static void allow_tcp_only(void) {
    allow_streams_only(SYS_socket);
    look_at(SYS_socket, 2, 2);
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 1, 0);
    refuse_then();
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

/* Flags for a new process that would be a child of the host, or have privileges in a namespace of its own. */
enum {
    CLONES_ELSEWHERE = CLONE_PARENT | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER
        | CLONE_NEWPID | CLONE_NEWNET
};

/* Refuses new processes and programs. A filter cannot see the flags of clone3, so the C library must use clone. */
static void refuse_processes(void) {
    refuse(SYS_execve, REFUSED);
    refuse(SYS_execveat, REFUSED);
#ifdef SYS_fork
    refuse(SYS_fork, REFUSED);
    refuse(SYS_vfork, REFUSED);
#endif
    look_at(SYS_clone, 0, 1);
    add(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
    refuse_then();
}

/* Refuses to change limits and priorities of other processes, and to make the kernel send signals to them. */
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

/* Refuses changes to the rights of open files, unless the module may change files. If the worker runs as root, refuses
 * them in any case, because all files that the module reads may be root's. */
static void protect_rights(const plugin_worker_limits *limits) {
    if (limits->writable->count && geteuid() != 0) return;
    refuse(SYS_fchmod, REFUSED);
    refuse(SYS_fchown, REFUSED);
    refuse(SYS_fsetxattr, REFUSED);
    refuse(SYS_fremovexattr, REFUSED);
}

void plugin_worker_filter_calls(const plugin_worker_limits *limits) {
    load(offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    end_with(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1); /* the x32 interface */
    end_with(SECCOMP_RET_KILL_PROCESS);
#endif
    for (size_t index = 0; index < sizeof always_refused / sizeof *always_refused; index++) refuse(always_refused[index], REFUSED);
    refuse(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    if (!limits->processes) refuse_processes();
    else refuse_with_any(SYS_clone, 0, CLONES_ELSEWHERE);
    protect_others();
    protect_rights(limits);
    if (plugin_worker_landlock_version() < 3) refuse(SYS_truncate, REFUSED);
    uint32_t own = (uint32_t)getpid();
    if (!limits->processes) refuse_unless(SYS_kill, 0, own); /* else Landlock says which */
    refuse_unless(SYS_tgkill, 0, own);
    refuse_unless(SYS_rt_sigqueueinfo, 0, own);
    refuse_unless(SYS_rt_tgsigqueueinfo, 0, own);
    refuse_if(SYS_prctl, 0, PR_SET_PDEATHSIG); /* it must end with the host */
    if (limits->memory) {
        refuse_with_all(SYS_mmap, 3, MAP_SHARED | MAP_ANONYMOUS);
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
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) plugin_worker_lacks_by_errno("seccomp");
}
#else
void plugin_worker_filter_calls(const plugin_worker_limits *limits) {
    (void)limits;
    plugin_worker_lacks("seccomp", "there is no filter for this processor");
}
#endif
