/* Runs a program where it may make no namespaces, as in most containers, or also no call but
 * those that are named, as under a unit of the service manager:
 *     narrow - PROGRAM ...        everything but namespaces
 *     narrow CALLS PROGRAM ...    calls named in the file CALLS, one a line; others are EPERM,
 *                                 and namespaces */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NEW (CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS | \
             CLONE_NEWPID | CLONE_NEWCGROUP)

/* By each flag: a filter cannot ask for "any of them". */
static int
refuse_namespaces(scmp_filter_ctx filter, int call)
{
    int r = 0;

    for (unsigned bit = 0; bit < 32 && r == 0; bit++)
        if (NEW & (1u << bit))
            r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 1,
                                 SCMP_A0(SCMP_CMP_MASKED_EQ, 1u << bit, 1u << bit));
    return r;
}

static int
refuse_all_but_namespaces(scmp_filter_ctx filter)
{
    int r = refuse_namespaces(filter, SCMP_SYS(unshare));

    if (r == 0)
        r = refuse_namespaces(filter, SCMP_SYS(clone));
    if (r == 0)
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(setns), 0);
    if (r == 0) /* its flags are out of a filter's sight; the libc goes on with clone() */
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    return r;
}

static int
allow_listed(scmp_filter_ctx filter, FILE *calls)
{
    char name[64];
    int r = 0;

    while (r == 0 && fscanf(calls, "%63s", name) == 1) {
        int number = seccomp_syscall_resolve_name(name);

        if (number == __NR_SCMP_ERROR || strcmp(name, "setns") == 0 ||
            strcmp(name, "unshare") == 0)
            continue; /* of another architecture or time; refused with the namespaces */
        if (strcmp(name, "clone") == 0)
            r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1,
                                 SCMP_A0(SCMP_CMP_MASKED_EQ, NEW, 0));
        else if (strcmp(name, "clone3") == 0)
            r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), number, 0);
        else
            r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
    }
    return r;
}

int
main(int argc, char **argv)
{
    FILE *calls = argc > 2 && strcmp(argv[1], "-") != 0 ? fopen(argv[1], "re") : NULL;
    bool listed = argc > 2 && strcmp(argv[1], "-") != 0;
    scmp_filter_ctx filter = seccomp_init(listed ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW);
    int r = argc > 2 && (!listed || calls != NULL) ? 0 : -EINVAL;

    if (r == 0)
        r = listed ? allow_listed(filter, calls) : refuse_all_but_namespaces(filter);
    if (r == 0)
        r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (r == 0)
        r = seccomp_load(filter);
    if (r == 0)
        execv(argv[2], argv + 2);
    fprintf(stderr, "narrow: %s\n", strerror(r < 0 ? -r : errno));
    return 126;
}
