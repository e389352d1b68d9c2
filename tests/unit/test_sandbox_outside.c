/* What a confined worker looks like from outside, and Landlock without the filter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sandbox.h"
#include "common/limits.h"
#include "common/sandbox_parts.h"
#include "common/tty_ring.h"
#include "tests/unit/confined.h"

/* A field of /proc/<pid>/status, to its end of line. */
static void
read_status(pid_t pid, const char *field, char *out, size_t size)
{
    char path[64], line[256];

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    out[0] = '\0';
    while (fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, field, strlen(field)) == 0 && line[strlen(field)] == ':') {
            char *value =
                line + strlen(field) + 1 + strspn(line + strlen(field) + 1, " \t");

            snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
        }
    fclose(f);
}

static void
assert_status(pid_t pid, const char *field, const char *expected)
{
    char value[256];

    read_status(pid, field, value, sizeof(value));
    if (strcmp(value, expected) != 0)
        fail_msg("%s is \"%s\" instead of \"%s\"", field, value, expected);
}

/* The hard limit of a row in /proc/<pid>/limits. */
static void
assert_limit(pid_t pid, const char *name, unsigned long expected)
{
    char path[64], line[256];
    unsigned long soft, hard = 4711;

    snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0 &&
            sscanf(line + strlen(name), "%lu %lu", &soft, &hard) != 2)
            fail_msg("%s", line);
    fclose(f);
    if (hard != expected)
        fail_msg("%s: %lu", name, hard);
}

static void
read_link(pid_t pid, const char *name, char *out, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    ssize_t n = readlink(path, out, size - 1);
    assert_true(n > 0);
    out[n] = '\0';
}

/* A confined child that waits until `*ret_stop` is closed; its fences. */
static pid_t
start_confined(enum starter starter, uint32_t *ret_fences, int *ret_stop)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        uint32_t fences;
        char byte;

        close(ends[0]);
        confined_enter(starter, null_fd(), &fences);
        send(ends[1], &fences, sizeof(fences), 0);
        _exit(recv(ends[1], &byte, 1, 0) == 0 ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(recv(ends[0], ret_fences, sizeof(*ret_fences), 0),
                     sizeof(*ret_fences));
    *ret_stop = ends[0];
    return pid;
}

/* What the kernel says about a confined process from outside, and that the fences
 * reported are those that stand. */
static void
check_from_outside(enum starter starter, pid_t pid, uint32_t up)
{
    static const char *const spaces[] = {"ns/net", "ns/ipc", "ns/uts", "ns/mnt"};
    char value[256], ours[256];

    assert_int_equal(
        up & (FENCE_NO_NEW_PRIVS | FENCE_LIMITS | FENCE_NOT_DUMPABLE | FENCE_SECCOMP),
        FENCE_NO_NEW_PRIVS | FENCE_LIMITS | FENCE_NOT_DUMPABLE | FENCE_SECCOMP);
    assert_status(pid, "Seccomp", "2");
    assert_status(pid, "NoNewPrivs", "1");
    assert_status(pid, "CapEff", "0000000000000000");
    assert_status(pid, "CapPrm", "0000000000000000");
    assert_status(pid, "CapInh", "0000000000000000");
    assert_status(pid, "CapAmb", "0000000000000000");
    read_status(pid, "CapBnd", value, sizeof(value));
    assert_int_equal(strcmp(value, "0000000000000000") == 0,
                     (up & FENCE_CAPABILITIES) != 0);
    assert_int_equal((up & FENCE_ACCOUNT) != 0, is_root() && starter == AS_ROOT);
    assert_limit(pid, "Max core file size", 0);
    assert_limit(pid, "Max processes", 0);
    assert_limit(pid, "Max locked memory", 0);
    assert_limit(pid, "Max msgqueue size", 0);
    assert_limit(pid, "Max file size", TTY_RING_SIZE);
    assert_limit(pid, "Max open files", 64);
    if (!is_root()) /* the rest of /proc of a process that is not dumpable is root's */
        return;
    assert_status(pid, "Uid", "65534\t65534\t65534\t65534");
    assert_status(pid, "Gid", "65534\t65534\t65534\t65534");
    assert_status(pid, "Groups", "");
    for (size_t i = 0; i < N(spaces); i++) {
        read_link(pid, spaces[i], value, sizeof(value));
        read_link(getpid(), spaces[i], ours, sizeof(ours));
        assert_int_equal(strcmp(value, ours) != 0, (up & FENCE_NAMESPACES) != 0);
    }
    read_link(pid, "root", value, sizeof(value));
    assert_int_equal(strstr(value, "(deleted)") != NULL, (up & FENCE_EMPTY_ROOT) != 0);
}

static void
test_seen_from_outside(void **state)
{
    for (int who = 0; who < STARTERS; who++) {
        uint32_t up;
        int stop, status;
        pid_t pid = start_confined(who, &up, &stop);

        check_from_outside(who, pid, up);
        close(stop);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

/* Confined, and blind to everything but signals. */
_Noreturn static void
wait_for_death(enum starter starter, int ready_fd)
{
    uint32_t up;

    confined_enter(starter, null_fd(), &up);
    if (write(ready_fd, "x", 1) == 1)
        poll(NULL, 0, 30000); /* longer than the test waits, yet no leftover */
    _exit(1);
}

/* The signal at the parent's death outlives the change of the account: a confined
 * grandchild goes when its parent is killed. */
static void
test_dies_with_parent(void **state)
{
    for (int who = 0; who < STARTERS; who++) {
        int ready[2], alive[2];
        char byte;

        assert_int_equal(pipe(ready), 0);
        assert_int_equal(pipe(alive),
                         0); /* end of file: nobody of the family is left */
        pid_t pid = fork();
        if (pid == 0) {
            if (fork() == 0)
                wait_for_death(who, ready[1]);
            raise(read(ready[0], &byte, 1) == 1 ? SIGKILL : SIGABRT);
        }
        close(ready[1]);
        close(alive[1]);
        assert_int_equal(confined_wait(pid), CRASHED);
        struct pollfd end = {.fd = alive[0], .events = POLLIN};
        assert_int_equal(poll(&end, 1, 10000), 1);
        assert_int_equal(read(alive[0], &byte, 1), 0);
        close(ready[0]);
        close(alive[0]);
    }
}

/* Behind the filter Landlock has no work; here it stands alone. */
static int
landlocked_verdicts(uint32_t expected)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return 2;
    uint32_t up = sandbox_landlock_enter();
    if (up != expected)
        return 7;
    if ((up & FENCE_LANDLOCK_FS) && (open("/etc/passwd", O_RDONLY) >= 0 ||
                                     errno != EACCES || mkdir("/tmp/x", 0700) == 0))
        return 3;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if ((up & FENCE_LANDLOCK_NET) &&
        (bind(s, (struct sockaddr *)&in, sizeof(in)) == 0 || errno != EACCES))
        return 4;
    if ((up & FENCE_LANDLOCK_SCOPE) && (kill(getppid(), 0) == 0 || errno != EPERM))
        return 5;
    return 0;
}

static void
test_landlock(void **state)
{
    long abi =
        syscall(SYS_landlock_create_ruleset, NULL, 0, 1); /* asks for the version */
    uint32_t expected = (abi >= 1 ? FENCE_LANDLOCK_FS : 0) |
                        (abi >= 4 ? FENCE_LANDLOCK_NET : 0) |
                        (abi >= 6 ? FENCE_LANDLOCK_SCOPE : 0);
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(landlocked_verdicts(expected));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void
test_texts(void **state)
{
    const char *name, *reason;
    bool conditional;
    unsigned n = 0;

    for (; (name = sandbox_worker_rule(n, &conditional, &reason)) != NULL; n++)
        if (name[0] == '\0' || reason == NULL || strlen(reason) < 5)
            fail_msg("row %u, %s", n, name);
    assert_true(n > 30);
    for (unsigned bit = 0; bit < 11; bit++) {
        assert_non_null(sandbox_fence_name(1u << bit));
        assert_non_null(sandbox_fence_reason(1u << bit));
    }
    assert_null(sandbox_fence_name(1u << 11));
    assert_null(sandbox_fence_reason(0));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seen_from_outside),
        cmocka_unit_test(test_dies_with_parent),
        cmocka_unit_test(test_landlock),
        cmocka_unit_test(test_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
