/* The key maker's confinement; two steps, because the proxy is connected to in between. */
#include "broker/keymaker/fence.h"

#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/limits.h"

static void
limit(int what, rlim_t value)
{
    const struct rlimit l = {value, value};

    setrlimit((__rlimit_resource_t)what, &l);
}

void
fence_early(void)
{
    signal(SIGPIPE, SIG_IGN); /* who hangs up is an error to tell of, not the end */
    prctl(PR_SET_DUMPABLE, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        _exit(3);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, 5);
    /* The name server, the proxy, the resolver's files: a handful. */
    limit(RLIMIT_NOFILE, 32);
    /* It must not outlive its order, whatever the proxy does: SIGALRM ends it. */
    alarm(LIMIT_KEYMAKER_MS / 1000);
}

void
fence_up(bool tls)
{
    static const int allowed[] = {
        SCMP_SYS(read), SCMP_SYS(pread64),  SCMP_SYS(write),      SCMP_SYS(brk),
        SCMP_SYS(exit), SCMP_SYS(munmap),   SCMP_SYS(exit_group), SCMP_SYS(mremap),
        SCMP_SYS(rt_sigreturn),
#ifdef __SANITIZE_ADDRESS__ /* its allocator, locks and reports */
        SCMP_SYS(mprotect),     SCMP_SYS(madvise), SCMP_SYS(futex),          SCMP_SYS(getpid),
        SCMP_SYS(rt_sigaction), SCMP_SYS(gettid),  SCMP_SYS(rt_sigprocmask), SCMP_SYS(tgkill),
        SCMP_SYS(sigaltstack),  SCMP_SYS(sched_yield),
#endif
    };
    /* pthread_once wakes whoever waits; the clocks where the vDSO has none. */
    static const int allowed_tls[] = {SCMP_SYS(getrandom), SCMP_SYS(getpid),
                                      SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),
                                      SCMP_SYS(time), SCMP_SYS(futex)};
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int r = ctx == NULL ? -1 : 0;

    for (size_t i = 0; r == 0 && i < sizeof allowed / sizeof allowed[0]; i++)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
    for (size_t i = 0; r == 0 && tls && i < sizeof allowed_tls / sizeof allowed_tls[0]; i++)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed_tls[i], 0);
    if (r == 0) /* memory, but none to run */
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                             SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (r == 0)
        r = seccomp_load(ctx);
    if (r != 0)
        _exit(3);
    /* The filter's own memory stays: freeing it is not worth a call. */
}
