/* /api/containers: the list, whole or a page of it, and one run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/exchange.h"
#include "worker/list_query.h"
#include "worker/run_render.h"
#include "worker/runs.h"

#define FIND_MS 10000u /* for one run: the first scan must be through before a 404 */

/* A request that waits for the table. */
struct list_ask {
    struct exchange *x;
    struct runs_wait wait;
    struct list_query query;
};

/* The whole list as it was last rendered: repeated listings only copy it. */
static struct {
    struct buf bytes;
    uint64_t generation; /* of the rows; 0: none */
} cache;

static void
free_ask(struct list_ask *ask)
{
    runs_wait_cancel(&ask->wait);
    free(ask);
}

static void
on_gone(struct exchange *x, void *ctx)
{
    free_ask(ctx);
}

/* --- the list ------------------------------------------------------------------------- */

/* "[...]" of all rows, from the cache when nothing changed. */
static const struct buf *
whole_list(const struct run_row *rows, size_t n_rows)
{
    uint64_t generation = runs_listing().generation;
    struct json_writer w;

    if (cache.generation == generation && !cache.bytes.failed)
        return &cache.bytes;
    buf_reset(&cache.bytes);
    json_begin(&w, &cache.bytes);
    json_array_open(&w);
    for (size_t i = 0; i < n_rows; i++)
        run_render(&w, &rows[i]);
    json_array_close(&w);
    cache.generation = generation;
    return &cache.bytes;
}

/* Members behind the runs: how many there are, how old the listing is, what is wrong. */
static void
put_state(struct json_writer *w, size_t total)
{
    struct runs_listing l = runs_listing();

    json_key(w, "total");
    json_int(w, (int64_t)total);
    json_key(w, "listAgeMs");
    if (l.known)
        json_int(w, (int64_t)l.age_ms);
    else
        json_null(w);
    if (l.error != NULL) {
        json_key(w, "runnerError");
        json_cstring(w, l.error);
    }
    if (!l.scanned) {
        json_key(w, "incomplete"); /* the finished runs are still being read */
        json_bool(w, true);
    }
    if (l.cut != NULL) {
        json_key(w, "resultsCut");
        json_cstring(w, l.cut);
    }
}

static void
put_page(struct json_writer *w, const struct list_query *q, const struct run_row *rows,
         size_t n_rows, size_t *ret_total)
{
    const struct run_row **found = list_query_select(q, rows, n_rows, ret_total);
    size_t end = *ret_total;

    if (end > q->offset && end - q->offset > q->limit)
        end = (size_t)q->offset + q->limit;
    w->out->failed |= found == NULL && n_rows > 0;
    json_array_open(w);
    for (size_t i = q->offset; i < end; i++)
        run_render(w, found[i]);
    json_array_close(w);
    free(found);
}

static void
answer_list(struct exchange *x, const struct list_query *q)
{
    size_t n_rows, total;
    const struct run_row *rows = runs_rows(&n_rows);
    struct json_writer w;
    struct buf body;

    buf_init(&body, 0);
    body.failed = rows == NULL; /* an empty list is not NULL */
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, "containers");
    total = n_rows;
    if (q->given) {
        put_page(&w, q, rows, n_rows, &total);
        json_key(&w, "offset");
        json_int(&w, q->offset);
    } else {
        const struct buf *list = whole_list(rows, n_rows);

        body.failed |= list->failed;
        json_raw(&w, list->data, list->failed ? 0 : list->len);
    }
    put_state(&w, total);
    json_object_close(&w);
    if (!body.failed) {
        exchange_json(x, 200, &body);
        return;
    }
    buf_done(&body);
    exchange_error(x, 500, "Failed to list containers", "Out of memory");
}

static void
on_list_ready(void *ctx)
{
    struct list_ask *ask = ctx;
    struct exchange *x = ask->x;
    struct list_query query = ask->query;

    free_ask(ask);
    exchange_on_gone(x, NULL, NULL);
    answer_list(x, &query);
}

/* --- one run ---------------------------------------------------------------------------- */

static void
answer_run(struct exchange *x)
{
    struct run_row row;
    struct json_writer w;
    struct buf body;

    if (!runs_find(exchange_param(x, 0), &row)) {
        if (runs_listing().scanned)
            exchange_error(x, 404, "Container not found", NULL);
        else
            exchange_error(x, 500, "Failed to get container",
                           "The runs are still being read: try again");
        return;
    }
    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, "container");
    run_render(&w, &row);
    json_object_close(&w);
    exchange_json(x, 200, &body);
}

static void
on_run_ready(void *ctx)
{
    struct list_ask *ask = ctx;
    struct exchange *x = ask->x;

    free_ask(ask);
    exchange_on_gone(x, NULL, NULL);
    answer_run(x);
}

/* --- routes ------------------------------------------------------------------------------- */

static void
wait_for_table(struct exchange *x, const struct list_query *query, unsigned limit_ms,
               void (*ready)(void *ctx), const char *failed)
{
    struct list_ask *ask = calloc(1, sizeof *ask);

    if (ask == NULL) {
        exchange_error(x, 500, failed, "Out of memory");
        return;
    }
    ask->x = x;
    if (query != NULL)
        ask->query = *query;
    exchange_on_gone(x, on_gone, ask);
    runs_wait(&ask->wait, limit_ms, ready, ask);
}

void
handle_containers(struct exchange *x)
{
    struct list_query query;
    const char *error = list_query_parse(exchange_request(x), &query);

    if (error != NULL)
        exchange_error(x, 400, error, NULL);
    else
        wait_for_table(x, &query, LIMIT_LIST_WAIT_MS, on_list_ready,
                       "Failed to list containers");
}

void
handle_container(struct exchange *x)
{
    wait_for_table(x, NULL, FIND_MS, on_run_ready, "Failed to get container");
}
