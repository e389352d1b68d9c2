/* The dialog out of the file: for one who is behind, and once for all who are level. */
#include <string.h>

#include "common/limits.h"
#include "worker/dialog_read.h"
#include "worker/feed_parts.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define SHARED_MAX (256u * 1024u) /* growth that is rendered once for all who are level */
#define SHARED_BATCHES 64u

/* --- what one viewer reads for itself -------------------------------------------------------- */

void
feed_dialog_close(struct feed_place *p)
{
    if (p->document.fill != NULL)
        p->document.done(p->document.ctx);
    p->document = (struct sdk_document){0};
    p->reader = NULL;
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

bool
feed_dialog_open(struct feed_place *p)
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
    feed_dialog_close(p);
}

void
feed_dialog_send(struct feed_place *p)
{
    struct buf out;
    bool ends = false;
    int more;

    buf_init(&out, 0);
    more = p->document.fill(p->document.ctx, &out, &ends);
    if (out.failed || more < 0) {
        buf_done(&out);
        ws_close(p->ws, 1011, "The run's dialog cannot be read");
        feed_dialog_close(p);
        return;
    }
    if (out.len > 0 || (ends && p->in_message)) {
        ws_send_part(p->ws, out.len > 0 ? out.data : "", out.len, !p->in_message, ends);
        p->in_message = !ends;
    }
    buf_done(&out);
    if (more == 0)
        finish_document(p);
    feed_pump_later(p);
}

/* --- what everybody gets -------------------------------------------------------------------------- */

static void
drop_messages(struct ws_bytes **messages, int n)
{
    for (int i = 0; i < n; i++)
        ws_bytes_unref(messages[i]);
}

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
    if (more == 0)
        return n;
    drop_messages(messages, n);
    return -1;
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
    drop_messages(messages, n);
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
