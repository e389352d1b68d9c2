/* Starting a role program with exactly the descriptors, environment and life line it
 * gets. */
#ifndef MASTER_SPAWN_H
#define MASTER_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#include "common/handoff.h"

#define SPAWN_FDS (HANDOFF_LISTENER + HANDOFF_LISTENERS)

/* Descriptors that children are to find at fixed low numbers are kept from here up in
 * the master, so that moving one into place never overwrites another. */
#define SPAWN_FD_FLOOR 64

struct spawn {
    const char *program; /* path */
    char *const *argv;   /* ends with NULL */
    char *const *env;    /* ends with NULL */
    int fds[SPAWN_FDS];  /* fds[i] becomes descriptor i; -1: closed there */
    uint32_t
        max_fds; /* RLIMIT_NOFILE to ask for (as far as the hard one goes); 0: keep */
};

/* Start it in its own session, with a death signal tied to this process and nothing
 * open but `fds`. 0; or -errno, also of a failed exec. */
int spawn_start(const struct spawn *s, pid_t *ret_pid);

/* The same descriptor at SPAWN_FD_FLOOR or above, CLOEXEC; `fd` is closed. -errno on
 * failure
 * (`fd` closed too). */
int spawn_raise_fd(int fd);

#endif
