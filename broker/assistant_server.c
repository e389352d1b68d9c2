/*
 * The OpenCode server inside a run's container: started by `runs exec`, ended by that
 * client's end and, because that does not reach into the container, by a second exec.
 * Distrusts: the server (its output is drained; only its last line is kept, as a reason).
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/assistant.h"
#include "broker/broker.h"
#include "broker/child.h"
#include "broker/cli.h"
#include "broker/litellm.h"
#include "broker/runs_list.h"
#include "common/log.h"

#define CONFIG_NAME "OPENCODE_CONFIG_CONTENT"

static const char *
port_text(enum run_port port)
{
    return port == RUN_PORT_ASSISTANT ? "4098" : "4096";
}

void
assistant_server_done(struct assistant *as)
{
    if (as->err_event != NULL)
        event_free(as->err_event);
    as->err_event = NULL;
    if (as->err_fd >= 0)
        close(as->err_fd);
    as->err_fd = -1;
    as->child = NULL;
    as->ending = false;
}

/* Drain; remember the end. Returns false when there is nothing more now or ever. */
static bool
take_error(struct assistant *as)
{
    ssize_t n = stderr_tail_read(&as->tail, as->err_fd);

    if (n == 0)
        event_del(as->err_event);
    return n > 0;
}

static void
on_error(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    take_error(arg);
}

/* Its last line, secrets made stars. */
static void
explain_exit(struct assistant *as, int exit_status)
{
    memset(as->last_error, 0, sizeof as->last_error);
    if (!stderr_tail_line(&as->tail, as->last_error, sizeof as->last_error))
        snprintf(as->last_error, sizeof as->last_error,
                 "The OpenCode server ended with status %d", exit_status);
    litellm_redact(as->last_error, as->key);
    litellm_redact_master(as->all->broker->litellm, as->last_error);
}

static void
on_exit_status(void *ctx, int exit_status)
{
    struct assistant *as = ctx;

    for (unsigned i = 0; i < 32 && take_error(as); i++)
        ;
    if (as->ending) {
        as->last_error[0] = '\0';
    } else {
        explain_exit(as, exit_status);
        runs_list_invalidate(as->all->broker->runs_list); /* its run may have ended it */
        runs_list_look(as->all->broker->runs_list);
        if (broker_now_ms() - as->started_ms < LIMIT_ASSISTANT_READY_MS)
            as->died_young_ms = broker_now_ms();
    }
    log_event(LOG_LEVEL_INFO, "assistant-ended", "run=%s status=%d", as->run_id, exit_status);
    assistant_server_done(as);
    if (!as->busy)
        assistant_go_on(as);
}

/* The environment of every child and, for the run's model, the configuration with the key. */
static char **
make_environment(const struct assistant *as, bool with_config, char **ret_config)
{
    char *const *base = children_environment(as->all->broker->children);
    size_t n = 0, kept = 0;
    char **env;

    while (base[n] != NULL)
        n++;
    env = calloc(n + 2, sizeof *env);
    *ret_config = NULL;
    if (env == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (strncmp(base[i], CONFIG_NAME "=", sizeof CONFIG_NAME) != 0)
            env[kept++] = base[i];
    if (!with_config)
        return env;
    if (asprintf(ret_config, CONFIG_NAME "=%s", as->config) < 0) {
        *ret_config = NULL;
        free(env);
        return NULL;
    }
    env[kept++] = *ret_config;
    return env;
}

/* Our words first, then the contract's (9.2). The key is in the environment alone. */
static void
make_words(const struct assistant *as, enum run_port port, char **out)
{
    char *const *cli = children_words(as->all->broker->children);
    const char *const before[] = {"runs", "exec", "--user", "model", "--stdin", NULL};
    const char *const config[] = {"--env", CONFIG_NAME, NULL};
    const char *const after[] = {as->run_id, "--", "opencode", "serve", "--port",
                                 port_text(port), "--hostname", "0.0.0.0", "--print-logs",
                                 NULL};
    size_t n = 0;

    for (size_t i = 0; cli[i] != NULL; i++)
        out[n++] = cli[i];
    for (size_t i = 0; before[i] != NULL; i++)
        out[n++] = (char *)before[i];
    for (size_t i = 0; port == RUN_PORT_ASSISTANT && config[i] != NULL; i++)
        out[n++] = (char *)config[i];
    for (size_t i = 0; after[i] != NULL; i++)
        out[n++] = (char *)after[i];
    out[n] = NULL;
}

/* Safe: fixed words and a run ID, in the container, as its unprivileged user. */
static int
act_start(struct assistant *as, enum run_port port, int null_fd, int err_fd)
{
    char *words[CHILD_ARGS_MAX + 1], *config = NULL;
    char **env = make_environment(as, port == RUN_PORT_ASSISTANT, &config);
    struct child_spec spec = {.argv = words, .env = env, .in_fd = null_fd, .out_fd = null_fd,
                              .err_fd = err_fd, .fn = on_exit_status, .ctx = as};
    int r = -ENOMEM;

    make_words(as, port, words);
    if (env != NULL)
        r = child_start_spec(as->all->broker->children, &spec, &as->child, as->last_error,
                             sizeof as->last_error);
    if (config != NULL)
        explicit_bzero(config, strlen(config));
    free(config);
    free(env);
    return r;
}

static int
watch_errors(struct assistant *as, int *ret_theirs)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return -errno;
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    *ret_theirs = fds[1];
    as->err_fd = fds[0];
    as->err_event =
        event_new(as->all->broker->base, fds[0], EV_READ | EV_PERSIST, on_error, as);
    return as->err_event != NULL && event_add(as->err_event, NULL) == 0 ? 0 : -ENOMEM;
}

int
assistant_server_start(struct assistant *as, enum run_port port)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC), err_fd = -1;
    int r = null_fd < 0 ? -errno : watch_errors(as, &err_fd);

    as->tail.len = 0;
    memset(as->last_error, 0, sizeof as->last_error);
    if (r == 0)
        r = act_start(as, port, null_fd, err_fd);
    if (null_fd >= 0)
        close(null_fd);
    if (err_fd >= 0)
        close(err_fd);
    if (r == 0) {
        as->port = port;
        as->started_ms = broker_now_ms();
        log_event(LOG_LEVEL_INFO, "assistant-started", "run=%s port=%s", as->run_id,
                  port_text(port));
        return 0;
    }
    if (as->last_error[0] == '\0')
        snprintf(as->last_error, sizeof as->last_error, "Cannot start OpenCode: %s",
                 strerror(-r));
    assistant_server_done(as);
    return r;
}

/* --- its end --------------------------------------------------------------------------- */

struct farewell {
    void (*done)(void *ctx);
    void *ctx;
};

static void
on_ended_inside(void *ctx, struct cli_result *result)
{
    struct farewell *f = ctx;

    (void)result; /* best effort: the container may be gone, or have no shell */
    if (f->done != NULL)
        f->done(f->ctx);
    free(f);
}

/* Only a server with our exact words, and only while we have a client at it: whoever serves
 * that port otherwise was not started by us. */
bool
assistant_server_end_inside(struct assistant *as, void (*done)(void *ctx), void *ctx)
{
    static const char script[] =
        "for d in /proc/[0-9]*; do "
        "c=$(tr '\\0' ' ' <\"$d/cmdline\" 2>/dev/null) || continue; "
        "w=\"opencode serve --port $1 --hostname 0.0.0.0 --print-logs \"; "
        "case $c in \"$w\"*|*/\"$w\"*) kill \"${d#/proc/}\";; esac; done";
    const char *const args[] = {"runs", "exec", "--user", "model", as->run_id, "--", "sh",
                                "-c", script, "sh", port_text(as->port), NULL};
    struct farewell *f = calloc(1, sizeof *f);
    struct cli_call call = {.args = args, .timeout_ms = LIMIT_REVOKE_MS, .own_bound = true,
                            .fn = on_ended_inside, .ctx = f};
    char error[LIMIT_CLI_ERROR];

    if (f == NULL)
        return false;
    *f = (struct farewell){done, ctx};
    if (cli_start(as->all->broker->cli, &call, error) == 0)
        return true;
    free(f);
    return false;
}

void
assistant_server_end(struct assistant *as)
{
    if (as->child == NULL || as->ending)
        return;
    as->ending = true;
    assistant_server_end_inside(as, NULL, NULL);
    child_end(as->child);
}
