/* The entries of a daemon's answer, handed out a piece a turn: it may have 32 MiB, and one entry
   of it too. */
#include <string.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/feed_parts.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define BATCH (64u * 1024u)     /* bytes of entries in one message; a longer one comes alone */
#define SCAN (4u * BATCH)       /* bytes looked at in one turn: about half a millisecond */

static const char HEAD[] = "{\"type\":\"dialog\",\"entries\":[";

static struct ws_bytes *
finish_text(struct buf *out)
{
    size_t len;
    char *text = buf_take(out, &len);

    return ws_bytes_take(text, len);
}

static void
add_tail(struct buf *out, double last_seq, bool truncated)
{
    struct json_writer w;

    buf_add_str(out, "],\"lastSeq\":");
    json_begin(&w, out);
    json_double(&w, last_seq);
    buf_add_str(out, truncated ? ",\"truncated\":true}" : "}");
}

/* --- who gets it ------------------------------------------------------------------------------ */

bool
feed_may_take(const struct feed_place *p)
{
    return p->document.fill == NULL && !p->truncated && !ws_queue_full(p->ws);
}

/* Everything up to here has been handed out. */
static double
handed_out(const struct feed *f)
{
    const struct feed_entries *e = &f->entries;

    return e->single && e->for_place != NULL ? e->for_place->last_seq : f->last_seq;
}

static bool
is_receiver(const struct feed *f, const struct feed_place *p, double since)
{
    const struct feed_entries *e = &f->entries;

    if (e->single ? p != e->for_place : !p->level || p->last_seq != since)
        return false;
    return feed_may_take(p);
}

/* The dialog is cut here for this place, and it is told. */
static void
cut(struct feed_place *p)
{
    struct buf out;

    p->truncated = true;
    buf_init(&out, 0);
    buf_add_str(&out, HEAD);
    add_tail(&out, p->last_seq, true);
    if (!out.failed)
        ws_send_text(p->ws, out.data, out.len);
    buf_done(&out);
}

/* As many as all may take who may take one more. */
static unsigned
most_entries(const struct feed *f, double since)
{
    unsigned most = LIMIT_DIALOG_ENTRIES;

    for (const struct feed_place *p = f->places; p != NULL; p = p->next)
        if (is_receiver(f, p, since) && p->n_entries < LIMIT_DIALOG_ENTRIES &&
            LIMIT_DIALOG_ENTRIES - p->n_entries < most)
            most = LIMIT_DIALOG_ENTRIES - p->n_entries;
    return most;
}

/* A message in one part, or in three. */
struct message {
    struct ws_bytes *part[3];
    unsigned n_parts;
    unsigned n_entries;
    double last_seq;
};

static void
send_message(struct feed_place *p, const struct message *m)
{
    if (p->n_entries + m->n_entries > LIMIT_DIALOG_ENTRIES) {
        cut(p);
        return;
    }
    for (unsigned i = 0; i < m->n_parts; i++)
        ws_send_shared_part(p->ws, m->part[i], i == 0, i + 1 == m->n_parts);
    p->last_seq = m->last_seq;
    p->n_entries += m->n_entries;
}

/* Uses up the parts. False: no memory for one. */
static bool
give(struct feed *f, struct message *m, double since)
{
    bool whole = true;

    for (unsigned i = 0; i < m->n_parts; i++)
        whole = whole && m->part[i] != NULL;
    for (struct feed_place *p = f->places; whole && p != NULL; p = p->next)
        if (is_receiver(f, p, since))
            send_message(p, m);
    for (unsigned i = 0; i < m->n_parts; i++)
        ws_bytes_unref(m->part[i]);
    if (!whole)
        return false;
    f->entries.gained = true;
    if (!f->entries.single) {
        f->last_seq = m->last_seq;
        f->changed = worker_now_s();
        f->active = ev_now(worker_loop());
    }
    return true;
}

/* --- what it gets ------------------------------------------------------------------------------- */

enum found { FOUND_ENTRY, FOUND_NOTHING, FOUND_END };

/* Look at no more than `most` bytes for the next entry above `last_seq`. */
static enum found
find_entry(struct feed_entries *e, double last_seq, size_t most)
{
    struct body_element *el = &e->element;
    int r = body_element_next(el, e->text, e->end, most);
    size_t from = e->fed > el->start ? e->fed : el->start;

    if (r < 0)
        return FOUND_END;
    if ((r == 1 || el->begun) && el->end > from) {
        json_line_feed(&e->line, e->text + from, el->end - from);
        e->fed = el->end;
    }
    if (r == 0)
        return FOUND_NOTHING;
    e->found = json_line_end(&e->line, &e->seq) && e->seq > last_seq;
    json_line_begin(&e->line);
    return e->found ? FOUND_ENTRY : FOUND_NOTHING;
}

static size_t
entry_len(const struct feed_entries *e)
{
    return e->element.end - e->element.start;
}

/* A long entry, alone and without a copy. */
static bool
give_long(struct feed *f, double since)
{
    struct feed_entries *e = &f->entries;
    struct message m = {.n_parts = 3, .n_entries = 1, .last_seq = e->seq};
    struct buf tail;

    buf_init(&tail, 0);
    add_tail(&tail, e->seq, false);
    m.part[0] = ws_bytes_new(HEAD, sizeof HEAD - 1);
    m.part[1] = ws_bytes_part(e->body, e->element.start, entry_len(e));
    m.part[2] = finish_text(&tail);
    e->found = false;
    return give(f, &m, since);
}

/* Short entries, until it is enough for one message or for one turn. False: there are no more,
 * `ret_given`: somebody may take the rest. */
static bool
give_batch(struct feed *f, double since, bool *ret_given)
{
    struct feed_entries *e = &f->entries;
    struct message m = {.n_parts = 1, .last_seq = since};
    unsigned most = most_entries(f, since);
    size_t begun = e->element.at;
    enum found found = FOUND_ENTRY;
    struct buf out;

    buf_init(&out, 0);
    buf_add_str(&out, HEAD);
    while (out.len < BATCH && m.n_entries < most && e->element.at - begun < SCAN) {
        if (!e->found)
            found = find_entry(e, m.last_seq, SCAN - (e->element.at - begun));
        if (found == FOUND_END || (e->found && entry_len(e) > BATCH))
            break;
        if (!e->found)
            continue;
        if (m.n_entries++ > 0)
            buf_add(&out, ",", 1);
        buf_add(&out, e->text + e->element.start, entry_len(e));
        m.last_seq = e->seq;
        e->found = false;
    }
    if (m.n_entries > 0) {
        add_tail(&out, m.last_seq, false);
        m.part[0] = finish_text(&out);
        *ret_given = give(f, &m, since);
    }
    buf_done(&out);
    return found != FOUND_END;
}

/* --- turns ------------------------------------------------------------------------------------------ */

static void
forget(struct feed *f)
{
    struct feed_entries *e = &f->entries;

    ev_timer_stop(worker_loop(), &e->timer);
    ws_bytes_unref(e->body);
    e->body = NULL;
    e->for_place = NULL;
    e->single = e->found = false;
}

/* `all`: whom they were for has got all that was in the answer. */
static void
finish(struct feed *f, bool all)
{
    struct feed_entries *e = &f->entries;
    struct feed_place *p = e->single ? e->for_place : NULL;
    bool again = all && e->truncated && e->gained && !e->single;

    if (all && e->truncated && !e->gained) {
        /* One entry alone is over the limit: what comes behind it cannot be asked for. */
        for (struct feed_place *q = f->places; q != NULL; q = q->next)
            if (is_receiver(f, q, f->last_seq))
                cut(q);
    }
    if (p != NULL) {
        p->behind = false;
        /* It has got all there is, whatever the daemon said before. */
        if (all && !e->truncated && p->last_seq < f->last_seq)
            p->last_seq = f->last_seq;
    }
    forget(f);
    feed_daemon_handed_out(f, again);
}

static void
on_turn(struct ev_loop *loop, ev_timer *w, int events)
{
    struct feed *f = w->data;
    struct feed_entries *e = &f->entries;
    double since = handed_out(f);
    bool taken = !e->single || (e->for_place != NULL && feed_may_take(e->for_place));
    bool more = taken;

    if (taken && e->found)
        taken = give_long(f, since);
    else if (taken)
        more = give_batch(f, since, &taken);
    if (taken && more)
        ev_timer_start(loop, w);
    else
        finish(f, taken);
}

bool
feed_entries_take(struct feed *f, struct daemon_answer *a)
{
    struct feed_entries *e = &f->entries;
    size_t len;
    char *text = buf_take(&a->body, &len);

    e->body = ws_bytes_take(text, len);
    if (e->body == NULL)
        return false;
    e->text = text;
    e->end = a->end - 1;
    e->element = (struct body_element){.at = a->start + 1};
    e->fed = 0;
    e->truncated = a->truncated;
    e->found = e->gained = false;
    json_line_begin(&e->line);
    ev_timer_start(worker_loop(), &e->timer);
    return true;
}

void
feed_entries_drop(struct feed *f, const struct feed_place *place)
{
    if (f->entries.for_place == place)
        f->entries.for_place = NULL;
}

void
feed_entries_begin(struct feed *f)
{
    ev_timer_init(&f->entries.timer, on_turn, 0., 0.);
    f->entries.timer.data = f;
}

void
feed_entries_end(struct feed *f)
{
    forget(f);
}
