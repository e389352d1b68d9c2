/* The list of terminals, and ending one: for people who look after a server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/broker_as.h"
#include "worker/exchange.h"
#include "worker/pty.h"

struct waiting {
    struct exchange *x; /* NULL: the client went away */
};

static void
on_gone(struct exchange *x, void *ctx)
{
    struct waiting *w = ctx;

    w->x = NULL;
}

static struct waiting *
wait_new(struct exchange *x)
{
    struct waiting *w = malloc(sizeof *w);

    if (w == NULL) {
        exchange_error(x, 503, "Try again", NULL);
        return NULL;
    }
    w->x = x;
    exchange_on_gone(x, on_gone, w);
    return w;
}

/* The exchange that waits, or NULL. */
static struct exchange *
wait_over(struct waiting *w)
{
    struct exchange *x = w->x;

    free(w);
    if (x != NULL)
        exchange_on_gone(x, NULL, NULL);
    return x;
}

static void
put_record(struct json_writer *w, const struct tty_record *r)
{
    char number[16];

    snprintf(number, sizeof number, "%u", r->number);
    json_object_open(w);
    json_key(w, "pid");
    json_int(w, r->pid);
    json_key(w, "containerId");
    json_string(w, r->run_id, strnlen(r->run_id, sizeof r->run_id));
    json_key(w, "sessionId"); /* of this list; never the secret one */
    json_cstring(w, number);
    json_key(w, "uptimeMs");
    json_int(w, (int64_t)r->uptime_ms);
    json_key(w, "program");
    json_cstring(w, r->program == TTY_SHELL ? "bash" : "opencode");
    json_key(w, "viewers");
    json_int(w, r->n_viewers);
    json_key(w, "unseenMs");
    json_int(w, (int64_t)r->unseen_ms);
    json_key(w, "ended");
    json_bool(w, r->ended);
    json_object_close(w);
}

static void
render(struct buf *out, const struct answer_tty_list *a, const struct tty_record *records,
       size_t n)
{
    struct json_writer w;
    size_t n_active = 0, n_running = 0;

    for (size_t i = 0; i < n; i++) {
        n_active += records[i].n_viewers > 0;
        n_running += records[i].pid != 0;
    }
    json_begin(&w, out);
    json_object_open(&w);
    json_key(&w, "activeSessions");
    json_int(&w, (int64_t)n_active);
    json_key(&w, "trackedProcesses");
    json_int(&w, (int64_t)n_running);
    json_key(&w, "leftovers");
    json_int(&w, a->leftovers);
    json_key(&w, "processes");
    json_array_open(&w);
    for (size_t i = 0; i < n; i++)
        put_record(&w, &records[i]);
    json_array_close(&w);
    json_object_close(&w);
}

static void
on_list(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    static struct tty_record records[LIMIT_TTYS];
    const struct answer_tty_list *a = answer;
    struct exchange *x = wait_over(ctx);
    struct buf body;

    if (x == NULL)
        return;
    if (a == NULL || a->status != ANSWER_OK || a->size > sizeof records ||
        (a->size > 0 && (n_fds != 1 || pread(fds[0], records, (size_t)a->size, 0) !=
                                           (ssize_t)a->size))) {
        exchange_error(x, 503, "Try again", NULL);
        return;
    }
    buf_init(&body, 0);
    render(&body, a, records, (size_t)a->size / sizeof records[0]);
    exchange_json(x, 200, &body);
}

void
handle_pty_sessions(struct exchange *x)
{
    struct waiting *w = wait_new(x);
    struct request_plain q = {0};

    if (w != NULL)
        broker_ask(MESSAGE_TTY_LIST, &q, NULL, 0, on_list, w);
}

static void
on_end(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_plain *a = answer;
    struct exchange *x = wait_over(ctx);
    struct buf body;

    if (x == NULL)
        return;
    if (a == NULL) {
        exchange_error(x, 503, "Try again", NULL);
    } else if (a->status == ANSWER_REFUSED) {
        exchange_error(x, 403, "Terminal is disabled on this server", NULL);
    } else if (a->status != ANSWER_OK) {
        exchange_error(x, 404, "Terminal not found", NULL);
    } else {
        buf_init(&body, 0);
        buf_add_str(&body, "{\"ended\":true}");
        exchange_json(x, 200, &body);
    }
}

void
handle_pty_session_end(struct exchange *x)
{
    const char *text = exchange_param(x, 0);
    struct request_tty_end q = {0};
    static const uint8_t zero[sizeof q.session];
    struct waiting *w;

    if (text[0] >= '1' && text[0] <= '9' && strlen(text) <= 9 &&
        strspn(text, "0123456789") == strlen(text)) {
        q.number = (uint32_t)strtoul(text, NULL, 10);
    } else if (!pty_session_parse(text, q.session) ||
               memcmp(q.session, zero, sizeof zero) == 0) {
        exchange_error(x, 404, "Terminal not found", NULL);
        return;
    }
    w = wait_new(x);
    if (w != NULL)
        broker_ask_as(exchange_token(x), MESSAGE_TTY_END, &q, on_end, w);
}
