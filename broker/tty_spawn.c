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

#define ENV_MORE 5u /* variables that are added, with the NULL */

static bool
is_variable(const char *entry, const char *name)
{
    size_t len = strlen(name);

    return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

/* Replaced, or not for the program in the container: the server's own NO_COLOR, and a locale
 * without UTF-8. */
static bool
left_out(const char *entry)
{
    static const char *const names[] = {"TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "LANG",
                                        TTY_MARK};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_variable(entry, names[i]))
            return true;
    return (is_variable(entry, "LC_ALL") || is_variable(entry, "LC_CTYPE")) &&
           strcasestr(entry, "utf") == NULL;
}

/* What a terminal in a browser can do. C.UTF-8 is the locale with UTF-8 that every image has. */
static char **
make_environment(char *const *base, char *mark)
{
    static char term[] = "TERM=xterm-256color", color[] = "COLORTERM=truecolor",
                lang[] = "LANG=C.UTF-8";
    size_t n = 0, kept = 0;
    char **env;

    while (base[n] != NULL)
        n++;
    env = calloc(n + ENV_MORE, sizeof *env);
    if (env == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (!left_out(base[i]))
            env[kept++] = base[i];
    env[kept++] = term;
    env[kept++] = color;
    env[kept++] = lang;
    env[kept++] = mark;
    return env;
}

/* Safe: the words are constants but for a run ID, a directory that is checked to be absolute
 * and a prompt that cannot be an option; none passes a shell. */
static void
make_arguments(struct tty *t, const struct request_tty_open *q, char **argv)
{
    /* By name: the CLI takes the values from its own environment. */
    static const char *const variables[] = {"TERM", "COLORTERM", "LANG", TTY_MARK};
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
    for (size_t i = 0; t->marked && i < sizeof variables / sizeof variables[0]; i++) {
        argv[n++] = (char *)"--env";
        argv[n++] = (char *)variables[i];
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
    char *argv[CHILD_ARGS_MAX + 1], mark[sizeof TTY_MARK + TTY_TAG_SIZE];
    struct child_spec spec = {.argv = argv, .terminal = true, .fn = on_exit, .ctx = t};
    int slave = -1, r = open_pair(t, q, &slave);

    if (r < 0) {
        snprintf(error, MESSAGE_ERROR_SIZE, "no pseudo-terminal: %s", strerror(-r));
        return r;
    }
    t->marked = q->passes_env == 1;
    snprintf(mark, sizeof mark, TTY_MARK "=%s", t->tag);
    make_arguments(t, q, argv);
    spec.env = make_environment(children_environment(children), mark);
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
