/*
 * A pseudo-terminal and the CLI's `runs exec --tty` as its session leader.
 * Distrusts: the worker (every word it gives is one argument, checked by tty_requests.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/child.h"
#include "broker/tty.h"

#define ENV_MORE 4u /* variables that are added, with the NULL */

/* What a terminal in a browser can do. The CLI shows no colours of its own into it, but the
 * program in the container must not be told the server's NO_COLOR. */
static char **
make_environment(char *const *base)
{
    static char term[] = "TERM=xterm-256color", color[] = "COLORTERM=truecolor",
                lang[] = "LANG=C.UTF-8";
    bool has_locale = false;
    size_t n = 0, kept = 0;
    char **env;

    while (base[n] != NULL)
        n++;
    env = calloc(n + ENV_MORE, sizeof *env);
    if (env == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(base[i], "TERM=", 5) == 0 || strncmp(base[i], "COLORTERM=", 10) == 0 ||
            strncmp(base[i], "NO_COLOR=", 9) == 0 ||
            strncmp(base[i], "FORCE_COLOR=", 12) == 0)
            continue;
        if (strncmp(base[i], "LANG=", 5) == 0 || strncmp(base[i], "LC_ALL=", 7) == 0)
            has_locale |= strcasestr(base[i], "utf") != NULL;
        env[kept++] = base[i];
    }
    env[kept++] = term;
    env[kept++] = color;
    for (size_t i = 0; !has_locale && i < kept; i++) /* a locale without UTF-8 is replaced */
        if (strncmp(env[i], "LANG=", 5) == 0 || strncmp(env[i], "LC_ALL=", 7) == 0)
            env[i] = lang;
    if (!has_locale)
        env[kept++] = lang;
    return env;
}

/* Safe: the words are constants but for a run ID, a directory that is checked to be absolute
 * and a prompt that cannot be an option; none passes a shell. */
static void
make_arguments(struct tty *t, const struct request_tty_open *q, char **argv)
{
    char *const *words = children_words(t->all->broker->children);
    size_t n = 0;

    while (words[n] != NULL && n < CHILD_ARGS_MAX / 2) {
        argv[n] = words[n];
        n++;
    }
    argv[n++] = (char *)"runs";
    argv[n++] = (char *)"exec";
    if (q->workdir[0] != '\0') {
        argv[n++] = (char *)"--workdir";
        argv[n++] = (char *)q->workdir;
    }
    argv[n++] = (char *)"--tty";
    argv[n++] = (char *)q->run_id;
    argv[n++] = (char *)"--";
    if (t->program == TTY_SHELL) {
        argv[n++] = (char *)"bash";
    } else {
        argv[n++] = (char *)"opencode";
        if (q->message[0] != '\0') {
            argv[n++] = (char *)"run";
            argv[n++] = (char *)q->message;
        }
    }
    argv[n] = NULL;
}

static int
open_pair(struct tty *t, const struct request_tty_open *q, int *ret_slave)
{
    struct winsize size = {.ws_row = q->rows, .ws_col = q->cols};
    int slave;

    if (openpty(&t->master, &slave, NULL, NULL, &size) != 0) {
        t->master = -1;
        return -errno;
    }
    fcntl(t->master, F_SETFD, FD_CLOEXEC);
    fcntl(slave, F_SETFD, FD_CLOEXEC);
    fcntl(t->master, F_SETFL, O_NONBLOCK);
    *ret_slave = slave;
    return 0;
}

int
tty_spawn(struct tty *t, const struct request_tty_open *q, void (*on_exit)(void *, int),
          char *error)
{
    struct children *children = t->all->broker->children;
    char *argv[CHILD_ARGS_MAX + 1];
    struct child_spec spec = {.argv = argv, .terminal = true, .fn = on_exit, .ctx = t};
    int slave = -1, r = open_pair(t, q, &slave);

    if (r < 0) {
        snprintf(error, MESSAGE_ERROR_SIZE, "no pseudo-terminal: %s", strerror(-r));
        return r;
    }
    make_arguments(t, q, argv);
    spec.env = make_environment(children_environment(children));
    spec.in_fd = spec.out_fd = spec.err_fd = slave;
    if (spec.env == NULL) {
        snprintf(error, MESSAGE_ERROR_SIZE, "out of memory");
        r = -ENOMEM;
    } else {
        r = child_start_spec(children, &spec, &t->child, error, MESSAGE_ERROR_SIZE);
    }
    free((void *)spec.env);
    close(slave); /* or the terminal would never say that its last user is gone */
    return r;
}
