/* The key maker's fence against the running kernel: when it begins to read what others wrote, all
 * that is left to it is reading, writing, memory and the end; with TLS, what a handshake asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/keymaker/fence.h"
#include "tests/unit/confined.h"

#define FENCE_SIZE 4096

static bool tls;

static int
run(int (*attempt)(long), long arg)
{
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGSYS, SIG_DFL); /* the test library catches it */
        fence_early();
        fence_up(tls);
        _exit(attempt(arg));
    }
    return confined_wait(pid);
}

DEED(open, open("/etc/passwd", O_RDONLY))
DEED(create, (int)syscall(SYS_openat, AT_FDCWD, "/tmp/x", O_CREAT | O_WRONLY, 0600))
DEED(socket, socket(AF_UNIX, SOCK_STREAM, 0))
DEED(fork, (int)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL))
DEED(exec, execl("/bin/true", "true", (char *)NULL))
DEED(kill_parent, kill(getppid(), 0))
DEED(mmap_exec, -(mmap(NULL, FENCE_SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                  == MAP_FAILED))
DEED(mmap, -(mmap(NULL, FENCE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
             == MAP_FAILED))
DEED(write, (int)write(STDOUT_FILENO, "", 0))

static int
try_memory(long size)
{
    volatile char *bytes = malloc((size_t)size);

    if (bytes == NULL)
        return 1;
    for (long i = 0; i < size; i += FENCE_SIZE)
        bytes[i] = 1;
    free((void *)bytes);
    return 0;
}

static const struct {
    const char *label;
    int (*attempt)(long);
    long arg;
    int expected;
} attempts[] = {
    {"open", try_open, 0, KILLED},
    {"create", try_create, 0, KILLED},
    {"socket", try_socket, 0, KILLED},
    {"fork", try_fork, 0, KILLED},
    {"exec", try_exec, 0, KILLED},
#ifndef __SANITIZE_ADDRESS__ /* getpid and mprotect are its own */
    {"kill", try_kill_parent, 0, KILLED},
    {"make memory executable", try_number, SYS_mprotect, KILLED},
#endif
    {"executable memory", try_mmap_exec, 0, KILLED},
    {"prctl", try_number, SYS_prctl, KILLED},
    {"i386 getpid", try_i386, 20, KILLED},
#ifdef __x86_64__
    {"x32 read", try_number, 0x40000000, KILLED},
#endif
    {"memory", try_mmap, 0, 0},
    {"much memory", try_memory, 4 << 20, 0},
    {"write", try_write, 0, 0},
};

static void
test_attempts(void **state)
{
    tls = *state != NULL;
    for (size_t i = 0; i < N(attempts); i++) {
        int r = run(attempts[i].attempt, attempts[i].arg);

        if (r != attempts[i].expected)
            fail_msg("%s: %d instead of %d", attempts[i].label, r, attempts[i].expected);
    }
}

#ifndef __SANITIZE_ADDRESS__
/* Every number, with arguments that mean nothing: these survive, and no other. */
static void
test_every_number(void **state)
{
    static const long survivors[] = {SYS_read,   SYS_pread64, SYS_write,      SYS_brk,
                                     SYS_munmap, SYS_mremap,  SYS_exit,       SYS_exit_group,
                                     SYS_rt_sigreturn};
    static const long survivors_tls[] = {SYS_getrandom,    SYS_getpid, SYS_clock_gettime,
                                         SYS_gettimeofday, SYS_futex,
#ifdef SYS_time
                                         SYS_time,
#endif
    };

    tls = *state != NULL;
    for (long number = 0; number <= 460; number++) {
        bool allowed = false, survived;

        for (size_t i = 0; i < N(survivors); i++)
            allowed |= survivors[i] == number;
        for (size_t i = 0; tls && i < N(survivors_tls); i++)
            allowed |= survivors_tls[i] == number;
#ifdef __x86_64__
        if (number == 335 || number == 336) /* see test_sandbox.c */
            continue;
#endif
        survived = run(try_number, number) != KILLED;
        if (survived != allowed)
            fail_msg("call %ld %s", number, survived ? "survived" : "was killed");
    }
}
#endif

/* Before the fence: no dump, no core, no new privileges, an end in time. */
static void
test_early(void **state)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct rlimit core = {1, 1}, cpu = {0, 0};

        fence_early();
        if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ||
            getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_max != 0 ||
            getrlimit(RLIMIT_CPU, &cpu) != 0 || cpu.rlim_max == RLIM_INFINITY || alarm(0) == 0)
            _exit(1);
        _exit(0);
    }
    assert_int_equal(confined_wait(pid), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attempts),
        cmocka_unit_test_prestate(test_attempts, &tls),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(test_every_number),
        cmocka_unit_test_prestate(test_every_number, &tls),
#endif
        cmocka_unit_test(test_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
