/* The broker's fences against the running kernel: what it lost, and what must go on
 * working. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sandbox.h"
#include "tests/unit/confined.h"

DEED(broker_socket, socket(AF_INET, SOCK_STREAM, 0))
DEED(mount, mount("none", "/tmp", "tmpfs", 0, NULL))
#ifndef __SANITIZE_ADDRESS__
DEED(broker_ptrace, (int)syscall(SYS_ptrace, PTRACE_ATTACH, -1, 0, 0))
#endif
DEED(broker_open, open("/etc/passwd", O_RDONLY))

/* A program started by the broker works as always, and has the filter too. */
static int
try_run(long arg)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        execl("/bin/sh", "sh", "-c",
              "ls / >/dev/null && grep -q 'NoNewPrivs:.1' /proc/self/status && "
              "grep -q 'Seccomp:.2' /proc/self/status && echo x | cat >/dev/null",
              (char *)NULL);
        _exit(126);
    }
    if (waitpid(pid, &status, 0) != pid)
        return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}

static int
try_dumpable(long arg)
{
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

static int
try_core(long arg)
{
    struct rlimit core;

    return getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0 ? 0 : 1;
}

/* As nobody, and no way back. */
static int
try_account(long arg)
{
    uid_t r, e, s;

    if (getresuid(&r, &e, &s) != 0 || (is_root() && arg))
        return 1;
    return setuid(0) != 0 && r == e && e == s ? 0 : 2;
}

static const struct {
    const char *label;
    int (*attempt)(long);
    long arg;
    int expected;
} broker_attempts[] = {
    {"mount", try_mount, 0, EPERM},
#ifndef __SANITIZE_ADDRESS__
    {"ptrace", try_broker_ptrace, 0, EPERM},
#endif
    {"umount", try_number, SYS_umount2, EPERM},
    {"pivot_root", try_number, SYS_pivot_root, EPERM},
    {"move_mount", try_number, SYS_move_mount, EPERM},
    {"open_tree", try_number, SYS_open_tree, EPERM},
    {"fsopen", try_number, SYS_fsopen, EPERM},
    {"fsmount", try_number, SYS_fsmount, EPERM},
    {"mount_setattr", try_number, SYS_mount_setattr, EPERM},
    {"open_by_handle_at", try_number, SYS_open_by_handle_at, EPERM},
    {"process_vm_readv", try_number, SYS_process_vm_readv, EPERM},
    {"process_vm_writev", try_number, SYS_process_vm_writev, EPERM},
    {"pidfd_getfd", try_number, SYS_pidfd_getfd, EPERM},
    {"kcmp", try_number, SYS_kcmp, EPERM},
    {"init_module", try_number, SYS_init_module, EPERM},
    {"finit_module", try_number, SYS_finit_module, EPERM},
    {"delete_module", try_number, SYS_delete_module, EPERM},
    {"kexec_load", try_number, SYS_kexec_load, EPERM},
    {"bpf", try_number, SYS_bpf, EPERM},
    {"perf_event_open", try_number, SYS_perf_event_open, EPERM},
    {"userfaultfd", try_number, SYS_userfaultfd, EPERM},
    {"add_key", try_number, SYS_add_key, EPERM},
    {"request_key", try_number, SYS_request_key, EPERM},
    {"keyctl", try_number, SYS_keyctl, EPERM},
    {"io_uring_setup", try_number, SYS_io_uring_setup, ENOSYS},
    {"io_uring_enter", try_number, SYS_io_uring_enter, ENOSYS},
    {"io_uring_register", try_number, SYS_io_uring_register, ENOSYS},
    {"fanotify_init", try_number, SYS_fanotify_init, EPERM},
    {"reboot", try_number, SYS_reboot, EPERM},
    {"swapon", try_number, SYS_swapon, EPERM},
    {"acct", try_number, SYS_acct, EPERM},
    {"quotactl", try_number, SYS_quotactl, EPERM},
    {"syslog", try_number, SYS_syslog, EPERM},
    {"clock_settime", try_number, SYS_clock_settime, EPERM},
    {"i386 getpid", try_i386, 20, KILLED},
    {"not dumpable", try_dumpable, 0, 0},
    {"no core", try_core, 0, 0},
    {"open a file", try_broker_open, 0, 0},
    {"socket", try_broker_socket, 0, 0},
    {"run a program", try_run, 0, 0},
    {"account", try_account, 1, 0},
};

static int
run_as_broker(int (*attempt)(long), long arg, bool drop)
{
    uint32_t id = drop ? NOBODY : NO_ID, up = 0;
    uint32_t needed = FENCE_NO_NEW_PRIVS | FENCE_LIMITS | FENCE_NOT_DUMPABLE |
                      FENCE_SECCOMP | (drop ? FENCE_ACCOUNT : 0);
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGSYS, SIG_DFL); /* the test library catches it */
        if (sandbox_broker_enter(id, id, &up) != 0 || (up & needed) != needed)
            _exit(ENTER_FAILED);
        _exit(attempt(arg));
    }
    return confined_wait(pid);
}

static void
test_broker(void **state)
{
    for (int drop = 0; drop <= (is_root() ? 1 : 0); drop++)
        for (size_t i = 0; i < N(broker_attempts); i++) {
            if (broker_attempts[i].attempt == try_account && is_root() && !drop)
                continue; /* root that was told to stay root is root */
            int verdict =
                run_as_broker(broker_attempts[i].attempt, broker_attempts[i].arg, drop);

            if (verdict != broker_attempts[i].expected)
                fail_msg("%s%s: %d instead of %d", broker_attempts[i].label,
                         drop ? ", dropped" : "", verdict, broker_attempts[i].expected);
        }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
