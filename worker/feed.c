/* A live run's viewers: who has what, and handing on what is new. */
#include "worker/feed.h"

#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/dialog_read.h"
#include "worker/feed_parts.h"
#include "worker/iso_time.h"
#include "worker/upstream_kept.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define SHARED_MAX (256u * 1024u) /* growth that is rendered once for all who are level */
#define SHARED_BATCHES 64u
#define ALL_DUE ((1u << FEED_MESSAGES) - 1)

static struct feed *feeds;

struct feed *
feed_list(void)
{
    return feeds;
}

/* --- the feed itself ----------------------------------------------------------------------- */

static void
unlist(struct feed *f)
{
    if (f->link == NULL)
        return;
    *f->link = f->next;
    if (f->next != NULL)
        f->next->link = f->link;
    f->link = NULL;
}

static void
free_if_unused(struct feed *f)
{
    if (f->n_places > 0 || f->guard > 0)
        return;
    unlist(f);
    feed_daemon_end(f);
    feed_file_end(f);
    for (unsigned i = 0; i < FEED_MESSAGES; i++)
        ws_bytes_unref(f->messages[i].bytes);
    free(f);
}

static struct feed *
find_or_make(const char *run_id)
{
    struct feed *f;

    for (f = feeds; f != NULL; f = f->next)
        if (strcmp(f->run_id, run_id) == 0)
            return f;
    f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    message_string_set(f->run_id, sizeof f->run_id, run_id);
    f->begun = worker_now_s();
    f->active = ev_now(worker_loop());
    f->last_seq = -1;
    f->source.fd = -1;
    f->next = feeds;
    f->link = &feeds;
    if (f->next != NULL)
        f->next->link = &f->next;
    feeds = f;
    f->guard++;
    feed_set_message(f, FEED_STATUS, "{\"type\":\"status\",\"status\":\"connecting\"", "", 0);
    feed_file_begin(f);
    feed_daemon_begin(f);
    f->guard--;
    return f;
}

bool
feed_set_message(struct feed *f, enum feed_message kind, const char *prefix,
                 const char *value, size_t len)
{
    size_t n_prefix = strlen(prefix), all = n_prefix + len + 1;
    char *text;

    if (f->messages[kind].len == all &&
        memcmp(f->messages[kind].data, prefix, n_prefix) == 0 &&
        memcmp(f->messages[kind].data + n_prefix, value, len) == 0)
        return false;
    text = malloc(all);
    if (text == NULL)
        return false;
    memcpy(text, prefix, n_prefix);
    memcpy(text + n_prefix, value, len);
    text[all - 1] = '}';
    ws_bytes_unref(f->messages[kind].bytes);
    f->messages[kind].bytes = ws_bytes_take(text, all);
    f->messages[kind].data = f->messages[kind].bytes != NULL ? text : "";
    f->messages[kind].len = f->messages[kind].bytes != NULL ? all : 0;
    f->active = ev_now(worker_loop());
    for (struct feed_place *p = f->places; p != NULL; p = p->next)
        p->due |= (uint8_t)(1u << kind);
    return true;
}

void
feed_touch(struct feed *f)
{
    f->changed = worker_now_s();
    f->active = ev_now(worker_loop());
    feed_daemon_hurry(f, 1.0);
}

/* --- what one viewer reads for itself -------------------------------------------------------- */

static void
close_document(struct feed_place *p)
{
    if (p->document.fill != NULL)
        p->document.done(p->document.ctx);
    p->document = (struct sdk_document){0};
    p->reader = NULL;
}

static void
later(struct feed_place *p)
{
    if (!ev_is_active(&p->slice))
        ev_timer_start(worker_loop(), &p->slice);
}

static void
on_slice(struct ev_loop *loop, ev_timer *w, int events)
{
    feed_pump(w->data);
}

static struct dialog_reader *
new_reader(const struct feed *f, const struct feed_place *p, uint64_t from)
{
    struct dialog_reader *r =
        dialog_reader_new(p->file->fd, f->file_end, p->last_seq,
                          LIMIT_DIALOG_ENTRIES - p->n_entries);

    if (r == NULL)
        return NULL;
    r->borrowed = r->rising = true;
    r->offset = from;
    return r;
}

static bool
open_document(struct feed_place *p)
{
    p->reader = new_reader(p->feed, p, p->offset);
    if (p->reader == NULL || sdk_document_dialog_of(p->reader, &p->document) != 0) {
        p->reader = NULL;
        p->document = (struct sdk_document){0};
        ws_close(p->ws, 1013, "Out of memory");
        return false;
    }
    return true;
}

static void
finish_document(struct feed_place *p)
{
    p->last_seq = p->reader->last_seq;
    p->n_entries += p->reader->n_entries;
    p->truncated = p->reader->truncated;
    p->offset = p->reader->size; /* less than was asked for, when it shrank */
    close_document(p);
}

/* One slice of its own. */
static void
send_slice(struct feed_place *p)
{
    struct buf out;
    bool ends = false;
    int more;

    buf_init(&out, 0);
    more = p->document.fill(p->document.ctx, &out, &ends);
    if (out.failed || more < 0) {
        buf_done(&out);
        ws_close(p->ws, 1011, "The run's dialog cannot be read");
        close_document(p);
        return;
    }
    if (out.len > 0 || (ends && p->in_message)) {
        ws_send_part(p->ws, out.len > 0 ? out.data : "", out.len, !p->in_message, ends);
        p->in_message = !ends;
    }
    buf_done(&out);
    if (more == 0)
        finish_document(p);
    later(p);
}

/* --- what is due -------------------------------------------------------------------------------- */

static void
send_due(struct feed_place *p, enum feed_message kind)
{
    struct feed *f = p->feed;

    if (!(p->due & (1u << kind)) || f->messages[kind].bytes == NULL)
        return;
    p->due &= (uint8_t)~(1u << kind);
    ws_send_shared(p->ws, f->messages[kind].bytes);
}

/* Nothing of the past is missing: from here on it gets what everybody gets. */
static bool
is_level(struct feed_place *p)
{
    struct feed *f = p->feed;

    if (p->truncated)
        return true;
    if (f->file == NULL)
        return p->last_seq >= f->last_seq;
    if (p->file != f->file) {
        feed_file_unref(p->file);
        p->file = feed_file_ref(f->file);
        p->offset = 0;
    }
    return p->offset >= f->file_end;
}

static void
catch_up(struct feed_place *p)
{
    if (p->feed->file == NULL) {
        p->behind = true;
        feed_daemon_serve(p->feed);
    } else if (open_document(p)) {
        send_slice(p);
    }
}

void
feed_pump(struct feed_place *p)
{
    struct feed *f = p->feed;

    if (f == NULL || ws_queue_full(p->ws))
        return;
    if (p->document.fill != NULL) {
        send_slice(p);
        return;
    }
    if (p->over_due || f->state == FEED_OVER) {
        p->over(p->ctx);
        return;
    }
    send_due(p, FEED_STATUS);
    if (f->state != FEED_READY)
        return;
    p->told_ready = true;
    send_due(p, FEED_PROJECT);
    send_due(p, FEED_FILES);
    send_due(p, FEED_DIFF);
    p->level = is_level(p);
    if (p->level)
        send_due(p, FEED_RESULT);
    else
        catch_up(p);
}

void
feed_pump_all(struct feed *f)
{
    struct feed_place *next;

    f->guard++;
    for (struct feed_place *p = f->places; p != NULL; p = next) {
        next = p->next;
        if (p->document.fill == NULL)
            feed_pump(p);
    }
    f->guard--;
    free_if_unused(f);
}

/* --- what everybody gets -------------------------------------------------------------------------- */

/* Messages with the entries that `leader` has not got. The number, or -1: too many, no memory. */
static int
render_shared(struct feed *f, struct feed_place *leader, struct ws_bytes **messages,
              double *ret_last_seq, uint32_t *ret_n_entries, bool *ret_truncated)
{
    struct dialog_reader *r = new_reader(f, leader, leader->offset);
    struct sdk_document d = {0};
    struct buf out;
    int n = 0, more = 1;

    if (r == NULL || sdk_document_dialog_of(r, &d) != 0)
        return -1;
    buf_init(&out, 0);
    while (more == 1 && n < (int)SHARED_BATCHES && !out.failed) {
        bool ends = false;
        size_t len;

        more = d.fill(d.ctx, &out, &ends);
        if (!ends || out.len == 0)
            continue;
        len = out.len;
        messages[n++] = ws_bytes_take(buf_take(&out, &len), len);
    }
    *ret_last_seq = r->last_seq;
    *ret_n_entries = r->n_entries;
    *ret_truncated = r->truncated;
    d.done(d.ctx);
    buf_done(&out);
    return more == 0 ? n : -1;
}

static bool
can_share(const struct feed *f, const struct feed_place *p, uint64_t from)
{
    return p->level && p->file == f->file && p->offset == from && !p->truncated &&
           p->document.fill == NULL;
}

static void
share(struct feed *f, struct feed_place *leader, uint64_t from)
{
    struct ws_bytes *messages[SHARED_BATCHES];
    double since = leader->last_seq, last_seq = since;
    uint32_t n_before = leader->n_entries, n_entries = 0;
    bool truncated = false;
    int n = render_shared(f, leader, messages, &last_seq, &n_entries, &truncated);

    for (struct feed_place *p = leader; n >= 0 && p != NULL; p = p->next) {
        if (!can_share(f, p, from) || p->last_seq != since || p->n_entries != n_before ||
            ws_queue_full(p->ws))
            continue;
        for (int i = 0; i < n; i++)
            ws_send_shared(p->ws, messages[i]);
        p->offset = f->file_end;
        p->last_seq = last_seq;
        p->n_entries += n_entries;
        p->truncated = truncated;
    }
    for (int i = 0; i < n; i++)
        ws_bytes_unref(messages[i]);
}

void
feed_file_grew(struct feed *f, uint64_t from)
{
    feed_touch(f);
    if (f->state != FEED_READY)
        return;
    if (f->file_end - from <= SHARED_MAX)
        for (struct feed_place *p = f->places; p != NULL; p = p->next)
            if (can_share(f, p, from) && !ws_queue_full(p->ws))
                share(f, p, from);
    feed_pump_all(f);
}

void
feed_over(struct feed *f)
{
    struct feed_place *next;

    f->state = FEED_OVER;
    unlist(f);
    feed_daemon_end(f);
    upstream_kept_forget(f->run_id);
    f->guard++;
    for (struct feed_place *p = f->places; p != NULL; p = next) {
        next = p->next;
        p->over_due = true;
        if (p->document.fill == NULL)
            later(p);
    }
    f->guard--;
    free_if_unused(f);
}

/* --- joining and leaving ------------------------------------------------------------------------------ */

void
feed_join(struct feed_place *p, const char *run_id)
{
    struct feed *f = find_or_make(run_id);

    if (f == NULL) {
        ws_close(p->ws, 1013, "Out of memory");
        return;
    }
    p->feed = f;
    p->due = ALL_DUE;
    p->in_message = p->level = p->behind = p->over_due = p->truncated = false;
    p->offset = 0;
    p->file = NULL;
    p->next = f->places;
    p->link = &f->places;
    if (p->next != NULL)
        p->next->link = &p->next;
    f->places = p;
    f->n_places++;
    ev_timer_init(&p->slice, on_slice, 0., 0.);
    p->slice.data = p;
    later(p);
}

void
feed_leave(struct feed_place *p)
{
    struct feed *f = p->feed;

    if (f == NULL)
        return;
    ev_timer_stop(worker_loop(), &p->slice);
    feed_daemon_drop(f, p);
    close_document(p);
    feed_file_unref(p->file);
    p->file = NULL;
    p->feed = NULL;
    *p->link = p->next;
    if (p->next != NULL)
        p->next->link = p->link;
    f->n_places--;
    free_if_unused(f);
}

void
feed_resume(struct feed_place *p)
{
    if (p->feed != NULL)
        later(p);
}

void
feed_report(struct buf *out)
{
    static const char *const names[] = {"connecting", "ready", "error", "over"};
    struct json_writer w;
    char stamp[ISO_TIME_SIZE];

    json_begin(&w, out);
    json_array_open(&w);
    for (const struct feed *f = feeds; f != NULL; f = f->next) {
        json_object_open(&w);
        json_key(&w, "containerId");
        json_cstring(&w, f->run_id);
        json_key(&w, "clientCount");
        json_int(&w, f->n_places);
        json_key(&w, "status");
        json_cstring(&w, names[f->state]);
        json_key(&w, "lastActivity");
        iso_time_format((int64_t)(f->active * 1000), stamp);
        json_cstring(&w, stamp);
        json_object_close(&w);
    }
    json_array_close(&w);
}
