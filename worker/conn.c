/* A connection's life: its place among all, its watcher, its input buffer, and its end. */
#include "worker/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scoreboard.h"
#include "worker/audit.h"
#include "worker/http.h"

#define BUFFER_SMALL 4096u               /* a browser's head fits; pooled */
#define BUFFER_LARGE (LIMIT_HEAD + 512u) /* one byte over the limit must fit to be seen */
#define POOL_MAX 64u /* kept for the next connection */
#define LINGER_MS 2000u
#define LINGER_BYTES (1024u * 1024u)

static struct ev_loop *loop_of_worker;
static struct conn *all_conns;

static struct {
    char *buffers[POOL_MAX];
    unsigned n_buffers;
} pool;

void
conn_init(struct ev_loop *loop)
{
    loop_of_worker = loop;
}

/* --- input buffer ----------------------------------------------------------------- */

static bool
buffer_take(struct conn *c)
{
    c->in = pool.n_buffers > 0 ? pool.buffers[--pool.n_buffers] : malloc(BUFFER_SMALL);
    c->in_cap = BUFFER_SMALL;
    c->in_at = c->in_len = 0;
    return c->in != NULL;
}

void
conn_release_buffer(struct conn *c)
{
    if (c->in && c->in_cap == BUFFER_SMALL && pool.n_buffers < POOL_MAX)
        pool.buffers[pool.n_buffers++] = c->in;
    else
        free(c->in);
    c->in = NULL;
    c->in_at = c->in_len = c->in_cap = 0;
}

bool
conn_make_room(struct conn *c)
{
    char *larger;

    if (!c->in)
        return buffer_take(c);
    if (c->in_len < c->in_cap)
        return true;
    if (c->state != CONN_HEAD)
        return false; /* spans of the request in hand point into it */
    if (c->in_at > 0) {
        memmove(c->in, c->in + c->in_at, c->in_len - c->in_at);
        c->in_len -= c->in_at;
        c->in_at = 0;
        return true;
    }
    if (c->in_cap >= BUFFER_LARGE || !(larger = realloc(c->in, BUFFER_LARGE)))
        return false;
    c->in = larger;
    c->in_cap = BUFFER_LARGE;
    return true;
}

/* --- begin and watch -------------------------------------------------------------- */

void
conn_watch(struct conn *c, int events)
{
    if (c->events == events)
        return;
    ev_io_stop(loop_of_worker, &c->io);
    c->events = events;
    if (events == 0)
        return;
    ev_io_set(&c->io, c->io.fd, events);
    ev_io_start(loop_of_worker, &c->io);
}

struct conn *
conn_new(int fd, struct connection_slot *slot,
         void (*on_event)(struct ev_loop *loop, ev_io *io, int events))
{
    struct conn *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->slot = slot;
    c->fresh = true;
    c->next = all_conns;
    c->link = &all_conns;
    if (c->next)
        c->next->link = &c->next;
    all_conns = c;
    ev_io_init(&c->io, on_event, fd, EV_READ);
    scoreboard_add(SCORE_CONNECTIONS, 1);
    server_deadline_set(&c->deadline, LIMIT_HEAD_MS);
    server_idle_add(&c->idle);
    conn_watch(c, EV_READ);
    return c;
}

/* --- end -------------------------------------------------------------------------- */

/* Everything but the socket and the place under the caps. */
static void
dismantle(struct conn *c)
{
    conn_watch(c, 0);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    server_deadline_clear(&c->deadline);
    server_idle_remove(&c->idle);
    stream_free(c);
    answer_out_free(&c->out);
    if (c->x)
        exchange_free(c->x);
    c->x = NULL;
    conn_release_buffer(c);
    scoreboard_add(SCORE_CONNECTIONS, -1);
    c->dead = true;
}

void
conn_abort(struct conn *c)
{
    struct connection_slot *slot = c->slot;

    if (c->dead)
        return;
    if (c->x && !c->x->answered && c->x->gone) {
        void (*gone)(struct exchange *x, void *ctx) = c->x->gone;

        c->x->gone = NULL;
        gone(c->x, c->x->gone_ctx);
    }
    dismantle(c);
    close(c->io.fd);
    connection_slot_release(slot);
    if (!c->in_process)
        free(c);
}

void
exchange_hand_over(struct exchange *x, struct handover *ret_handover)
{
    struct conn *c = x->conn;
    size_t used = c->in_at + x->head_len;
    struct handover h = {.fd = c->io.fd, .slot = c->slot, .token = c->token};

    if (c->in_len > used) {
        h.unread_len = c->in_len - used;
        h.unread = malloc(h.unread_len);
        if (h.unread) {
            memcpy(h.unread, c->in + used, h.unread_len);
        } else {
            close(h.fd);
            h.fd = -1;
            h.unread_len = 0;
        }
    }
    x->answered = true;
    audit_answer(x, 101);
    scoreboard_add(SCORE_REQUESTS, 1);
    dismantle(c);
    if (!c->in_process)
        free(c);
    *ret_handover = h;
}

/* Closing with unread bytes would send an RST that can overtake the answer. */
void
conn_linger(struct conn *c)
{
    c->state = CONN_LINGER;
    c->lingered = 0;
    if (shutdown(c->io.fd, SHUT_WR) < 0 || c->eof) {
        conn_abort(c);
        return;
    }
    server_deadline_set(&c->deadline, LINGER_MS);
    conn_watch(c, EV_READ);
}

void
conn_linger_read(struct conn *c)
{
    static char scratch[65536];
    ssize_t n = read(c->io.fd, scratch, sizeof(scratch));

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        conn_abort(c);
        return;
    }
    c->lingered += n > 0 ? (size_t)n : 0;
    if (c->lingered > LINGER_BYTES)
        conn_watch(c, 0); /* the deadline ends it */
}

/* --- from outside ----------------------------------------------------------------- */

void
conn_close_idle(struct idle_place *place)
{
    conn_abort((struct conn *)((char *)place - offsetof(struct conn, idle)));
}

void
conn_drain_idle(struct idle_place *place)
{
    struct conn *c = (struct conn *)((char *)place - offsetof(struct conn, idle));
    char byte;

    if (c->in_at == c->in_len && !c->fresh &&
        recv(c->io.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
        conn_abort(c);
    else
        server_deadline_set(&c->deadline, LIMIT_DRAIN_FRESH_MS);
}

unsigned
conn_close_tokens(bool (*valid)(uint16_t token))
{
    unsigned n = 0;
    struct conn *next;

    for (struct conn *c = all_conns; c; c = next) {
        next = c->next;
        if (valid(c->token))
            continue;
        conn_abort(c);
        n++;
    }
    return n;
}
