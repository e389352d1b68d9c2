/* Children in the worker's sandbox, for the tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/sandbox.h"
#include "tests/unit/confined.h"

const char *const starter_names[STARTERS] = {"as root", "as an account"};
struct confined_fds have;

bool
is_root(void)
{
    return geteuid() == 0;
}

/* In the child that is to be confined, so that no attempt sees another one's traces. */
static bool
open_all(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    char path[] = "/tmp/test_sandbox.XXXXXX";

    have.listener = socket(AF_INET, SOCK_STREAM, 0);
    have.connection = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(have.listener, (struct sockaddr *)&a, sizeof(a)) != 0 ||
        listen(have.listener, 8) != 0 ||
        getsockname(have.listener, (struct sockaddr *)&a, &len) != 0 ||
        connect(have.connection, (struct sockaddr *)&a, sizeof(a)) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET, 0, have.channel) != 0)
        return false;
    have.memfd = memfd_create("test", MFD_ALLOW_SEALING);
    if (ftruncate(have.memfd, 4096) != 0 ||
        fcntl(have.memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE) != 0)
        return false;
    have.file = mkstemp(path);
    have.epoll = epoll_create1(0);
    return have.file >= 0 && unlink(path) == 0 && have.epoll >= 0;
}

static void
on_signal(int number)
{
}

void
confined_enter(enum starter starter, int say_fd, uint32_t *ret_fences)
{
    static const int crashes[] = {SIGSEGV, SIGILL, SIGBUS, SIGFPE};
    struct sandbox_worker s = {NO_ID, NO_ID, 64};

    if (!open_all())
        _exit(ENTER_FAILED);
    for (size_t i = 0; i < N(crashes); i++) /* the test library catches them */
        signal(crashes[i], SIG_DFL);
    dup2(say_fd, STDERR_FILENO);
    signal(SIGPIPE, on_signal);
    log_init("worker.1", -1, LOG_LEVEL_INFO);
    if (is_root() && starter == AS_ROOT) {
        s.drop_uid = s.drop_gid = NOBODY;
        if (setgroups(2, (gid_t[2]){1, 2}) != 0) /* something to lose */
            _exit(ENTER_FAILED);
    } else if (is_root() &&
               (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) ||
                setresuid(NOBODY, NOBODY, NOBODY) != 0))
        _exit(ENTER_FAILED);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* as the master's start of a worker does */
    if (sandbox_worker_enter(&s, ret_fences) != 0)
        _exit(ENTER_FAILED);
}

int
confined_wait(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) {
        assert_int_not_equal(WEXITSTATUS(status), ENTER_FAILED);
        return WEXITSTATUS(status);
    }
    return WTERMSIG(status) == SIGSYS ? KILLED : CRASHED;
}

int
confined_run(enum starter starter, int (*attempt)(long), long arg, int say_fd)
{
    pid_t pid = fork();

    if (pid == 0) {
        uint32_t fences;

        confined_enter(starter, say_fd, &fences);
        _exit(attempt(arg));
    }
    return confined_wait(pid);
}

int
null_fd(void)
{
    static int fd = -1;

    if (fd < 0)
        fd = open("/dev/null", O_RDWR);
    return fd;
}

int
try_i386(long arg)
{
#ifdef __x86_64__
    long r;

    __asm__ volatile("int $0x80" : "=a"(r) : "a"(arg), "b"(0L) : "memory");
    return r < 0 ? (int)-r : 0;
#else
    raise(SIGSYS);
    return 0;
#endif
}

int
try_number(long number)
{
    return syscall(number, -1L, -1L, -1L, -1L, -1L, -1L) < 0 ? errno : 0;
}
