/* /api/health: what the broker knows now; the CLI is never waited for. */
#include <stdio.h>
#include <stdlib.h>

#include "common/json_write.h"
#include "worker/exchange.h"
#include "worker/iso_time.h"
#include "worker/opencode_find.h"
#include "worker/runs.h"
#include "worker/worker.h"

/* Why there is no terminal although the switch is on. */
static void
put_terminal_hint(struct json_writer *w, const struct runs_listing *l, const char *backend)
{
    char hint[256];

    if (l->supports_exec)
        return;
    snprintf(hint, sizeof hint,
             "The %.64s backend cannot run commands in a run, so there is no terminal.",
             backend != NULL ? backend : "configured");
    json_key(w, "terminalHint");
    json_cstring(w, hint);
}

static void
put_runner(struct json_writer *w, const struct runs_listing *l, const char *backend)
{
    json_key(w, "runner");
    json_bool(w, l->error == NULL);
    json_key(w, "docker"); /* the name older clients read */
    json_bool(w, l->error == NULL);
    json_key(w, "backend");
    json_cstring(w, backend);
    if (l->error != NULL) {
        json_key(w, "runnerError");
        json_cstring(w, l->error);
    }
}

static void
answer(struct exchange *x)
{
    const struct worker_config *config = worker_config();
    struct runs_listing l;
    const char *backend;
    char now[ISO_TIME_SIZE];
    struct json_writer w;
    struct buf body;

    l = runs_listing();
    bool hosted = config->hosted || exchange_role(x) == ROLE_VIEW; /* as good as that */
    bool terminal = config->terminal && !hosted &&
                    policy_role_allows(exchange_role(x), DEED_TERMINAL);
    backend = l.backend != NULL       ? l.backend
              : *config->backend != 0 ? config->backend
                                      : NULL;
    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, "status");
    json_cstring(&w, "ok");
    json_key(&w, "version");
    json_cstring(&w, config->server_version);
    put_runner(&w, &l, backend);
    json_key(&w, "terminal");
    json_bool(&w, terminal && l.supports_exec);
    if (terminal)
        put_terminal_hint(&w, &l, backend);
    json_key(&w, "assistant");
    json_bool(&w, !hosted && policy_role_allows(exchange_role(x), DEED_ASSISTANT) &&
                      opencode_backend_lacks() == NULL);
    json_key(&w, "hosted"); /* for the holder of a view token too: existing pages know it */
    json_bool(&w, hosted);
    json_key(&w, "role");
    json_cstring(&w, policy_role_name(exchange_role(x)));
    json_key(&w, "timestamp");
    iso_time_format(iso_time_now_ms(), now);
    json_cstring(&w, now);
    json_object_close(&w);
    exchange_json(x, 200, &body);
}

struct health_wait {
    struct runs_glance glance;
    struct exchange *x;
};

static void
on_ready(void *ctx)
{
    struct health_wait *h = ctx;
    struct exchange *x = h->x;

    free(h);
    answer(x);
}

static void
on_gone(struct exchange *x, void *ctx)
{
    struct health_wait *h = ctx;

    runs_glance_cancel(&h->glance);
    free(h);
}

void
handle_health(struct exchange *x)
{
    struct health_wait *h = malloc(sizeof *h);

    if (h == NULL || runs_glance(&h->glance, on_ready, h)) {
        free(h);
        answer(x);
        return;
    }
    h->x = x;
    exchange_on_gone(x, on_gone, h);
}
