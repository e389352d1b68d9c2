/*
 * The one way in which a launch's command is started.
 * Distrusts: the command, which is left nothing of ours.
 */
#include "broker/keeper_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/keeper.h"
#include "broker/launch_record.h"

/* In the child: its output is the FIFO, which it holds open both ways. */
static void
become_command(char **words, int error_fd)
{
    static const int signals[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP};
    int null_fd = open("/dev/null", O_RDONLY), out, error;
    sigset_t none;

    setsid();
    out = openat(KEEPER_DIR, LAUNCH_PIPE, O_RDWR | O_NOFOLLOW);
    if (null_fd < 0 || out < 0 || dup2(null_fd, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        goto failed;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (error_fd > 3) {
        dup2(error_fd, 3);
        fcntl(3, F_SETFD, FD_CLOEXEC);
        error_fd = 3;
    }
    close_range(4, ~0u, 0);
    execvp(words[0], words);
failed:
    error = errno;
    if (write(error_fd, &error, sizeof error) != sizeof error)
        _exit(127);
    _exit(127);
}

int
keeper_command_start(char **words, pid_t *ret_pid)
{
    int ends[2], error = 0;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        become_command(words, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return -errno;
    }
    if (read(ends[0], &error, sizeof error) == sizeof error) {
        close(ends[0]);
        waitpid(pid, NULL, 0);
        return -error;
    }
    close(ends[0]);
    *ret_pid = pid;
    return 0;
}
