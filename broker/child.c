/*
 * Starting the CLI and ending it with everything it started.
 * Distrusts: the child (it may hang, fork, ignore SIGTERM, hold its pipes open).
 */
#include "broker/child.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/limits.h"

extern char **environ;

struct child {
    struct children *all;
    LIST_ENTRY(child) link;
    pid_t pid;
    int pidfd;                 /* readable once the leader has ended */
    struct event *exit_event;  /* on pidfd */
    struct event *kill_timer;
    bool ending;
    child_exit_fn fn;
    void *ctx;
};

struct children {
    struct event_base *base;
    LIST_HEAD(, child) list;
    int null_fd;
    char *cli;                          /* owned; `words` point into it */
    char *words[CHILD_ARGS_MAX + 1];
    size_t n_words;
    char *checkout;
    char **env;                         /* owned array, borrowed strings */
    bool stopping; /* no more are started */
    void (*all_gone)(void *ctx);
    void *all_gone_ctx;
};

/* What the child process needs between vfork and exec, and what it reports back. */
struct image {
    char *const *argv;
    char *const *env;
    const char *checkout;
    int in_fd, out_fd, err_fd;
    bool terminal;
    pid_t parent;
    sigset_t mask;
    int error;       /* written by the child: shared memory until exec */
    bool no_checkout;
};

static char **
make_environment(void)
{
    size_t n = 0, kept = 0;
    char **env;

    while (environ[n] != NULL)
        n++;
    env = calloc(n + 3, sizeof *env);
    if (env == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const char *v = environ[i];

        /* Design R4: no child ever sees the token or where it stands. */
        if (strncmp(v, "SSEBENCH_WEBUI_TOKEN=", 21) == 0 ||
            strncmp(v, "SSEBENCH_WEBUI_TOKEN_FILE=", 26) == 0 ||
            strncmp(v, "NO_COLOR=", 9) == 0 || strncmp(v, "FORCE_COLOR=", 12) == 0)
            continue;
        env[kept++] = environ[i];
    }
    env[kept++] = (char *)"NO_COLOR=1";
    env[kept++] = (char *)"FORCE_COLOR=0";
    return env;
}

struct children *
children_new(struct event_base *base, const char *cli, const char *checkout)
{
    struct children *all = calloc(1, sizeof *all);
    char *save = NULL;

    if (all == NULL)
        return NULL;
    LIST_INIT(&all->list);
    all->base = base;
    all->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    all->cli = strdup(cli);
    all->checkout = strdup(checkout);
    all->env = make_environment();
    if (all->null_fd < 0 || all->cli == NULL || all->checkout == NULL || all->env == NULL) {
        children_free(all);
        return NULL;
    }
    for (char *w = strtok_r(all->cli, " \t\r\n\v\f", &save);
         w != NULL && all->n_words < CHILD_ARGS_MAX / 2;
         w = strtok_r(NULL, " \t\r\n\v\f", &save))
        all->words[all->n_words++] = w;
    if (all->n_words == 0) {
        children_free(all);
        return NULL;
    }
    return all;
}

/* Runs in the child, in our memory, while we wait: only system calls, no allocation. */
static void __attribute__((noinline))
become(struct image *im)
{
    static const int defaults[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD};

    /* A session: no terminal to ask on, and a process group to end as one. */
    setsid();
    /* When the broker is killed nobody would end a hanging CLI: let it go along. SIGTERM,
     * because `uv run` hands that on to what it started. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != im->parent)
        _exit(127);
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        signal(defaults[i], SIG_DFL);
    if (dup2(im->in_fd, STDIN_FILENO) < 0 || dup2(im->out_fd, STDOUT_FILENO) < 0 ||
        dup2(im->err_fd, STDERR_FILENO) < 0) {
        im->error = errno;
        return;
    }
    if (im->terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0) {
        im->error = errno;
        return;
    }
    if (chdir(im->checkout) != 0) {
        im->error = errno;
        im->no_checkout = true;
        return;
    }
    sigprocmask(SIG_SETMASK, &im->mask, NULL);
    execvpe(im->argv[0], im->argv, im->env);
    im->error = errno;
}

/* vfork: the broker may hold tables of 100,000 runs, and copying page tables at every call
 * would cost more than the call. Returns the pid or -errno. */
static pid_t
start(struct image *im)
{
    sigset_t every;
    pid_t pid;
    int saved;

    im->parent = getpid();
    im->error = 0;
    im->no_checkout = false;
    sigfillset(&every);
    sigprocmask(SIG_SETMASK, &every, &im->mask);
    pid = vfork();
    if (pid == 0) {
        become(im);
        _exit(127);
    }
    saved = errno;
    sigprocmask(SIG_SETMASK, &im->mask, NULL);
    if (pid < 0)
        return -saved;
    if (im->error != 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return -im->error;
    }
    return pid;
}

static void
child_free(struct child *child)
{
    struct children *all = child->all;

    LIST_REMOVE(child, link);
    if (child->exit_event != NULL)
        event_free(child->exit_event);
    if (child->kill_timer != NULL)
        event_free(child->kill_timer);
    if (child->pidfd >= 0)
        close(child->pidfd);
    free(child);
    if (LIST_EMPTY(&all->list) && all->all_gone != NULL) {
        void (*done)(void *) = all->all_gone;

        all->all_gone = NULL;
        done(all->all_gone_ctx);
    }
}

/* The leader's zombie keeps its number, so ending the group before reaping hits nobody else. */
static int
end_and_reap(pid_t pid)
{
    int status = 0;

    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 128 + SIGKILL;
    if (WIFSIGNALED(status))
        return 128 + WTERMSIG(status);
    return WEXITSTATUS(status);
}

static void
on_leader_exit(evutil_socket_t fd, short what, void *arg)
{
    struct child *child = arg;
    int status = end_and_reap(child->pid);

    (void)fd;
    (void)what;
    child->fn(child->ctx, status);
    child_free(child);
}

static void
on_kill_timer(evutil_socket_t fd, short what, void *arg)
{
    struct child *child = arg;

    (void)fd;
    (void)what;
    kill(-child->pid, SIGKILL);
}

static int
watch(struct child *child)
{
    struct event_base *base = child->all->base;

    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    if (child->pidfd < 0)
        return -errno;
    fcntl(child->pidfd, F_SETFD, FD_CLOEXEC);
    child->exit_event = event_new(base, child->pidfd, EV_READ, on_leader_exit, child);
    child->kill_timer = event_new(base, -1, 0, on_kill_timer, child);
    if (child->exit_event == NULL || child->kill_timer == NULL ||
        event_add(child->exit_event, NULL) != 0)
        return -ENOMEM;
    return 0;
}

char *const *
children_words(const struct children *all)
{
    return all->words;
}

char *const *
children_environment(const struct children *all)
{
    return all->env;
}

static int
explain(const struct children *all, const struct image *im, int r, char *error,
        size_t error_size)
{
    bool is_cli = im->argv[0] == all->words[0];

    if (im->no_checkout)
        snprintf(error, error_size, "Cannot enter the checkout %s (SSEBENCH_PATH): %s",
                 all->checkout, strerror(-r));
    else
        snprintf(error, error_size, "Cannot run `%s`%s: %s", im->argv[0],
                 is_cli ? " (SSEBENCH_CLI)" : "", strerror(-r));
    return r;
}

int
child_start_spec(struct children *all, const struct child_spec *spec,
                 struct child **ret_child, char *error, size_t error_size)
{
    struct image im = {.argv = spec->argv, .env = spec->env != NULL ? spec->env : all->env,
                       .checkout = all->checkout, .in_fd = spec->in_fd,
                       .out_fd = spec->out_fd, .err_fd = spec->err_fd,
                       .terminal = spec->terminal};
    struct child *child;
    int r;

    if (all->stopping) {
        snprintf(error, error_size, "The server is stopping");
        return -ECANCELED;
    }
    child = calloc(1, sizeof *child);
    if (child == NULL)
        return explain(all, &im, -ENOMEM, error, error_size);
    *child = (struct child){.all = all, .pidfd = -1, .fn = spec->fn, .ctx = spec->ctx};
    LIST_INSERT_HEAD(&all->list, child, link);
    child->pid = start(&im);
    r = child->pid < 0 ? child->pid : watch(child);
    if (r < 0) {
        if (child->pid > 0)
            end_and_reap(child->pid);
        child_free(child);
        return explain(all, &im, r, error, error_size);
    }
    *ret_child = child;
    return 0;
}

int
child_start_program(struct children *all, char *const *argv, int in_fd, int out_fd, int err_fd,
                    child_exit_fn fn, void *ctx, struct child **ret_child, char *error,
                    size_t error_size)
{
    const struct child_spec spec = {.argv = argv, .in_fd = in_fd, .out_fd = out_fd,
                                    .err_fd = err_fd, .fn = fn, .ctx = ctx};

    return child_start_spec(all, &spec, ret_child, error, error_size);
}

int
child_start(struct children *all, const char *const *args, int out_fd, int err_fd,
            child_exit_fn fn, void *ctx, struct child **ret_child, char *error,
            size_t error_size)
{
    char *argv[CHILD_ARGS_MAX + 1];
    size_t n = all->n_words;

    memcpy(argv, all->words, n * sizeof argv[0]);
    while (*args != NULL && n < CHILD_ARGS_MAX)
        argv[n++] = (char *)*args++;
    argv[n] = NULL;
    return child_start_program(all, argv, all->null_fd, out_fd, err_fd, fn, ctx, ret_child,
                               error, error_size);
}

static void
end_with(struct child *child, int signal_number)
{
    struct timeval grace = {LIMIT_CLI_GRACE_MS / 1000, LIMIT_CLI_GRACE_MS % 1000 * 1000};

    if (child->ending)
        return;
    child->ending = true;
    kill(-child->pid, signal_number);
    evtimer_add(child->kill_timer, &grace);
}

void
child_end(struct child *child)
{
    end_with(child, SIGTERM);
}

void
child_hang_up(struct child *child)
{
    end_with(child, SIGHUP);
}

pid_t
child_pid(const struct child *child)
{
    return child->pid;
}

void
child_kill(struct child *child)
{
    child->ending = true;
    kill(-child->pid, SIGKILL);
}

void
children_end_all(struct children *all, void (*done)(void *ctx), void *ctx)
{
    struct child *child;

    all->stopping = true;
    if (LIST_EMPTY(&all->list)) {
        done(ctx);
        return;
    }
    all->all_gone = done;
    all->all_gone_ctx = ctx;
    LIST_FOREACH(child, &all->list, link)
        child_end(child);
}

void
children_free(struct children *all)
{
    if (all == NULL)
        return;
    all->all_gone = NULL;
    while (!LIST_EMPTY(&all->list)) {
        struct child *child = LIST_FIRST(&all->list);

        /* Not reaped: this process is about to end, and one that sleeps in the kernel would
         * keep it. */
        kill(-child->pid, SIGKILL);
        child_free(child);
    }
    if (all->null_fd >= 0)
        close(all->null_fd);
    free(all->cli);
    free(all->checkout);
    free(all->env);
    free(all);
}
