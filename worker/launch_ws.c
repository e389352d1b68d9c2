/*
 * One viewer reads each output at its own pace, from its own place in the file: a slow one
 * holds up nobody and costs no memory, and a line is never cut at the border of a read.
 */
#include "worker/launch_ws.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/exchange.h"
#include "worker/launch_tail.h"
#include "worker/launches.h"
#include "worker/log_lines.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define READ_SIZE 16384u
#define TURN_READS 16u        /* reads of one viewer before others have a turn */
#define HEARTBEAT_S 15.0

/* A viewer's place in one launch's output. */
struct place {
    struct place *next;
    struct launch_entry *entry;
    struct viewer *viewer;
    bool begun;
    uint64_t offset; /* read so far */
    uint64_t told;   /* offset behind what was passed on */
    struct log_lines lines;
};

struct viewer {
    struct viewer *next, **link;
    struct place *places;
    struct ws *ws;
    ev_timer heartbeat, more;
    bool wants_heartbeat;
};

static struct viewer *viewers;
static char read_buffer[READ_SIZE];

/* --- messages --------------------------------------------------------------------------- */

static void
send_buf(struct viewer *v, struct buf *out)
{
    if (!out->failed)
        ws_send_text(v->ws, out->data, out->len);
    buf_done(out);
}

static void
begin_message(struct buf *out, struct json_writer *w, const char *type,
              const struct launch_entry *entry)
{
    buf_init(out, 0);
    json_begin(w, out);
    json_object_open(w);
    json_key(w, "type");
    json_cstring(w, type);
    json_key(w, "launch_id");
    json_cstring(w, entry->e.launch_id);
}

static void
send_status(struct viewer *v, const struct launch_entry *entry)
{
    struct json_writer w;
    struct buf out;

    begin_message(&out, &w, "status", entry);
    json_key(&w, "data");
    launches_render(&w, &entry->e);
    json_object_close(&w);
    send_buf(v, &out);
}

static void
send_line(struct place *p, const char *text, size_t len)
{
    struct json_writer w;
    struct buf out;

    begin_message(&out, &w, "log", p->entry);
    json_key(&w, "data");
    json_string(&w, text, len);
    json_key(&w, "offset");
    json_int(&w, (int64_t)p->told);
    json_object_close(&w);
    send_buf(p->viewer, &out);
}

static void
on_line(void *ctx, const char *text, size_t len)
{
    struct place *p = ctx;

    p->told += len;
    send_line(p, text, len);
}

/* --- reading ------------------------------------------------------------------------------- */

/* What is left out is said where it is missing. */
static void
jump(struct place *p, uint64_t to)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "[ssebench-webui] %llu bytes of older output are not shown",
                     (unsigned long long)(to - p->offset));

    log_lines_reset(&p->lines);
    p->offset = p->told = to;
    send_line(p, text, (size_t)n);
}

/* Pass on whole lines of bytes[0..n) until the queue is full. Returns how many were used. */
static size_t
pass_lines(struct place *p, const char *bytes, size_t n)
{
    size_t used = 0;

    while (used < n && !ws_queue_full(p->viewer->ws)) {
        const char *newline = memchr(bytes + used, '\n', n - used);
        size_t len = newline ? (size_t)(newline - bytes) + 1 - used : n - used;

        log_lines_feed(&p->lines, bytes + used, len);
        used += len;
        p->offset += len;
        if (newline)
            p->told = p->offset;
    }
    return used;
}

static void
begin_place(struct place *p)
{
    const struct event_launch *e = &p->entry->e;
    uint64_t start = launch_tail_start(p->entry->fd, e->output_size, e->output_cut);

    p->begun = true;
    if (start > 0)
        jump(p, start);
}

/* True: there is more to read now. */
static bool
read_once(struct place *p)
{
    const struct event_launch *e = &p->entry->e;
    ssize_t n;

    if (p->offset >= e->output_size || ws_queue_full(p->viewer->ws))
        return false;
    if (p->entry->fd < 0) {
        launches_want_output(p->entry);
        return false;
    }
    if (!p->begun)
        begin_place(p);
    if (p->offset < e->output_cut)
        jump(p, e->output_cut);
    n = pread(p->entry->fd, read_buffer, sizeof(read_buffer), (off_t)p->offset);
    return n > 0 && pass_lines(p, read_buffer, (size_t)n) == (size_t)n;
}

/* A last line without its end is told once the command is over. */
static void
finish_place(struct place *p)
{
    if (p->entry->e.end_ms != 0 && p->begun && p->offset >= p->entry->e.output_size &&
        p->lines.rest.len > 0)
        log_lines_end(&p->lines);
}

static void
serve(struct viewer *v)
{
    unsigned turns = TURN_READS;
    bool more = true;

    while (more && turns-- > 0) {
        more = false;
        for (struct place *p = v->places; p; p = p->next)
            more |= read_once(p);
    }
    for (struct place *p = v->places; p; p = p->next)
        finish_place(p);
    if (more && !ev_is_active(&v->more))
        ev_timer_start(worker_loop(), &v->more);
}

static void
on_more(struct ev_loop *loop, ev_timer *w, int events)
{
    serve(w->data);
}

/* --- places ---------------------------------------------------------------------------------- */

static struct place *
find_place(struct viewer *v, const struct launch_entry *entry)
{
    for (struct place *p = v->places; p; p = p->next)
        if (p->entry == entry)
            return p;
    return NULL;
}

static void
add_place(struct viewer *v, struct launch_entry *entry)
{
    struct place **at = &v->places, *p = calloc(1, sizeof(*p));

    if (!p) {
        ws_close(v->ws, 1013, "Out of memory: try again");
        return;
    }
    p->entry = entry;
    p->viewer = v;
    log_lines_init(&p->lines, on_line, p);
    while (*at)
        at = &(*at)->next;
    *at = p;
}

static void
drop_place(struct viewer *v, const struct launch_entry *entry)
{
    struct place **at = &v->places, *p;

    while (*at && (*at)->entry != entry)
        at = &(*at)->next;
    p = *at;
    if (!p)
        return;
    *at = p->next;
    log_lines_done(&p->lines);
    free(p);
}

void
launch_ws_changed(struct launch_entry *entry)
{
    for (struct viewer *v = viewers; v; v = v->next) {
        if (!find_place(v, entry))
            add_place(v, entry);
        send_status(v, entry);
    }
}

void
launch_ws_grown(struct launch_entry *entry)
{
    for (struct viewer *v = viewers; v; v = v->next)
        if (!ev_is_active(&v->more))
            serve(v);
}

void
launch_ws_cleared(struct launch_entry *entry)
{
    struct json_writer w;
    struct buf out;

    for (struct viewer *v = viewers; v; v = v->next) {
        begin_message(&out, &w, "cleared", entry);
        json_object_close(&w);
        send_buf(v, &out);
        drop_place(v, entry);
    }
}

/* --- the socket ------------------------------------------------------------------------------- */

static void
on_heartbeat(struct ev_loop *loop, ev_timer *w, int events)
{
    static const char text[] = "{\"type\":\"heartbeat\",\"intervalMs\":15000}";
    struct viewer *v = w->data;

    if (!ws_queue_full(v->ws))
        ws_send_text(v->ws, text, sizeof(text) - 1);
}

static void
on_opened(struct ws *ws, void *ctx)
{
    struct viewer *v = ctx;

    v->ws = ws;
    v->link = &viewers;
    v->next = viewers;
    if (v->next)
        v->next->link = &v->next;
    viewers = v;
    if (v->wants_heartbeat) {
        on_heartbeat(worker_loop(), &v->heartbeat, 0);
        ev_timer_start(worker_loop(), &v->heartbeat);
    }
    for (struct launch_entry *e = launches_first(); e; e = e->next) {
        send_status(v, e);
        add_place(v, e);
    }
    serve(v);
}

static void
on_drained(struct ws *ws, void *ctx)
{
    serve(ctx);
}

static void
on_closed(struct ws *ws, void *ctx)
{
    struct viewer *v = ctx;

    ev_timer_stop(worker_loop(), &v->heartbeat);
    ev_timer_stop(worker_loop(), &v->more);
    while (v->places)
        drop_place(v, v->places->entry);
    if (v->link) {
        *v->link = v->next;
        if (v->next)
            v->next->link = v->link;
    }
    free(v);
}

static const struct ws_handler launch_handler = {
    .name = "launches",
    .opened = on_opened,
    .drained = on_drained,
    .closed = on_closed,
};

void
handle_launch_ws(struct exchange *x)
{
    struct viewer *v = calloc(1, sizeof(*v));
    char flag[8];

    if (!v) {
        exchange_error(x, 503, "Try again", NULL);
        return;
    }
    v->wants_heartbeat = request_query(exchange_request(x), "heartbeat", flag, sizeof(flag)) == 1 &&
                         strcmp(flag, "1") == 0;
    ev_timer_init(&v->heartbeat, on_heartbeat, HEARTBEAT_S, HEARTBEAT_S);
    ev_timer_init(&v->more, on_more, 0., 0.);
    v->heartbeat.data = v->more.data = v;
    ws_accept(x, &launch_handler, v);
}
