/* GET /api/launch/status and logs: after the broker has told what it knows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/broker_link.h"
#include "worker/exchange.h"
#include "worker/launch.h"
#include "worker/launch_tail.h"
#include "worker/launches.h"
#include "worker/log_lines.h"

#define ID_SIZE 128u /* longer ones name no launch */

/* The `id` of the query into `out`. 1: given. */
static int
query_id(const struct exchange *x, char out[ID_SIZE])
{
    int r = request_query(exchange_request(x), "id", out, ID_SIZE);

    if (r == -EBADMSG) {
        out[0] = '\0';
        return 1;
    }
    return r == 1 && out[0] != '\0';
}

static void
put_launches(struct json_writer *w)
{
    json_key(w, "launches");
    json_array_open(w);
    for (struct launch_entry *e = launches_first(); e; e = e->next)
        launches_render(w, &e->e);
    json_array_close(w);
}

static void
on_status(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    struct exchange *x = launch_wait_end(ctx);
    const struct launch_entry *entry;
    struct json_writer w;
    struct buf body;
    char id[ID_SIZE];

    if (!x)
        return;
    buf_init(&body, 0);
    json_begin(&w, &body);
    if (!query_id(x, id)) {
        json_object_open(&w);
        put_launches(&w);
        json_object_close(&w);
    } else if ((entry = launches_find(id)) != NULL) {
        launches_render(&w, &entry->e);
    } else {
        buf_add_str(&body, "{\"status\":null}");
    }
    exchange_json(x, 200, &body);
}

void
handle_launch_status(struct exchange *x)
{
    struct launch_wait *w = launch_wait_new(x, NULL);

    if (w)
        launches_sync(on_status, w);
}

/* --- logs ----------------------------------------------------------------------------------- */

static void
put_line(void *ctx, const char *text, size_t len)
{
    json_string(ctx, text, len);
}

/* Lines of the file from `start` on; the end of an output that still grows may be half a line. */
static void
put_lines(struct json_writer *w, int fd, uint64_t start, uint64_t size)
{
    static char block[65536];
    struct log_lines lines;

    log_lines_init(&lines, put_line, w);
    while (start < size && !w->out->failed) {
        size_t want = size - start < sizeof(block) ? (size_t)(size - start) : sizeof(block);
        ssize_t n = pread(fd, block, want, (off_t)start);

        if (n <= 0)
            break;
        log_lines_feed(&lines, block, (size_t)n);
        start += (uint64_t)n;
    }
    log_lines_end(&lines);
    log_lines_done(&lines);
}

static void
answer_logs(struct exchange *x, int fd, uint64_t size, uint64_t cut)
{
    uint64_t start = fd >= 0 ? launch_tail_start(fd, size, cut) : 0;
    struct json_writer w;
    struct buf body;

    buf_init(&body, 0);
    json_begin(&w, &body);
    json_object_open(&w);
    json_key(&w, "logs");
    json_array_open(&w);
    if (fd >= 0)
        put_lines(&w, fd, start, size);
    json_array_close(&w);
    if (start > 0) { /* R8: a cut list says that it was cut */
        json_key(&w, "truncated");
        json_bool(&w, true);
        json_key(&w, "skippedBytes");
        json_int(&w, (int64_t)start);
    }
    json_object_close(&w);
    exchange_json(x, 200, &body);
}

static void
on_output(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_launch_output *a = answer;
    struct exchange *x = launch_wait_end(ctx);

    if (!x)
        return;
    if (!a || a->status == ANSWER_BUSY)
        launch_answer_away(x, "The output cannot be read now");
    else if (a->status == ANSWER_OK && n_fds == 1)
        answer_logs(x, fds[0], a->size, a->cut);
    else
        answer_logs(x, -1, 0, 0);
}

void
handle_launch_logs(struct exchange *x)
{
    struct request_launch_ref q = {0};
    struct launch_wait *w;
    char id[ID_SIZE];

    if (!query_id(x, id)) {
        exchange_error(x, 400, "Missing required query parameter: id", NULL);
        return;
    }
    if (!policy_launch_id_valid(id)) {
        answer_logs(x, -1, 0, 0);
        return;
    }
    message_string_set(q.launch_id, sizeof(q.launch_id), id);
    w = launch_wait_new(x, NULL);
    if (w)
        broker_ask(MESSAGE_LAUNCH_OUTPUT, &q, NULL, 0, on_output, w);
}
