/* The system calls a worker may make, and those the broker and its children may not. */
#include "common/sandbox_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/log.h"
#include "common/sandbox.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* The bits of an argument that must have one value. C leaves the upper half of a
 * register undefined for an `int`, hence the mask of 32 bits there. */
struct condition {
    unsigned arg;
    uint64_t mask, value;
};

#define INT_MASK UINT64_C(0xffffffff)
#define LONG_MASK UINT64_MAX

struct rule {
    const char *name;
    int number;
    const char *reason;
    unsigned n_conditions;
    struct condition conditions[2];
};

/* clang-format off */
#define ANY(call, reason) {#call, SCMP_SYS(call), reason, 0, {{0}}}
#define ARG1(call, value, reason) \
    {#call, SCMP_SYS(call), reason, 1, {{1, INT_MASK, value}}}
#define ARGS(call, reason, ...) {#call, SCMP_SYS(call), reason, 2, {__VA_ARGS__}}

/* The worker's whole world. A second row of one call is an alternative. */
static const struct rule worker_rules[] = {
    /* waiting */
    ANY(epoll_wait, "the event loop"),
    ANY(epoll_pwait, "the event loop where the libc has no epoll_wait"),
    ANY(epoll_ctl, "the event loop"),
    ANY(epoll_create1,
        "libev makes a new set when a closed descriptor still reports because "
        "the broker holds a copy; without it a client could provoke our end"),
    ANY(poll, "lws_send_pipe_choked() asks whether a socket takes more"),
    ANY(ppoll, "poll() where the libc has no such call"),
    ANY(clock_gettime, "the clock when the vDSO cannot read it"),
    ANY(gettimeofday, "the clock when the vDSO cannot read it"),
    ANY(restart_syscall, "the kernel's own, after stop and continue"),
    /* connections and channels */
    ANY(accept4, "connections from the inherited listener"),
    ANY(getpeername, "the client's address, for limits and the log"),
    ANY(recvfrom, "recv() of connections"),
    /* A listener is shared with every worker and lives in the server's network: shutdown() of
     * its reading side would make all of them deaf, and the socket that is left could be
     * connected anywhere by MSG_FASTOPEN, which neither namespaces nor Landlock stop. */
    ARGS(sendto, "send() of connections: nowhere else", {3, MSG_FASTOPEN, 0},
         {4, LONG_MASK, 0}),
    ANY(recvmsg, "channels to broker and master, with descriptors"),
    {"sendmsg", SCMP_SYS(sendmsg), "channels to broker and master, with descriptors", 1,
     {{2, MSG_FASTOPEN, 0}}},
    ARG1(shutdown, SHUT_WR, "ending a connection in order"),
    ARGS(setsockopt, "TCP_NODELAY of connections", {1, INT_MASK, IPPROTO_TCP},
         {2, INT_MASK, TCP_NODELAY}),
    /* descriptors that others opened for us */
    ANY(read, "brokered files, pipes, terminals"),
    ANY(readv, "the same into several buffers"),
    ANY(pread64, "brokered files, whose offset other holders share"),
    ANY(write, "terminals, stderr"),
    ANY(writev, "answers of head and body"),
    ANY(lseek, "the size of a received file"),
    ANY(close, "descriptors"),
    ARG1(fcntl, F_GETFL, "is it blocking"),
    ARGS(fcntl, "not blocking, and never blocking again: siblings share the listener",
         {1, INT_MASK, F_SETFL}, {2, O_NONBLOCK, O_NONBLOCK}),
    ARG1(fcntl, F_SETFD, "close on exec"),
    ARG1(fcntl, F_GET_SEALS, "is a received memfd fixed"),
    ARG1(ioctl, FIONREAD, "bytes waiting"),
    ARG1(ioctl, TIOCSWINSZ, "size of a terminal"),
    /* memory, never executable */
    ANY(brk, "malloc"),
    ARGS(mmap, "malloc: anonymous, not executable", {2, PROT_EXEC, 0},
         {3, MAP_ANONYMOUS, MAP_ANONYMOUS}),
    ARGS(mmap, "received listings: PROT_READ and nothing else",
         {2, LONG_MASK, PROT_READ}, {3, MAP_ANONYMOUS, 0}),
    ANY(munmap, "malloc, listings"),
    ANY(mremap, "realloc of large blocks"),
    ANY(madvise, "free of large blocks"),
    ARG1(futex, FUTEX_WAKE | FUTEX_PRIVATE_FLAG,
         "pthread_once() in libraries wakes waiters even when there are none"),
    /* the end */
    ANY(rt_sigreturn, "return from the handlers of SIGTERM and SIGHUP"),
    ANY(exit, "the end"),
    ANY(exit_group, "the end"),
#ifdef __SANITIZE_ADDRESS__
    ANY(mprotect, "sanitizer: its own allocator"),
    ANY(sigaltstack, "sanitizer: its stack for signals"),
    ANY(rt_sigaction, "sanitizer: report and abort"),
    ANY(rt_sigprocmask, "sanitizer: report and abort"),
    ANY(getpid, "sanitizer: report"),
    ANY(gettid, "sanitizer: report"),
    ANY(sched_yield, "sanitizer: its locks"),
    ARG1(futex, FUTEX_WAIT, "sanitizer: its locks"),
    ARG1(futex, FUTEX_WAKE, "sanitizer: its locks"),
    ARG1(futex, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, "sanitizer: its locks"),
    ANY(tgkill, "sanitizer: abort"),
#endif
};
/* clang-format on */

/* What a broker, `ssebench`, docker's command line, uv and python never need, while a
 * broker taken over would like it. Children inherit a filter, so nothing stands here
 * that an ordinary program uses, and nothing kills: a program that probes must get its
 * answer. */
static const struct {
    int number;
    int error;
} broker_rules[] = {
    /* mounting, in all its forms */
    {SCMP_SYS(mount), EPERM},
    {SCMP_SYS(umount2), EPERM},
    {SCMP_SYS(pivot_root), EPERM},
    {SCMP_SYS(move_mount), EPERM},
    {SCMP_SYS(open_tree), EPERM},
    {SCMP_SYS(fsopen), EPERM},
    {SCMP_SYS(fsconfig), EPERM},
    {SCMP_SYS(fsmount), EPERM},
    {SCMP_SYS(fspick), EPERM},
    {SCMP_SYS(mount_setattr), EPERM},
    {SCMP_SYS(open_by_handle_at), EPERM}, /* opens past every directory's permissions */
/* other processes of the account */
#ifndef __SANITIZE_ADDRESS__
    {SCMP_SYS(ptrace), EPERM}, /* the leak sanitizer attaches to its own process */
#endif
    {SCMP_SYS(process_vm_readv), EPERM},
    {SCMP_SYS(process_vm_writev), EPERM},
    {SCMP_SYS(pidfd_getfd), EPERM},
    {SCMP_SYS(kcmp), EPERM},
    /* code in the kernel, and doors into it that exploits went through */
    {SCMP_SYS(init_module), EPERM},
    {SCMP_SYS(finit_module), EPERM},
    {SCMP_SYS(delete_module), EPERM},
    {SCMP_SYS(kexec_load), EPERM},
    {SCMP_SYS(kexec_file_load), EPERM},
    {SCMP_SYS(bpf), EPERM},
    {SCMP_SYS(perf_event_open), EPERM},
    {SCMP_SYS(userfaultfd), EPERM},
    {SCMP_SYS(add_key), EPERM},
    {SCMP_SYS(request_key), EPERM},
    {SCMP_SYS(keyctl), EPERM},
    /* runtimes ask for it and fall back when the kernel seems too old */
    {SCMP_SYS(io_uring_setup), ENOSYS},
    {SCMP_SYS(io_uring_enter), ENOSYS},
    {SCMP_SYS(io_uring_register), ENOSYS},
    {SCMP_SYS(fanotify_init), EPERM},
    /* the machine as a whole */
    {SCMP_SYS(reboot), EPERM},
    {SCMP_SYS(swapon), EPERM},
    {SCMP_SYS(swapoff), EPERM},
    {SCMP_SYS(acct), EPERM},
    {SCMP_SYS(quotactl), EPERM},
    {SCMP_SYS(syslog), EPERM},
    {SCMP_SYS(settimeofday), EPERM},
    {SCMP_SYS(clock_settime), EPERM},
    {SCMP_SYS(sethostname), EPERM},
    {SCMP_SYS(setdomainname), EPERM},
    {SCMP_SYS(iopl), EPERM},
    {SCMP_SYS(ioperm), EPERM},
};

#ifdef __SANITIZE_ADDRESS__
/* A report looks for names of functions; it must go on without the files. */
static const int sanitizer_refused[] = {
    SCMP_SYS(openat),     SCMP_SYS(open),       SCMP_SYS(readlink),
    SCMP_SYS(readlinkat), SCMP_SYS(newfstatat), SCMP_SYS(fstat),
    SCMP_SYS(stat),       SCMP_SYS(access),     SCMP_SYS(prctl),
    SCMP_SYS(getrlimit),  SCMP_SYS(prlimit64),
};
#endif

/* Say which call it was, then die of it. The filter traps instead of killing on the
 * spot only for this line: the call itself is never executed, the handler is fixed
 * (rt_sigaction is not on the list), and the second forbidden call, made while SIGSYS
 * is blocked, is one the kernel does not let a process survive. */
static void
on_forbidden_call(int signal_number, siginfo_t *info, void *context)
{
    char *name = seccomp_syscall_resolve_num_arch(info->si_arch, info->si_syscall);

    log_event(LOG_LEVEL_ERROR, "forbidden-call", "syscall=%s number=%d",
              name != NULL ? name : "unknown", info->si_syscall);
    for (;;)
        syscall(SYS_execve, NULL, NULL, NULL);
}

static int
add_worker_rule(scmp_filter_ctx filter, const struct rule *rule)
{
    struct scmp_arg_cmp args[N(rule->conditions)];

    for (unsigned i = 0; i < rule->n_conditions; i++) {
        const struct condition *c = &rule->conditions[i];

        args[i] = (struct scmp_arg_cmp){c->arg, SCMP_CMP_MASKED_EQ, c->mask, c->value};
    }
    return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rule->number,
                                  rule->n_conditions, args);
}

/* Attributes of both filters, then into the kernel. */
static int
load(scmp_filter_ctx filter)
{
    int r;

    /* x86-64 also runs i386 and x32 numbers, for which the list means nothing. */
    r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (r == 0) /* a tree instead of a chain: the list is asked at every call */
        r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (r == 0)
        r = seccomp_load(filter);
    return r;
}

int
sandbox_seccomp_worker(void)
{
    struct sigaction action = {.sa_sigaction = on_forbidden_call,
                               .sa_flags = SA_SIGINFO};
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
    int r = filter != NULL ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < N(worker_rules); i++)
        r = add_worker_rule(filter, &worker_rules[i]);
#ifdef __SANITIZE_ADDRESS__
    for (size_t i = 0; r == 0 && i < N(sanitizer_refused); i++)
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOENT), sanitizer_refused[i], 0);
    if (r == 0) /* is stderr a terminal, for its colours */
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOTTY), SCMP_SYS(ioctl), 1,
                             SCMP_A1(SCMP_CMP_MASKED_EQ, INT_MASK, TCGETS));
#endif
    sigfillset(&action.sa_mask);
    if (r == 0 && sigaction(SIGSYS, &action, NULL) != 0)
        r = -errno;
    if (r == 0)
        r = load(filter);
    seccomp_release(filter);
    return r;
}

int
sandbox_seccomp_broker(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int r = filter != NULL ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < N(broker_rules); i++)
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint32_t)broker_rules[i].error),
                             broker_rules[i].number, 0);
    if (r == 0)
        r = load(filter);
    seccomp_release(filter);
    return r;
}

const char *
sandbox_worker_rule(unsigned index, bool *ret_conditional, const char **ret_reason)
{
    if (index >= N(worker_rules))
        return NULL;
    *ret_conditional = worker_rules[index].n_conditions > 0;
    *ret_reason = worker_rules[index].reason;
    return worker_rules[index].name;
}
