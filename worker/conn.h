/*
 * A connection with a client: its socket's watcher, its place among all of this worker, the
 * buffer that requests come into, and its end: closed, lingering, or handed over
 * (worker/handover.h). What is said on it is worker/http.h's matter.
 */
#ifndef WORKER_CONN_H
#define WORKER_CONN_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "worker/handover.h"
#include "worker/server.h"

#define CONN_IOVECS 4u

struct stream; /* answer_stream.c */

enum conn_state {
    CONN_HEAD,   /* between requests, or a head is coming in */
    CONN_BODY,   /* a head was admitted, its body is coming in */
    CONN_ANSWER, /* a handler has the exchange, or its answer is going out */
    CONN_LINGER, /* all said; wait for the peer to notice, so that no RST eats the answer */
};

/* Who owns the other end, asked once for a connection (token-less servers). */
enum conn_peer { PEER_NOT_ASKED, PEER_UID, PEER_UNKNOWN };

/* What is still to be written. */
struct out {
    struct iovec iov[CONN_IOVECS];
    unsigned n, at;
    char *spill; /* owned copy of bytes that lived on a stack */
    char *owned; /* the body's memory, if it is ours to free */
};

struct conn {
    ev_io io; /* first: the watcher is the connection */
    struct deadline deadline;
    struct idle_place idle;
    struct connection_slot *slot;
    enum conn_state state;
    int events;
    bool in_process;  /* in process() of http.c: do not enter it again, do not free */
    bool dead;        /* closed while in_process */
    bool fresh;       /* no whole head came yet */
    bool eof;         /* the peer sends nothing more */
    bool close_after; /* this answer is the last */
    bool linger;      /* and bytes we never read may still come */
    enum conn_peer peer;
    uint32_t peer_uid;
    uint16_t token; /* that let the newest admitted request in (worker/tokens.h); 0: none yet */
    struct conn *next, **link; /* all of this worker */
    char *in; /* NULL while idle; bytes in[in_at..in_len) are unread */
    size_t in_at, in_len, in_cap;
    size_t lingered;     /* bytes thrown away */
    size_t progress;     /* bytes written since the write deadline was set */
    struct exchange *x;  /* the request in hand */
    struct stream *stream;
    struct out out;
};

/* Before the sandbox. */
void
conn_init(struct ev_loop *loop);

/* A new connection, waiting for its first head; takes fd and slot on success. NULL: no memory. */
struct conn *
conn_new(int fd, struct connection_slot *slot,
         void (*on_event)(struct ev_loop *loop, ev_io *io, int events));

/* Watch for these events (EV_READ, EV_WRITE, 0). */
void
conn_watch(struct conn *c, int events);

/* Make room behind in_len. False: there is none (the head is as long as it may be). */
bool
conn_make_room(struct conn *c);

/* The input buffer goes, with what is unread. */
void
conn_release_buffer(struct conn *c);

/* The connection is of no more use: tell the handler or source, close, free. */
void
conn_abort(struct conn *c);

/* Say that nothing more comes from us and wait for the peer to have read it; what still comes
 * from there is thrown away by conn_linger_read. May end in conn_abort. */
void
conn_linger(struct conn *c);
void
conn_linger_read(struct conn *c);

/* From server.c: an idle connection has to go. */
void
conn_close_idle(struct idle_place *place);
/* From server.c, when the worker finishes: close it unless a request is on its way. */
void
conn_drain_idle(struct idle_place *place);

/* Cut what a token holds open that is not `valid` any more. How many. */
unsigned
conn_close_tokens(bool (*valid)(uint16_t token));

#endif
