/* Each search reads one dialog at a time, in slices, until its budget is used up. */
#include "worker/search.h"

#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/broker_link.h"
#include "worker/exchange.h"
#include "worker/file_slice.h"
#include "worker/iso_time.h"
#include "worker/runs.h"
#include "worker/runs_results.h"
#include "worker/search_text.h"
#include "worker/worker.h"

#define SEARCH_SLICE (64u * 1024u)       /* read at one turn of the loop */
#define SEARCH_LINE (1024u * 1024u)      /* a longer line is not looked at */
#define SEARCH_HITS_PER_RUN 20u
#define SEARCH_LIMIT 100u
#define SEARCH_LIMIT_MAX 1000u
#define SEARCH_BUDGET_MS 2000u
#define SEARCH_BUDGET_MAX_MS 10000u
#define SEARCHES 8u                      /* under way in one worker; then 503 */

static const char INVALID_Q[] = "Invalid q: expected a text of 1 to 200 bytes";
static const char OUT_OF_MEMORY[] = "Out of memory: try again";

struct search {
    struct exchange *x;
    struct search_text text;
    char (*ids)[MESSAGE_ID_SIZE]; /* the runs to read, newest first */
    size_t n_ids, at, scanned;
    unsigned limit, n_hits, n_hits_run;
    int64_t deadline_ms;
    struct runs_wait wait;
    broker_ticket ticket;
    ev_timer turn;
    int fd; /* of the dialog at hand, or -1 */
    uint64_t size, offset;
    struct buf line;    /* bytes of it that are not looked at yet */
    bool skipping;      /* inside a line that is too long */
    bool whole;         /* nothing was left out */
    struct json_writer w;
    struct buf out;
};

static unsigned n_searches;

static void
search_free(struct search *s)
{
    ev_timer_stop(worker_loop(), &s->turn);
    runs_wait_cancel(&s->wait);
    broker_cancel(s->ticket);
    if (s->fd >= 0)
        close(s->fd);
    buf_done(&s->line);
    buf_done(&s->out);
    free(s->ids);
    free(s);
    n_searches--;
}

static void
on_gone(struct exchange *x, void *ctx)
{
    search_free(ctx);
}

static void
search_finish(struct search *s)
{
    json_array_close(&s->w);
    json_key(&s->w, "scanned");
    json_int(&s->w, (int64_t)s->scanned);
    json_key(&s->w, "total");
    json_int(&s->w, (int64_t)s->n_ids);
    json_key(&s->w, "complete");
    json_bool(&s->w, s->whole && s->scanned == s->n_ids);
    json_object_close(&s->w);
    exchange_json(s->x, 200, &s->out);
    search_free(s);
}

/* --- one dialog -------------------------------------------------------------------------- */

static void
put_hit(struct search *s, const struct finished_run *run, const struct buf *members)
{
    json_object_open(&s->w);
    json_key(&s->w, "id");
    json_cstring(&s->w, run->run_id);
    json_key(&s->w, "taskId");
    json_cstring(&s->w, run->task);
    json_key(&s->w, "model");
    json_cstring(&s->w, run->model != NULL ? run->model : "unknown");
    json_key(&s->w, "agent");
    json_cstring(&s->w, run->agent != NULL ? run->agent : "unknown");
    buf_add(&s->out, ",", 1);
    buf_add(&s->out, members->data, members->len);
    json_object_close(&s->w);
}

static void
look_at_line(struct search *s, const char *line, size_t len)
{
    struct run_row row;
    struct buf members;

    if (!search_text_line(&s->text, line, len))
        return;
    if (s->n_hits_run == SEARCH_HITS_PER_RUN || s->n_hits == s->limit) {
        s->whole = false;
        return;
    }
    buf_init(&members, 0);
    if (search_text_entry(&s->text, line, len, &members) && !members.failed &&
        runs_find(s->ids[s->at], &row) && row.done != NULL) {
        put_hit(s, row.done, &members);
        s->n_hits++;
        s->n_hits_run++;
    }
    buf_done(&members);
}

/* Look at every whole line; at the end of the file also at the last. */
static void
look_at_lines(struct search *s, bool last)
{
    size_t from = 0;

    while (from < s->line.len) {
        const char *start = s->line.data + from;
        const char *end = memchr(start, '\n', s->line.len - from);

        if (end == NULL && !last)
            break;
        if (end == NULL)
            end = s->line.data + s->line.len;
        if (!s->skipping)
            look_at_line(s, start, (size_t)(end - start));
        s->skipping = false;
        from = (size_t)(end - s->line.data) + (end < s->line.data + s->line.len);
    }
    buf_consume(&s->line, from);
    if (s->line.len > SEARCH_LINE) {
        buf_reset(&s->line);
        s->skipping = true;
        s->whole = false;
    }
}

static void next_run(struct search *s);

static void
end_run(struct search *s)
{
    close(s->fd);
    s->fd = -1;
    buf_reset(&s->line);
    s->skipping = false;
    s->n_hits_run = 0;
    s->scanned++;
    s->at++;
    next_run(s);
}

static void
on_turn(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct search *s = timer->data;
    char *room;
    int64_t n;

    if (s->fd < 0) {
        next_run(s);
        return;
    }
    if (iso_time_steady_ms() >= s->deadline_ms) {
        search_finish(s);
        return;
    }
    room = buf_reserve(&s->line, SEARCH_SLICE);
    n = room != NULL ? file_slice_read(s->fd, room, SEARCH_SLICE, s->offset) : -ENOMEM;
    if (n > 0) {
        buf_commit(&s->line, (size_t)n);
        s->offset += (uint64_t)n;
    }
    look_at_lines(s, n <= 0);
    s->whole = s->whole && n >= 0;
    if (n <= 0)
        end_run(s);
    else
        ev_timer_start(loop, &s->turn); /* zero delay: others have their turn between */
}

static void
on_dialog(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_run_file *a = answer;
    struct search *s = ctx;

    s->ticket = 0;
    if (a != NULL && a->status == ANSWER_OK && n_fds == 1) {
        s->fd = fds[0];
        fds[0] = -1;
        s->offset = 0;
    } else {
        bool none = a != NULL && a->status == ANSWER_NOT_FOUND;

        /* No dialog is a dialog without a hit; one that cannot be had now leaves the run out. */
        s->whole = s->whole && none;
        s->scanned += none;
        s->at++;
    }
    ev_timer_start(worker_loop(), &s->turn);
}

static void
next_run(struct search *s)
{
    struct run_row row;

    if (s->at == s->n_ids || s->n_hits == s->limit ||
        iso_time_steady_ms() >= s->deadline_ms) {
        search_finish(s);
        return;
    }
    if (!runs_find(s->ids[s->at], &row) || row.done == NULL) {
        s->scanned++;
        s->at++;
        ev_timer_start(worker_loop(), &s->turn);
        return;
    }
    s->ticket = broker_ask_run_file(runs_epoch(), row.done->ref, RUN_FILE_DIALOG, on_dialog, s);
}

/* --- start ----------------------------------------------------------------------------------- */

static void
on_runs(void *ctx)
{
    struct search *s = ctx;
    size_t n;
    const struct run_row *rows = runs_rows(&n);

    s->ids = calloc(n > 0 ? n : 1, sizeof *s->ids);
    if (rows == NULL || s->ids == NULL) {
        struct exchange *x = s->x;

        search_free(s);
        exchange_on_gone(x, NULL, NULL);
        exchange_error(x, 503, OUT_OF_MEMORY, NULL);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (rows[i].done != NULL)
            message_string_set(s->ids[s->n_ids++], MESSAGE_ID_SIZE, rows[i].done->run_id);
    next_run(s);
}

/* A parameter that is a number from 1 to `max`. False: it is something else. */
static bool
number_parameter(const struct request *r, const char *name, unsigned max, unsigned *ret)
{
    char text[16], *end;
    unsigned long value;
    int found = request_query(r, name, text, sizeof text);

    if (found == 0)
        return true;
    value = found == 1 && text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : 0;
    if (value < 1 || value > max || *end != '\0')
        return false;
    *ret = (unsigned)value;
    return true;
}

static const char *
read_parameters(struct search *s, const struct request *r)
{
    char text[SEARCH_TEXT_MAX + 1];
    unsigned budget_ms = SEARCH_BUDGET_MS;

    s->limit = SEARCH_LIMIT;
    if (request_query(r, "q", text, sizeof text) != 1)
        return INVALID_Q;
    errno = 0;
    if (!search_text_init(&s->text, text))
        return errno == ENOMEM ? OUT_OF_MEMORY : INVALID_Q;
    if (!number_parameter(r, "limit", SEARCH_LIMIT_MAX, &s->limit))
        return "Invalid limit: expected a number from 1 to 1000";
    if (!number_parameter(r, "budget", SEARCH_BUDGET_MAX_MS, &budget_ms))
        return "Invalid budget: expected milliseconds from 1 to 10000";
    s->deadline_ms = iso_time_steady_ms() + budget_ms;
    return NULL;
}

void
handle_search(struct exchange *x)
{
    struct search *s = n_searches < SEARCHES ? calloc(1, sizeof *s) : NULL;
    const char *error;

    if (s == NULL) {
        exchange_error(x, 503, "Too many searches are under way: try again", NULL);
        return;
    }
    n_searches++;
    s->x = x;
    s->fd = -1;
    s->whole = true;
    buf_init(&s->line, 0);
    buf_init(&s->out, 0);
    ev_timer_init(&s->turn, on_turn, 0., 0.);
    s->turn.data = s;
    error = read_parameters(s, exchange_request(x));
    if (error != NULL) {
        search_free(s);
        exchange_error(x, error == OUT_OF_MEMORY ? 503 : 400, error, NULL);
        return;
    }
    json_begin(&s->w, &s->out);
    json_object_open(&s->w);
    json_key(&s->w, "results");
    json_array_open(&s->w);
    exchange_on_gone(x, on_gone, s);
    runs_wait(&s->wait, LIMIT_LIST_WAIT_MS, on_runs, s);
}
