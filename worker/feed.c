/* A live run's viewers: who has what, and what is due to whom. */
#include "worker/feed.h"

#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "worker/feed_parts.h"
#include "worker/iso_time.h"
#include "worker/upstream_kept.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define ALL_DUE ((1u << FEED_MESSAGES) - 1)

static const char CONNECTING[] = "{\"type\":\"status\",\"status\":\"connecting\"}";

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
    feed_message_end(f);
    feed_file_end(f);
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
    feed_message_begin(f);
    feed_message_set(f, FEED_STATUS, CONNECTING, sizeof CONNECTING - 1);
    feed_file_begin(f);
    feed_daemon_begin(f);
    f->guard--;
    return f;
}

void
feed_touch(struct feed *f)
{
    f->changed = worker_now_s();
    f->active = ev_now(worker_loop());
    feed_daemon_hurry(f, 1.0);
}

/* --- what is due -------------------------------------------------------------------------------- */

void
feed_pump_later(struct feed_place *p)
{
    if (!ev_is_active(&p->slice))
        ev_timer_start(worker_loop(), &p->slice);
}

static void
send_due(struct feed_place *p, enum feed_message kind)
{
    struct feed *f = p->feed;

    if (!(p->due & (1u << kind)) || f->messages[kind] == NULL)
        return;
    p->due &= (uint8_t)~(1u << kind);
    ws_send_shared(p->ws, f->messages[kind]);
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
    } else if (feed_dialog_open(p)) {
        feed_dialog_send(p);
    }
}

/* Give this one what is due. */
static void
pump(struct feed_place *p)
{
    struct feed *f = p->feed;

    if (f == NULL || ws_queue_full(p->ws))
        return;
    if (p->document.fill != NULL) {
        feed_dialog_send(p);
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

static void
on_slice(struct ev_loop *loop, ev_timer *w, int events)
{
    pump(w->data);
}

void
feed_pump_all(struct feed *f)
{
    struct feed_place *next;

    f->guard++;
    for (struct feed_place *p = f->places; p != NULL; p = next) {
        next = p->next;
        if (p->document.fill == NULL)
            pump(p);
    }
    f->guard--;
    free_if_unused(f);
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
            feed_pump_later(p);
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
    feed_pump_later(p);
}

void
feed_leave(struct feed_place *p)
{
    struct feed *f = p->feed;

    if (f == NULL)
        return;
    ev_timer_stop(worker_loop(), &p->slice);
    feed_entries_drop(f, p);
    feed_dialog_close(p);
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
        feed_pump_later(p);
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
