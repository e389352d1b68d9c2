/* The parts of sandbox.c that fill a file of their own. For sandbox.c only. */
#ifndef COMMON_SANDBOX_PARTS_H
#define COMMON_SANDBOX_PARTS_H

#include <stdint.h>

/* Load the worker's allow-list: from here on, a call outside of it is logged and ends the
 * process by SIGSYS. Needs no_new_privs. 0 or -errno. */
int
sandbox_seccomp_worker(void);

/* Load the broker's deny-list: its calls fail with EPERM or ENOSYS, here and in every child.
 * Needs no_new_privs. 0 or -errno. */
int
sandbox_seccomp_broker(void);

/* Forbid all that the running kernel's Landlock can forbid, without any exception. Needs
 * no_new_privs. Returns the FENCE_LANDLOCK_* bits that are up; 0 without Landlock. */
uint32_t
sandbox_landlock_enter(void);

#endif
