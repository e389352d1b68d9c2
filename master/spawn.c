/* Starting a role program with exactly the descriptors, environment and life line it
 * gets. */
#include "master/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int
spawn_raise_fd(int fd)
{
    int raised = fcntl(fd, F_DUPFD_CLOEXEC, SPAWN_FD_FLOOR);
    int error = errno;

    close(fd);
    if (error == EINVAL) /* the floor lies above the limit of descriptors */
        error = EMFILE;
    return raised < 0 ? -error : raised;
}

/* Before Linux 5.9 there is no close_range. Everything of ours is CLOEXEC anyway; this
 * is for what the program that started us left open. */
static void
close_from(unsigned first)
{
    if (close_range(first, ~0u, 0) == 0)
        return;
    for (int fd = (int)first; fd < 4096; fd++)
        close(fd);
}

static void
raise_fd_limit(uint32_t wanted)
{
    struct rlimit limit;

    if (wanted == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Runs in the child on the parent's memory, which waits: system calls only. The new
 * session keeps Ctrl-C at a terminal for the master, and takes that terminal out of
 * reach. */
static int
become_child(const struct spawn *s, pid_t parent)
{
    sigset_t none;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return errno;
    if (getppid() != parent) /* it died before the line above: no signal will come */
        _exit(1);
    setsid();
    for (int i = 0; i < (int)SPAWN_FDS; i++)
        if (s->fds[i] < 0)
            close(i);
        else if (dup2(s->fds[i], i) < 0)
            return errno;
    close_from(SPAWN_FDS);
    raise_fd_limit(s->max_fds);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(s->program, s->argv, s->env);
    return errno;
}

/* vfork: no page table is copied, and a failed exec is known at once through shared
 * memory. */
int
spawn_start(const struct spawn *s, pid_t *ret_pid)
{
    volatile int error = 0;
    pid_t parent = getpid();
    sigset_t all, before;
    pid_t pid;

    sigfillset(&all); /* no handler of ours may run in the child on our memory */
    sigprocmask(SIG_SETMASK, &all, &before);
    pid = vfork();
    if (pid == 0) {
        error = become_child(s, parent);
        _exit(127);
    }
    if (pid < 0)
        error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        *ret_pid = pid; /* a failed exec's child is reaped by the SIGCHLD handler */
    return -error;
}
