/* SIGUSR2: this process becomes the program that now lies where it was started from. The same
 * process, so that a service manager need not follow, and the children need not be told. */
#include "master/upgrade.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "master/notify.h"
#include "master/spawn.h"
#include "master/takeover.h"

#define STATE_FD 3 /* of the program that is asked */

extern char **environ;

static struct {
    struct upgrade u;
    pid_t pid;  /* of the program that is asked; 0: none */
    int output; /* what it says */
    struct event *limit, *turn;
    unsigned turns; /* until we become it; 0: it has not agreed */
} asked;

void
upgrade_block(bool block)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaddset(&set, numbers[i]);
    sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* What the start took out of our environment and a next program needs as well. */
static void
complete_environment(bool complete)
{
    if (!complete) {
        unsetenv("SSEBENCH_WEBUI_TOKEN_FILE");
        unsetenv("SSEBENCH_WEBUI_TOKENS");
        unsetenv("NOTIFY_SOCKET");
        unsetenv("WATCHDOG_USEC");
        return;
    }
    if (asked.u.settings->token_file[0] != '\0')
        setenv("SSEBENCH_WEBUI_TOKEN_FILE", asked.u.settings->token_file, 1);
    if (asked.u.settings->tokens_given)
        setenv("SSEBENCH_WEBUI_TOKENS", asked.u.settings->tokens_file, 1);
    notify_pass_on();
}

static void
refuse(const char *why)
{
    log_event(LOG_LEVEL_ERROR, "upgrade-refused", "reason=%s", log_quote(why, strlen(why)));
}

static void
on_limit(int fd, short what, void *arg)
{
    if (asked.pid > 0)
        kill(asked.pid, SIGKILL);
}

static int
make_state(void)
{
    return takeover_seal(asked.u.handover, asked.u.listeners, asked.u.kept_token,
                         asked.u.children, asked.u.n_children);
}

static void on_turn(int fd, short what, void *arg);

/* --- asking ------------------------------------------------------------------------------ */

static int
start_asking(int state, int null_fd, int output)
{
    char fd[12];
    char *const argv[] = {(char *)"ssebench-webui", (char *)"--check-take-over", fd, NULL};
    struct spawn s = {.program = asked.u.program, .argv = argv};
    int status;

    snprintf(fd, sizeof(fd), "%d", STATE_FD);
    for (size_t i = 0; i < SPAWN_FDS; i++)
        s.fds[i] = -1;
    s.fds[STDIN_FILENO] = s.fds[STDOUT_FILENO] = null_fd;
    s.fds[STDERR_FILENO] = output;
    s.fds[STATE_FD] = state;
    complete_environment(true);
    s.env = environ;
    status = spawn_start(&s, &asked.pid);
    complete_environment(false);
    return status;
}

/* Its own descriptors above those that spawn_start puts in place. */
static int
open_and_start(void)
{
    int state = make_state(), null_fd, ends[2] = {-1, -1}, status;

    if (state < 0)
        return state;
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    null_fd = null_fd < 0 ? -errno : spawn_raise_fd(null_fd);
    status = null_fd < 0 ? null_fd : pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : -errno;
    if (status == 0) {
        asked.output = ends[0];
        ends[1] = spawn_raise_fd(ends[1]);
        status = ends[1] < 0 ? ends[1] : start_asking(state, null_fd, ends[1]);
        if (ends[1] >= 0)
            close(ends[1]);
        if (status != 0)
            close(asked.output);
    }
    if (null_fd >= 0)
        close(null_fd);
    close(state);
    return status;
}

void
upgrade_begin(const struct upgrade *u)
{
    struct timeval limit = {LIMIT_CHECK_MS / 1000, 0};
    int status;

    if (asked.pid > 0 || asked.turns > 0) {
        refuse("the new program is being asked already");
        return;
    }
    asked.u = *u;
    if (asked.limit == NULL)
        asked.limit = evtimer_new(u->base, on_limit, NULL);
    if (asked.turn == NULL)
        asked.turn = evtimer_new(u->base, on_turn, NULL);
    status = asked.limit == NULL || asked.turn == NULL ? -ENOMEM : open_and_start();
    if (status != 0) {
        asked.pid = 0;
        refuse(strerror(-status));
        return;
    }
    evtimer_add(asked.limit, &limit);
    log_event(LOG_LEVEL_INFO, "upgrade-asked", "program=%s pid=%d",
              log_quote(u->program, strlen(u->program)), (int)asked.pid);
}

/* --- becoming it ----------------------------------------------------------------------------- */

/* Only returns when that failed, with everything as it was. */
static void
become(void)
{
    char fd[12];
    char *const argv[] = {(char *)asked.u.program, (char *)"--take-over", fd, NULL};
    int state = make_state();
    int status = state < 0 ? state : takeover_keep(state, true);

    if (status == 0) {
        snprintf(fd, sizeof(fd), "%d", state);
        log_event(LOG_LEVEL_INFO, "upgrading", "program=%s",
                  log_quote(asked.u.program, strlen(asked.u.program)));
        fflush(NULL);
        complete_environment(true);
        execve(asked.u.program, argv, environ);
        status = -errno;
        complete_environment(false);
    }
    refuse(strerror(-status));
    if (state >= 0) {
        takeover_keep(state, false);
        close(state);
    }
}

static void
next_turn(void)
{
    static const struct timeval now = {0, 0};

    evtimer_add(asked.turn, &now);
}

/* A signal that the loop has seen is told to us a turn later at the latest. */
static void
on_turn(int fd, short what, void *arg)
{
    if (--asked.turns > 0) {
        next_turn();
        return;
    }
    if (asked.u.wanted())
        become();
    else
        refuse("the server stops");
    upgrade_block(false);
}

/* From here on signals wait for the next program; those that came before must not be lost
 * between their arrival and our turn to hear of them. */
static void
settle(void)
{
    upgrade_block(true);
    asked.turns = 2;
    next_turn();
}

bool
upgrade_take_end(pid_t pid, int status)
{
    char said[512];
    ssize_t n;

    if (asked.pid == 0 || pid != asked.pid)
        return false;
    asked.pid = 0;
    evtimer_del(asked.limit);
    n = read(asked.output, said, sizeof(said));
    close(asked.output);
    while (n > 0 && said[n - 1] == '\n')
        n--;
    if (!asked.u.wanted())
        refuse("the server stops");
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        settle();
    else
        log_event(LOG_LEVEL_ERROR, "upgrade-refused", "reason=%s",
                  log_quote(n > 0 ? said : "the new program did not agree in time",
                            n > 0 ? (size_t)n : strlen("the new program did not agree in time")));
    return true;
}
