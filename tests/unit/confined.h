/* Children that enter the worker's sandbox and attempt one thing in it; for the tests
 * of common/sandbox.h. */
#ifndef TESTS_CONFINED_H
#define TESTS_CONFINED_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define NO_ID ((uint32_t)-1)
#define NOBODY 65534u

/* Verdicts beside 0 and errno. */
#define KILLED (-1)  /* by SIGSYS */
#define CRASHED (-2) /* by another signal: the filter had let it pass */
#define ENTER_FAILED 254

/* Defines try_<name>(): make one call, report 0 or errno. */
#define DEED(name, call)                                                               \
    static int try_##name(long arg)                                                    \
    {                                                                                  \
        return (call) < 0 ? errno : 0;                                                 \
    }

/* Who enters the sandbox: root that becomes nobody in it, or an account without rights
 * (when the test is not root, it is itself that account in both cases). */
enum starter { AS_ROOT, AS_ACCOUNT, STARTERS };
extern const char *const starter_names[STARTERS];

/* What master and broker would have opened for the worker. */
struct confined_fds {
    int listener;   /* TCP, with one connection waiting */
    int connection; /* TCP, connected to it */
    int channel[2]; /* SEQPACKET */
    int memfd;      /* sealed, 4096 bytes */
    int file;       /* on disk, read-write */
    int epoll;
};
extern struct confined_fds have; /* in the child */

bool is_root(void);

/* Open what a worker has, become the starter, enter. For a forked child: its only other
 * way out is _exit(ENTER_FAILED). `say_fd` becomes stderr. */
void confined_enter(enum starter starter, int say_fd, uint32_t *ret_fences);

/* Fork, enter, attempt: what the attempt returned, KILLED or CRASHED. */
int confined_run(enum starter starter, int (*attempt)(long), long arg, int say_fd);

/* Wait for a child: its exit status, KILLED or CRASHED. Fails the test on ENTER_FAILED.
 */
int confined_wait(pid_t pid);

/* /dev/null, opened once. */
int null_fd(void);

/* Call number `number` with six arguments of -1. */
int try_number(long number);

/* Call number `number` of the i386 table. */
int try_i386(long number);

#endif
