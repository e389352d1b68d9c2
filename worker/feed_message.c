/* A feed's messages beside the dialog: each is sent when it differs from the one before. */
#include <stdlib.h>
#include <string.h>

#include "worker/feed_parts.h"
#include "worker/worker.h"
#include "worker/ws.h"

#define RELEASE_FROM (1024u * 1024u)
#define RELEASED_MAX 64u
#define COMPARE_SLICE (512u * 1024u) /* bytes in one turn; a fraction of a millisecond */

/* --- letting go ------------------------------------------------------------------------------ */

/* Giving 32 MiB back to the system takes some milliseconds: one message a turn. */
static struct ws_bytes *released[RELEASED_MAX];
static unsigned n_released;
static ev_timer release_timer;

static void
on_release(struct ev_loop *loop, ev_timer *w, int events)
{
    ws_bytes_unref(released[--n_released]);
    if (n_released > 0)
        ev_timer_start(loop, w);
}

static void
release(struct ws_bytes *bytes)
{
    size_t len = 0;

    if (bytes != NULL)
        ws_bytes_data(bytes, &len);
    if (len < RELEASE_FROM || n_released == RELEASED_MAX) {
        ws_bytes_unref(bytes);
        return;
    }
    released[n_released++] = bytes;
    if (ev_is_active(&release_timer))
        return;
    ev_timer_init(&release_timer, on_release, 0., 0.);
    ev_timer_start(worker_loop(), &release_timer);
}

/* --- what is new ------------------------------------------------------------------------------- */

static void
install(struct feed *f, enum feed_message kind, struct ws_bytes *bytes)
{
    release(f->messages[kind]);
    f->messages[kind] = bytes;
    if (bytes == NULL)
        return;
    f->active = ev_now(worker_loop());
    for (struct feed_place *p = f->places; p != NULL; p = p->next)
        p->due |= (uint8_t)(1u << kind);
}

void
feed_message_set(struct feed *f, enum feed_message kind, const char *text, size_t len)
{
    install(f, kind, ws_bytes_new(text, len));
}

/* One slice. FEED_LATER: so far they are the same. */
static enum feed_taken
compare(struct feed *f)
{
    struct feed_fresh *n = &f->fresh;
    size_t len, old_len, slice;
    const char *text = ws_bytes_data(n->bytes, &len);
    const char *old = f->messages[n->kind] != NULL
                          ? ws_bytes_data(f->messages[n->kind], &old_len)
                          : NULL;
    struct ws_bytes *bytes = n->bytes;

    if (old != NULL && old_len == len) {
        slice = len - n->at < COMPARE_SLICE ? len - n->at : COMPARE_SLICE;
        if (memcmp(text + n->at, old + n->at, slice) == 0) {
            n->at += slice;
            if (n->at < len)
                return FEED_LATER;
            n->bytes = NULL;
            release(bytes);
            return FEED_SAME;
        }
    }
    n->bytes = NULL;
    install(f, n->kind, bytes);
    return FEED_NEW;
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    struct feed *f = w->data;
    enum feed_taken taken = compare(f);

    if (taken == FEED_LATER)
        ev_timer_start(loop, w);
    else
        feed_daemon_compared(f, taken == FEED_NEW);
}

enum feed_taken
feed_message_take(struct feed *f, enum feed_message kind, const char *prefix,
                  struct buf *body, size_t start, size_t end)
{
    size_t n_prefix = strlen(prefix), all;
    char *text = buf_take(body, &all), *fitting;
    enum feed_taken taken;

    if (text == NULL || start < n_prefix || end > all) {
        free(text);
        return FEED_SAME;
    }
    fitting = realloc(text, end + 1); /* it grew by doubling */
    if (fitting != NULL)
        text = fitting;
    memcpy(text + start - n_prefix, prefix, n_prefix);
    text[end] = '}';
    f->fresh.kind = kind;
    f->fresh.at = 0;
    f->fresh.bytes = ws_bytes_take_inside(text, start - n_prefix, n_prefix + end - start + 1);
    if (f->fresh.bytes == NULL)
        return FEED_SAME;
    taken = compare(f);
    if (taken == FEED_LATER)
        ev_timer_start(worker_loop(), &f->fresh.timer);
    return taken;
}

void
feed_message_begin(struct feed *f)
{
    ev_timer_init(&f->fresh.timer, on_timer, 0., 0.);
    f->fresh.timer.data = f;
}

void
feed_message_end(struct feed *f)
{
    ev_timer_stop(worker_loop(), &f->fresh.timer);
    release(f->fresh.bytes);
    f->fresh.bytes = NULL;
    for (unsigned i = 0; i < FEED_MESSAGES; i++) {
        release(f->messages[i]);
        f->messages[i] = NULL;
    }
}
