/*
 * The export's confinement, in the order in which it can be put up: no new privileges, no core,
 * bounded memory; Landlock with two rules; then an allow-list of system calls, which has none to
 * make a socket, a process or a program. The filter must hold. Landlock holds where the kernel
 * has it; without it the filter still leaves files as the only thing to reach.
 */
#include "worker/export/fence.h"

#include <errno.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/limits.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* Of Landlock's later ABIs, where the headers are older: the same on every architecture. */
#define FS_TRUNCATE (UINT64_C(1) << 14)

/* As the newest kernel takes it; zero bytes past what an older one knows are fine with it. */
struct ruleset {
    uint64_t fs, net, scoped;
};

static const uint64_t may_read = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
/* Replacing a file by a rename removes one; there is no link, device or socket to be made. */
static const uint64_t may_write = LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                  LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR |
                                  LANDLOCK_ACCESS_FS_REMOVE_FILE | FS_TRUNCATE;

#ifdef __SANITIZE_ADDRESS__
int __lsan_is_turned_off(void);

/* The leak check at exit clones a tracer, which is forbidden by then. */
int
__lsan_is_turned_off(void)
{
    return 1;
}
#endif

static int
create(const struct ruleset *r)
{
    return (int)syscall(SYS_landlock_create_ruleset, r, sizeof *r, 0);
}

/* All rights of one field that this kernel can take away; asked, not derived from a version, so
 * that later ones are forbidden too. */
static void
find_rights(struct ruleset *all, size_t field)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        struct ruleset one = {0};
        int fd;

        *(uint64_t *)((char *)&one + field) = UINT64_C(1) << bit;
        fd = create(&one);
        if (fd < 0)
            return;
        close(fd);
        *(uint64_t *)((char *)all + field) |= UINT64_C(1) << bit;
    }
}

static int
allow(int ruleset_fd, int dir_fd, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = dir_fd};

    return syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0
               ? 0
               : -errno;
}

/* 1; 0 without Landlock; -errno when it is there and refuses. */
static int
limit_paths(int results_fd, int out_fd)
{
    struct ruleset all = {0};
    int fd, error;

    find_rights(&all, offsetof(struct ruleset, fs));
    find_rights(&all, offsetof(struct ruleset, net));
    find_rights(&all, offsetof(struct ruleset, scoped));
    if (all.fs == 0)
        return 0;
    fd = create(&all);
    if (fd < 0)
        return -errno;
    error = allow(fd, results_fd, may_read & all.fs);
    if (error == 0)
        error = allow(fd, out_fd, may_write & all.fs);
    if (error == 0 && syscall(SYS_landlock_restrict_self, fd, 0) != 0)
        error = -errno;
    close(fd);
    return error == 0 ? 1 : error;
}

static const int allowed[] = {
    /* what stands open */
    SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(close),
    SCMP_SYS(lseek), SCMP_SYS(fcntl), SCMP_SYS(fstat), SCMP_SYS(getdents64),
    /* paths: Landlock says which */
    SCMP_SYS(openat), SCMP_SYS(openat2), SCMP_SYS(newfstatat), SCMP_SYS(statx),
    SCMP_SYS(mkdirat), SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(unlinkat),
    /* memory, time, the end; sysinfo: qsort() of older libcs asks how much memory there is */
    SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex),
    SCMP_SYS(sysinfo), SCMP_SYS(getrandom), SCMP_SYS(clock_gettime), SCMP_SYS(restart_syscall),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(exit), SCMP_SYS(exit_group),
#ifdef __SANITIZE_ADDRESS__
    SCMP_SYS(sigaltstack), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(gettid),
    SCMP_SYS(getpid), SCMP_SYS(sched_yield), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
#endif
};

static int
limit_calls(void)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int r = ctx == NULL ? -ENOMEM : 0;

    for (size_t i = 0; r == 0 && i < N(allowed); i++)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
    if (r == 0) /* memory, but none to run */
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                             SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                             SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (r == 0) /* the C library asks whether it writes to a terminal */
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOTTY), SCMP_SYS(ioctl), 0);
    if (r == 0)
        r = seccomp_load(ctx);
    if (ctx != NULL)
        seccomp_release(ctx);
    return r;
}

static int
limit(int what, rlim_t value)
{
    struct rlimit now;

    if (getrlimit((__rlimit_resource_t)what, &now) != 0)
        return -errno;
    if (now.rlim_max < value)
        value = now.rlim_max;
    now = (struct rlimit){value, value};
    return setrlimit((__rlimit_resource_t)what, &now) == 0 ? 0 : -errno;
}

int
fence_up(int results_fd, int out_fd, bool *ret_landlock)
{
    int landlock, r;

    if (prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -errno;
    r = limit(RLIMIT_CORE, 0);
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory is terabytes of address space */
    if (r == 0)
        r = limit(RLIMIT_AS, LIMIT_WORKER_MEMORY);
#endif
    landlock = r == 0 ? limit_paths(results_fd, out_fd) : r;
    if (landlock < 0)
        return landlock;
    r = limit_calls();
    if (r == 0)
        *ret_landlock = landlock == 1;
    return r;
}
