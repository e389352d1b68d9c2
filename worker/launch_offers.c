/* GET /api/launch/models, agents, config: what can be launched. */
#include <stdlib.h>

#include "common/json_write.h"
#include "worker/broker_link.h"
#include "worker/exchange.h"
#include "worker/launch.h"
#include "worker/launch_offer.h"

static struct launchables_list known;

/* --- waiting ------------------------------------------------------------------------------ */

static void
on_gone(struct exchange *x, void *ctx)
{
    struct launch_wait *w = ctx;

    w->x = NULL;
}

struct launch_wait *
launch_wait_new(struct exchange *x, void *ctx)
{
    struct launch_wait *w = calloc(1, sizeof(*w));

    if (!w) {
        free(ctx);
        exchange_error(x, 503, "Out of memory: try again", NULL);
        return NULL;
    }
    w->x = x;
    w->ctx = ctx;
    exchange_on_gone(x, on_gone, w);
    return w;
}

struct exchange *
launch_wait_end(struct launch_wait *w)
{
    struct exchange *x = w->x;

    free(w->ctx);
    free(w);
    if (x)
        exchange_on_gone(x, NULL, NULL);
    return x;
}

void
launch_answer_away(struct exchange *x, const char *error)
{
    exchange_error(x, 503, error, "A part of the server is being restarted: try again");
}

static void
on_launchables(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    struct launch_wait *w = ctx;
    bool good = launch_offer_take(&known, answer, n_fds > 0 ? fds[0] : -1);

    w->then(w, good ? &known : NULL);
}

void
launch_wait_offer(struct launch_wait *w,
                  void (*then)(struct launch_wait *w, const struct launchables_list *list))
{
    struct request_launchables q = {.generation = known.generation};

    w->then = then;
    broker_ask(MESSAGE_LAUNCHABLES, &q, NULL, 0, on_launchables, w);
}

/* The exchange to answer with this list, or NULL: there is none any more, or it was told that
 * the list cannot be had. */
static struct exchange *
end_with(struct launch_wait *wait, const struct launchables_list *list)
{
    struct exchange *x = launch_wait_end(wait);

    if (x && !list) {
        launch_answer_away(x, "Failed to list what can be launched");
        return NULL;
    }
    return x;
}

/* --- lists of names -------------------------------------------------------------------------- */

static void
put_names(struct json_writer *w, const struct launchables_list *list, char kind)
{
    const char *at = NULL, *fields[4];

    json_array_open(w);
    while (launch_offer_next(list, kind, &at, fields))
        json_cstring(w, fields[0]);
    json_array_close(w);
}

static void
answer_names(struct launch_wait *wait, const struct launchables_list *list, const char *key,
             char kind)
{
    struct exchange *x = end_with(wait, list);
    struct json_writer w;
    struct buf body;

    if (!x)
        return;
    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, key);
    put_names(&w, list, kind);
    json_object_close(&w);
    exchange_json(x, 200, &body);
}

static void
answer_models(struct launch_wait *w, const struct launchables_list *list)
{
    answer_names(w, list, "models", 'm');
}

static void
answer_agents(struct launch_wait *w, const struct launchables_list *list)
{
    answer_names(w, list, "agents", 'a');
}

void
handle_launch_models(struct exchange *x)
{
    struct launch_wait *w = launch_wait_new(x, NULL);

    if (w)
        launch_wait_offer(w, answer_models);
}

void
handle_launch_agents(struct exchange *x)
{
    struct launch_wait *w = launch_wait_new(x, NULL);

    if (w)
        launch_wait_offer(w, answer_agents);
}

/* --- config -------------------------------------------------------------------------------------- */

static void
put_plugins(struct json_writer *w, const struct launchables_list *list)
{
    const char *at = NULL, *f[4];

    json_array_open(w);
    while (launch_offer_next(list, 'p', &at, f)) {
        json_object_open(w);
        json_key(w, "name");
        json_cstring(w, f[0]);
        json_key(w, "enabled");
        json_bool(w, f[1][0] == '1');
        json_key(w, "hook");
        json_cstring(w, f[2]);
        json_key(w, "llm");
        json_bool(w, f[3][0] == '1');
        json_object_close(w);
    }
    json_array_close(w);
}

static void
answer_config(struct launch_wait *wait, const struct launchables_list *list)
{
    static const char MODES[] = "[\"sandbox\",\"sidecar\"]";
    struct exchange *x = end_with(wait, list);
    struct json_writer w;
    struct buf body;

    if (!x)
        return;
    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, "hasLocalBenchmarks");
    json_bool(&w, list->has_local);
    json_key(&w, "catalogConfigured");
    json_bool(&w, list->has_catalog);
    json_key(&w, "modes");
    json_raw(&w, MODES, sizeof(MODES) - 1);
    json_key(&w, "plugins");
    put_plugins(&w, list);
    json_object_close(&w);
    exchange_json(x, 200, &body);
}

void
handle_launch_config(struct exchange *x)
{
    struct launch_wait *w = launch_wait_new(x, NULL);

    if (w)
        launch_wait_offer(w, answer_config);
}
