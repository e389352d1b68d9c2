/*
 * Locking a role in: what it can do afterwards is what is listed here. Fails closed; the
 * seccomp filter is never optional. What the running kernel lacks is reported as a missing
 * fence, by name, not passed over.
 */
#ifndef COMMON_SANDBOX_H
#define COMMON_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* Fences in the order they are put up. Bits of CONTROL_FENCES. */
enum fence {
    FENCE_ACCOUNT = 1u << 0,      /* started as root: a dedicated account, no group left */
    FENCE_EMPTY_ROOT = 1u << 1,   /* started as root: chroot into an empty directory */
    FENCE_NAMESPACES = 1u << 2,   /* user, network, IPC, UTS, mount, PID */
    FENCE_CAPABILITIES = 1u << 3, /* none left, bounding set empty */
    FENCE_NO_NEW_PRIVS = 1u << 4,
    FENCE_LANDLOCK_FS = 1u << 5,  /* no rule: no path can be opened */
    FENCE_LANDLOCK_NET = 1u << 6, /* no bind, no connect (ABI 4) */
    FENCE_LANDLOCK_SCOPE = 1u << 7, /* no signal, no abstract socket outside (ABI 6) */
    FENCE_LIMITS = 1u << 8,       /* rlimits */
    FENCE_NOT_DUMPABLE = 1u << 9,
    FENCE_SECCOMP = 1u << 10,
};

struct sandbox_worker {
    uint32_t drop_uid, drop_gid; /* (uint32_t)-1: not started as root */
    unsigned max_fds;            /* RLIMIT_NOFILE */
};

/* Confine a worker for good: after this, no path, no new socket, no program, no process.
 * Call when everything that opens files has been done (libraries loaded, loop made, log
 * connected). `ret_fences`: what is up. 0, or -errno when a fence that must hold did not. */
int
sandbox_worker_enter(const struct sandbox_worker *s, uint32_t *ret_fences);

/* Confine the broker: no new privileges, not dumpable, no core, and a deny-list for what it
 * never needs (ptrace, mount, bpf, module, keyring, io_uring, ...). 0 or -errno. */
int
sandbox_broker_enter(uint32_t drop_uid, uint32_t drop_gid, uint32_t *ret_fences);

/* Name of one fence bit, for the line at start; NULL for an unknown one. */
const char *
sandbox_fence_name(uint32_t fence);

/* Why a fence is not up on this kernel, for the line at start ("no user namespaces"). */
const char *
sandbox_fence_reason(uint32_t fence);

/* One row of the worker's allow-list, for the build's tests: the call's name, and whether it
 * is allowed only for certain arguments. Index 0..; NULL past the end. */
const char *
sandbox_worker_rule(unsigned index, bool *ret_conditional, const char **ret_reason);

#endif
