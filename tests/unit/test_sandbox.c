/* The worker's list of calls against the running kernel: each attempt in a confined
 * child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/limits.h"
#include "common/tty_ring.h"
#include "tests/unit/confined.h"

/* clang-format off */
DEED(open, open("/etc/hostname", O_RDONLY))
DEED(openat2, syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0))
DEED(stat, syscall(SYS_newfstatat, AT_FDCWD, "/etc/hostname", NULL, 0))
DEED(socket, socket(AF_INET, SOCK_STREAM, 0))
DEED(unix_socket, socket(AF_UNIX, SOCK_STREAM, 0))
DEED(connect, connect(have.connection, NULL, 0))
DEED(bind, bind(have.connection, NULL, 0))
DEED(execve, (int)syscall(SYS_execve, "/bin/true", NULL, NULL))
DEED(fork, syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))
DEED(clone3, syscall(SYS_clone3, NULL, 0))
DEED(ptrace, (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL))
DEED(kill, kill(getppid(), 0))
DEED(prctl, (int)syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0))
DEED(setrlimit, (int)syscall(SYS_prlimit64, 0, RLIMIT_CORE, NULL, NULL))
DEED(setuid, (int)syscall(SYS_setuid, 0))
DEED(unshare, unshare(CLONE_NEWUSER))
DEED(io_uring, (int)syscall(SYS_io_uring_setup, 1, NULL))
DEED(pipe, pipe((int[2]){0, 0}))
DEED(dup, dup(0))
DEED(mmap_exec, -(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                  == MAP_FAILED))
DEED(mmap_exec_file, -(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, have.memfd, 0)
                       == MAP_FAILED))
DEED(mmap_write_file, -(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, have.file, 0)
                        == MAP_FAILED))
DEED(pkey_mprotect, (int)syscall(SYS_pkey_mprotect, 0, 0, PROT_EXEC, -1))
DEED(tiocsti, ioctl(0, TIOCSTI, "x"))
DEED(tcgets, (int)syscall(SYS_ioctl, 0, TCGETS, NULL))
DEED(siocgifconf, ioctl(have.connection, 0x8912, NULL))
DEED(dupfd, fcntl(0, F_DUPFD, 0))
DEED(setown, fcntl(have.connection, F_SETOWN, 1))
DEED(reuseaddr, setsockopt(have.connection, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)))
DEED(tcp_repair, setsockopt(have.connection, IPPROTO_TCP, TCP_REPAIR, &(int){1}, sizeof(int)))
DEED(shutdown_listener, shutdown(have.listener, (int)arg))
DEED(fastopen, (int)sendto(have.listener, "x", 1, MSG_FASTOPEN, NULL, 0))
DEED(fastopen_message, (int)sendmsg(have.listener, &(struct msghdr){0}, MSG_FASTOPEN))
DEED(send_elsewhere, (int)sendto(have.connection, "x", 1, 0, (struct sockaddr *)"0123456789abcdef",
                                 16))
DEED(block_listener, fcntl(have.listener, F_SETFL, 0))
DEED(fionbio, ioctl(have.listener, FIONBIO, &(int){0}))
DEED(futex_wait, (int)syscall(SYS_futex, &(int){0}, FUTEX_LOCK_PI, 0, NULL, NULL, 0))

#ifndef __SANITIZE_ADDRESS__
DEED(sigaction, (int)syscall(SYS_rt_sigaction, SIGSYS, NULL, NULL, 8))
DEED(mprotect_exec, mprotect((void *)((uintptr_t)&have & ~4095ul), 4096, PROT_READ | PROT_EXEC))
#endif

DEED(accept, accept4(have.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC))
DEED(nodelay, setsockopt(have.connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)))
DEED(send, (int)send(have.connection, "x", 1, MSG_NOSIGNAL))
DEED(shutdown, shutdown(have.connection, SHUT_WR))
DEED(recv, (int)recv(have.connection, (char[1]){0}, 1, MSG_DONTWAIT))
DEED(getpeername, getpeername(have.connection, (struct sockaddr *)(char[128]){0},
                              &(socklen_t){128}))
DEED(epoll_ctl, epoll_ctl(have.epoll, EPOLL_CTL_ADD, have.connection,
                          &(struct epoll_event){EPOLLIN}))
DEED(epoll_wait, epoll_wait(have.epoll, &(struct epoll_event){0}, 1, 0))
DEED(epoll_create, epoll_create1(EPOLL_CLOEXEC))
DEED(poll, poll(&(struct pollfd){have.connection, POLLOUT}, 1, 0))
DEED(clock, (int)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &(struct timespec){0}))
DEED(pread, (int)pread(have.memfd, (char[16]){0}, 16, 0))
DEED(lseek, (int)lseek(have.memfd, 0, SEEK_END))
DEED(seals, fcntl(have.memfd, F_GET_SEALS))
DEED(nonblock, fcntl(have.connection, F_SETFL, O_NONBLOCK))
DEED(cloexec, fcntl(have.connection, F_SETFD, FD_CLOEXEC))
DEED(fionread, ioctl(have.connection, FIONREAD, &(int){0}))
DEED(winsize, ioctl(have.connection, TIOCSWINSZ, NULL))
DEED(mmap_listing, -(mmap(NULL, 4096, PROT_READ, MAP_SHARED, have.memfd, 0) == MAP_FAILED))
DEED(mmap_listing_private, -(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, have.memfd, 0)
                             == MAP_FAILED))
DEED(write_file, lseek(have.file, TTY_RING_SIZE, SEEK_SET) < 0 ? -1 : (int)write(have.file, "x", 1))
DEED(close, close(have.connection))
/* clang-format on */

/* A descriptor over the channel there and back, as the broker's answers carry them. */
static int
try_pass_descriptor(long arg)
{
    char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
    struct iovec iov = {&byte, 1};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = room,
                       .msg_controllen = sizeof(room)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &have.memfd, sizeof(int));
    if (sendmsg(have.channel[0], &m, MSG_NOSIGNAL) != 1 ||
        recvmsg(have.channel[1], &m, MSG_CMSG_CLOEXEC) != 1)
        return errno;
    return CMSG_FIRSTHDR(&m) != NULL ? 0 : EPROTO;
}

/* Small and large, grown and freed: brk, mmap, mremap, munmap, madvise. */
static int
try_memory(long arg)
{
    for (size_t size = 16; size <= 16u << 20; size *= 4) {
        char *p = malloc(size);

        if (p == NULL || (p = realloc(p, size * 2)) == NULL)
            return ENOMEM;
        memset(p, 1, size * 2);
        free(p);
    }
    return 0;
}

static void
nothing(void)
{
}

static int
try_once(long arg)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    return pthread_once(&once, nothing);
}

/* A line with the time of day, as the first one a worker logs. */
static int
try_log(long arg)
{
    log_event(LOG_LEVEL_INFO, "test", "n=%d", 1);
    return 0;
}

/* Leave a handler by rt_sigreturn and come back with EINTR. The handler was in place
 * before, the signal is the one of the kernel for a peer that is gone. */
static int
try_signal(long arg)
{
    close(have.channel[1]);
    return send(have.channel[0], "x", 1, 0) < 0 && errno == EPIPE ? 0 : EPROTO;
}

/* The sanitizer's build answers some calls that its reports need instead of killing. */
#ifdef __SANITIZE_ADDRESS__
#define REFUSED ENOENT
#define REFUSED_TCGETS ENOTTY
#define SANITIZER_IOCTL TCGETS
#else
#define REFUSED KILLED
#define REFUSED_TCGETS KILLED
#define SANITIZER_IOCTL -1
#endif

static const struct {
    const char *label;
    int (*attempt)(long);
    long arg;
    int expected;
} attempts[] = {
    /* the file system */
    {"open a file", try_open, 0, REFUSED},
    {"openat2", try_openat2, 0, KILLED},
    {"look at a path", try_stat, 0, REFUSED},
    {"map a file for writing", try_mmap_write_file, 0, KILLED},
    {"write a file handed over read-write, longer than a terminal's ring", try_write_file, 0, EFBIG},
    /* the network */
    {"TCP socket", try_socket, 0, KILLED},
    {"Unix socket", try_unix_socket, 0, KILLED},
    {"connect", try_connect, 0, KILLED},
    {"bind", try_bind, 0, KILLED},
    {"other socket options", try_reuseaddr, 0, KILLED},
    {"other TCP options", try_tcp_repair, 0, KILLED},
    {"interfaces", try_siocgifconf, 0, KILLED},
    /* processes and programs */
    {"exec", try_execve, 0, KILLED},
    {"fork", try_fork, 0, KILLED},
    {"clone3", try_clone3, 0, KILLED},
    {"ptrace", try_ptrace, 0, KILLED},
    {"signal the parent", try_kill, 0, KILLED},
    /* taking fences down */
    {"become dumpable", try_prctl, 0, REFUSED},
    {"limits", try_setrlimit, 0, REFUSED},
    {"setuid", try_setuid, 0, KILLED},
    {"unshare", try_unshare, 0, KILLED},
    {"io_uring", try_io_uring, 0, KILLED},
    {"i386 getpid", try_i386, 20, KILLED},
    {"i386 exit", try_i386, 1, KILLED},
    {"x32 getpid", try_number, 0x40000000 + 39, KILLED},
    {"x32 read", try_number, 0x40000000, KILLED},
    {"number 1000", try_number, 1000, KILLED},
    /* code */
    {"executable memory", try_mmap_exec, 0, KILLED},
    {"executable file", try_mmap_exec_file, 0, KILLED},
    {"pkey_mprotect", try_pkey_mprotect, 0, KILLED},
    /* descriptors */
    {"pipe", try_pipe, 0, KILLED},
    {"dup", try_dup, 0, KILLED},
    {"dup by fcntl", try_dupfd, 0, KILLED},
    {"signals of a socket", try_setown, 0, KILLED},
    {"type into a terminal", try_tiocsti, 0, KILLED},
    {"state of a terminal", try_tcgets, 0, REFUSED_TCGETS},
    {"futex with priorities", try_futex_wait, 0, KILLED},
    {"make the shared listener deaf", try_shutdown_listener, SHUT_RD, KILLED},
    {"the same, both ways", try_shutdown_listener, SHUT_RDWR, KILLED},
    {"connect by fast open", try_fastopen, 0, KILLED},
    {"connect by fast open with a message", try_fastopen_message, 0, KILLED},
    {"send elsewhere", try_send_elsewhere, 0, KILLED},
    {"make the shared listener block", try_block_listener, 0, KILLED},
    {"the same by ioctl", try_fionbio, 0, KILLED},
#ifndef __SANITIZE_ADDRESS__
    {"another handler for SIGSYS", try_sigaction, 0, KILLED},
    {"make memory executable", try_mprotect_exec, 0, KILLED},
#endif
    /* a worker's work */
    {"accept", try_accept, 0, 0},
    {"TCP_NODELAY", try_nodelay, 0, 0},
    {"send", try_send, 0, 0},
    {"receive", try_recv, 0, EAGAIN},
    {"end of sending", try_shutdown, 0, 0},
    {"peer's address", try_getpeername, 0, 0},
    {"epoll_ctl", try_epoll_ctl, 0, 0},
    {"epoll_wait", try_epoll_wait, 0, 0},
    {"a new epoll set", try_epoll_create, 0, 0},
    {"poll", try_poll, 0, 0},
    {"clock without vDSO", try_clock, 0, 0},
    {"pass a descriptor", try_pass_descriptor, 0, 0},
    {"pread", try_pread, 0, 0},
    {"size of a file", try_lseek, 0, 0},
    {"seals", try_seals, 0, 0},
    {"not blocking", try_nonblock, 0, 0},
    {"close on exec", try_cloexec, 0, 0},
    {"bytes waiting", try_fionread, 0, 0},
    {"size of a terminal, on a socket", try_winsize, 0, ENOTTY},
    {"listing, shared", try_mmap_listing, 0, 0},
    {"listing, private", try_mmap_listing_private, 0, 0},
    {"memory", try_memory, 0, 0},
    {"pthread_once", try_once, 0, 0},
    {"log", try_log, 0, 0},
    {"return from a handler", try_signal, 0, 0},
    {"close", try_close, 0, 0},
};

static void
test_attempts(void **state)
{
    for (int who = 0; who < STARTERS; who++)
        for (size_t i = 0; i < N(attempts); i++) {
            int verdict =
                confined_run(who, attempts[i].attempt, attempts[i].arg, null_fd());

            if (verdict != attempts[i].expected)
                fail_msg("%s, %s: %d instead of %d", attempts[i].label,
                         starter_names[who], verdict, attempts[i].expected);
        }
}

/* Written out once more: a call added to the filter must be added here as well. */
static const long survivors[] = {
    SYS_read,
    SYS_readv,
    SYS_write,
    SYS_writev,
    SYS_pread64,
    SYS_lseek,
    SYS_close,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_accept4,
    SYS_getpeername,
    SYS_ppoll,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_epoll_create1,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_restart_syscall,
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_rt_sigreturn,
    SYS_exit,
    SYS_exit_group,
#ifdef __x86_64__
    SYS_poll,
    SYS_epoll_wait,
#endif
#ifdef __SANITIZE_ADDRESS__
    SYS_mprotect,
    SYS_sigaltstack,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_getpid,
    SYS_gettid,
    SYS_sched_yield,
    SYS_tgkill,
    SYS_openat,
    SYS_open,
    SYS_readlink,
    SYS_readlinkat,
    SYS_newfstatat,
    SYS_fstat,
    SYS_stat,
    SYS_access,
    SYS_prctl,
    SYS_getrlimit,
    SYS_prlimit64,
#endif
};

static bool
is_survivor(long number)
{
    for (size_t i = 0; i < N(survivors); i++)
        if (survivors[i] == number)
            return true;
    return false;
}

/* uretprobe and uprobe of x86-64: newer kernels let them past every filter, because
 * they put these calls into programs themselves; from anywhere else they end in SIGILL
 * or ENXIO. */
static bool
is_exempt(long number)
{
#ifdef __x86_64__
    return number == 335 || number == 336;
#else
    return false;
#endif
}

/* Every number with arguments that mean nothing (all -1): conditional rules do not
 * match. */
static void
test_every_number(void **state)
{
    for (int who = 0; who < STARTERS; who++)
        for (long number = 0; number <= 460; number++) {
            bool survived = confined_run(who, try_number, number, null_fd()) != KILLED;

            if (survived != is_survivor(number) && !is_exempt(number))
                fail_msg("call %ld %s, %s", number,
                         survived ? "survived" : "was killed", starter_names[who]);
        }
}

/* One command of fcntl or ioctl on no descriptor. */
static int
try_command(long packed)
{
    syscall(packed >> 32, -1L, packed & 0xffffffff, 0L);
    return 0;
}

static void
test_commands(void **state)
{
    static const struct {
        long number, first, last, allowed[4];
    } ranges[] = {
        {SYS_fcntl, 0, 16, {F_GETFL, F_SETFD, -1, -1}},
        {SYS_fcntl, 1024, 1040, {F_GET_SEALS, -1, -1, -1}},
        {SYS_ioctl, 0x5400, 0x5460, {FIONREAD, TIOCSWINSZ, SANITIZER_IOCTL, -1}},
    };

    for (size_t i = 0; i < N(ranges); i++)
        for (long c = ranges[i].first; c <= ranges[i].last; c++) {
            bool allowed = false;

            for (size_t k = 0; k < 4; k++)
                allowed = allowed || ranges[i].allowed[k] == c;
            int verdict = confined_run(AS_ACCOUNT, try_command,
                                       ranges[i].number << 32 | c, null_fd());
            if ((verdict == 0) != allowed)
                fail_msg("call %ld command %ld: %d", ranges[i].number, c, verdict);
        }
}

/* Whoever reads the log learns which call it was. */
static void
test_killed_call_is_named(void **state)
{
    char line[512] = "";
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(confined_run(AS_ACCOUNT, try_execve, 0, ends[1]), KILLED);
    assert_true(read(ends[0], line, sizeof(line) - 1) > 0);
    assert_non_null(strstr(line, "forbidden-call syscall=execve number="));
    close(ends[0]);
    close(ends[1]);
}

#ifdef __SANITIZE_ADDRESS__
/* The fault is still reported from within. */
static int
try_overflow(long arg)
{
    volatile char *volatile p = malloc(8);

    p[8 + arg] = 1;
    return 0;
}

static void
test_sanitizer_reports(void **state)
{
    char text[4096] = "";
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_not_equal(confined_run(AS_ACCOUNT, try_overflow, 0, ends[1]), 0);
    assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
    assert_non_null(strstr(text, "AddressSanitizer"));
    close(ends[0]);
    close(ends[1]);
}
#endif

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attempts),
        cmocka_unit_test(test_every_number),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_killed_call_is_named),
#ifdef __SANITIZE_ADDRESS__
        cmocka_unit_test(test_sanitizer_reports),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
