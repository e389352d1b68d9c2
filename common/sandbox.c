/* Puts up the fences around a role, in an order in which each still can be. */
#include "common/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/sandbox_parts.h"
#include "common/tty_ring.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define NO_ID ((uint32_t)-1)

/* Reasons are fixed texts: the master prints them for bits that a child sent. */
static const struct {
    enum fence fence;
    const char *name, *reason;
} fences[] = {
    {FENCE_ACCOUNT, "account", "not started as root"},
    {FENCE_EMPTY_ROOT, "empty-root", "neither root nor a user namespace to do it in"},
    {FENCE_NAMESPACES, "namespaces", "the kernel or the container forbids new ones"},
    {FENCE_CAPABILITIES, "capabilities",
     "none left, but only root or a user namespace empties the bounding set"},
    {FENCE_NO_NEW_PRIVS, "no-new-privs", "the kernel refuses it"},
    {FENCE_LANDLOCK_FS, "landlock-fs", "no Landlock in this kernel"},
    {FENCE_LANDLOCK_NET, "landlock-net", "needs Landlock of Linux 6.7"},
    {FENCE_LANDLOCK_SCOPE, "landlock-scope", "needs Landlock of Linux 6.12"},
    {FENCE_LIMITS, "limits", "the kernel refuses them"},
    {FENCE_NOT_DUMPABLE, "not-dumpable", "the kernel refuses it"},
    {FENCE_SECCOMP, "seccomp", "the kernel refuses it"},
};

#ifdef __SANITIZE_ADDRESS__
static bool leak_check_is_off;

int __lsan_is_turned_off(void);

/* The leak check at exit clones a tracer, which a confined worker cannot. */
int
__lsan_is_turned_off(void)
{
    return leak_check_is_off;
}
#endif

/* A directory that nobody else can reach and in which nothing can be made: it is
 * unlinked while we hold it. Descriptor, or -errno when no place takes one. */
static int
make_empty_dir(void)
{
    static const char *const places[] = {"/run", "/tmp", "/var/tmp", "/dev/shm"};

    for (size_t i = 0; i < N(places); i++) {
        char path[64];

        snprintf(path, sizeof(path), "%s/ssebench-webui.XXXXXX", places[i]);
        if (mkdtemp(path) == NULL)
            continue;
        int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = rmdir(path) == 0 ? 0 : -errno;
        if (fd >= 0 && r == 0)
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -ENOENT;
}

/* Leave the network, the process table and the mounts of the machine. An inherited
 * listener keeps its own network. A user namespace is only how an ordinary account is
 * allowed to: root does without, since nobody would be mapped in it and no account
 * could be dropped to. */
static bool
leave_namespaces(bool dropping)
{
    int flags = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS | CLONE_NEWPID;

    return unshare(dropping ? flags : flags | CLONE_NEWUSER) == 0;
}

static bool
enter_empty_root(int fd)
{
    return fd >= 0 && fchdir(fd) == 0 && chroot(".") == 0 && chdir("/") == 0;
}

/* Needs CAP_SETPCAP, so it comes before the account changes. True: it is empty. */
static bool
empty_bounding_set(void)
{
    bool empty = true;

    for (unsigned long cap = 0; cap < 64; cap++) {
        int held = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

        if (held < 0) /* past the last one */
            break;
        if (held > 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0)
            empty = false;
    }
    return empty;
}

static int
clear_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3];

    /* A service manager that has left us none need not allow the call that drops them. */
    if (syscall(SYS_capget, &head, held) == 0 && memcmp(held, none, sizeof none) == 0)
        return 0;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 &&
        errno != EINVAL)
        return -errno;
    return syscall(SYS_capset, &head, none) == 0 ? 0 : -errno;
}

/* Become the account for good: real, effective and saved, and look whether it held. */
static int
become(uint32_t uid, uint32_t gid)
{
    if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
        return -errno;
    if (uid != 0 && (setuid(0) == 0 || seteuid(0) == 0))
        return -EPERM;
    return 0;
}

static int
set_limits(const struct rlimit *limits, const int *resources, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rlimit now, limit = limits[i];

        if (getrlimit((__rlimit_resource_t)resources[i], &now) != 0)
            return -errno;
        /* Only a privileged process may raise the hard one; ours are there to lower. */
        if (now.rlim_max < limit.rlim_max)
            limit.rlim_cur = limit.rlim_max = now.rlim_max;
        if (setrlimit((__rlimit_resource_t)resources[i], &limit) != 0)
            return -errno;
    }
    return 0;
}

static int
limit_worker(unsigned max_fds)
{
    static const int resources[] = {
        RLIMIT_CORE,     RLIMIT_NPROC, RLIMIT_MEMLOCK,
        RLIMIT_MSGQUEUE, RLIMIT_FSIZE, RLIMIT_NOFILE,
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory is terabytes of address space */
        RLIMIT_AS,
#endif
    };
    const struct rlimit limits[] = {
        {0, 0},
        {0, 0},
        {0, 0},
        {0, 0},
        {TTY_RING_SIZE, TTY_RING_SIZE}, /* the one thing it writes; all else is read-only */
        {max_fds, max_fds},
        {LIMIT_WORKER_MEMORY, LIMIT_WORKER_MEMORY},
    };

    /* With stderr in a file the first line there would otherwise end us. */
    signal(SIGXFSZ, SIG_IGN);
    return set_limits(limits, resources, N(resources));
}

/* Fences of both roles that need no more than a word to the kernel. */
static int
set_flags(int death_signal, uint32_t *fences_up)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -errno;
    *fences_up |= FENCE_NO_NEW_PRIVS;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return -errno;
    *fences_up |= FENCE_NOT_DUMPABLE;
    /* The kernel forgets it when the account or the capabilities change. */
    if (prctl(PR_SET_PDEATHSIG, (unsigned long)death_signal, 0, 0, 0) != 0)
        return -errno;
    return 0;
}

/* Account, root, namespaces, capabilities: what still needs rights. */
static int
leave_machine(const struct sandbox_worker *s, uint32_t *up)
{
    bool dropping = s->drop_uid != NO_ID, empty;
    int root_fd = make_empty_dir(); /* in a new user namespace we could make nothing */
    int r = 0;

    if (leave_namespaces(dropping))
        *up |= FENCE_NAMESPACES;
    if (enter_empty_root(root_fd))
        *up |= FENCE_EMPTY_ROOT;
    if (root_fd >= 0)
        close(root_fd);
    empty = empty_bounding_set();
    if (dropping) {
        r = setgroups(0, NULL) == 0 ? become(s->drop_uid, s->drop_gid) : -errno;
        if (r == 0)
            *up |= FENCE_ACCOUNT;
    }
    if (r == 0)
        r = clear_capabilities();
    if (r == 0 && empty)
        *up |= FENCE_CAPABILITIES;
    return r;
}

int
sandbox_worker_enter(const struct sandbox_worker *s, uint32_t *ret_fences)
{
    uint32_t up = 0;
    int death_signal = 0, r;

    tzset(); /* the first gmtime_r() reads /etc/localtime, however little it needs it */
    if (prctl(PR_GET_PDEATHSIG, &death_signal, 0, 0, 0) != 0)
        return -errno;
    r = leave_machine(s, &up);
    if (r == 0)
        r = set_flags(death_signal, &up);
    if (r == 0)
        up |= sandbox_landlock_enter();
    if (r == 0)
        r = limit_worker(s->max_fds);
    if (r == 0) {
        up |= FENCE_LIMITS;
        r = sandbox_seccomp_worker();
    }
    if (r != 0)
        return r;
#ifdef __SANITIZE_ADDRESS__
    leak_check_is_off = true;
#endif
    *ret_fences = up | FENCE_SECCOMP;
    return 0;
}

/* The account's own groups stay with it: membership of "docker" is why it may be named.
 */
static int
take_groups(uint32_t uid, uint32_t gid)
{
    const struct passwd *account = getpwuid(uid);

    if (account == NULL)
        return setgroups(0, NULL) == 0 ? 0 : -errno;
    return initgroups(account->pw_name, gid) == 0 ? 0 : -errno;
}

static int
drop_broker(uint32_t uid, uint32_t gid, uint32_t *up)
{
    bool empty;
    int r;

    if (uid == NO_ID) /* root that stays root needs its rights for what it starts */
        return geteuid() == 0 ? 0 : clear_capabilities();
    empty = empty_bounding_set();
    r = take_groups(uid, gid);
    if (r == 0)
        r = become(uid, gid);
    if (r == 0)
        r = clear_capabilities();
    if (r != 0)
        return r;
    *up |= FENCE_ACCOUNT | (empty ? FENCE_CAPABILITIES : 0);
    return 0;
}

/* no_new_privs passes to every child, so a `sudo` or rootless podman (newuidmap) behind
 * SSEBENCH_CLI gets no rights. Decided so: without it an ordinary account cannot load a
 * filter, and any set-user-id program of the machine would be one exec away from
 * whoever takes the broker over. The backends of the contract need none of them:
 * docker's command line talks to a socket, Kubernetes is HTTP. */
int
sandbox_broker_enter(uint32_t drop_uid, uint32_t drop_gid, uint32_t *ret_fences)
{
    static const int resources[] = {RLIMIT_CORE};
    static const struct rlimit limits[] = {{0, 0}};
    uint32_t up = 0;
    int death_signal = 0, r;

    if (prctl(PR_GET_PDEATHSIG, &death_signal, 0, 0, 0) != 0)
        return -errno;
    r = drop_broker(drop_uid, drop_gid, &up);
    if (r == 0)
        r = set_flags(death_signal, &up);
    if (r == 0)
        r = set_limits(limits, resources, N(resources));
    if (r == 0) {
        up |= FENCE_LIMITS;
        r = sandbox_seccomp_broker();
    }
    if (r != 0)
        return r;
    *ret_fences = up | FENCE_SECCOMP;
    return 0;
}

const char *
sandbox_fence_name(uint32_t fence)
{
    for (size_t i = 0; i < N(fences); i++)
        if (fences[i].fence == fence)
            return fences[i].name;
    return NULL;
}

const char *
sandbox_fence_reason(uint32_t fence)
{
    for (size_t i = 0; i < N(fences); i++)
        if (fences[i].fence == fence)
            return fences[i].reason;
    return NULL;
}
