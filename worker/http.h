/*
 * One HTTP connection: reading heads and bodies, one exchange at a time, answers out. What
 * http.c (reading), answer.c and answer_stream.c (writing) and access_gate.c share; everyone
 * else sees worker/exchange.h.
 */
#ifndef WORKER_HTTP_H
#define WORKER_HTTP_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "worker/exchange.h"
#include "worker/handover.h"
#include "worker/server.h"

#define HTTP_PARAMS 3u           /* parameters in one route's pattern */
#define HTTP_HEADERS_SIZE 2048u  /* bytes of extra answer headers */
#define HTTP_IOVECS 4u

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
    struct iovec iov[HTTP_IOVECS];
    unsigned n, at;
    char *spill; /* owned copy of bytes that lived on a stack */
    char *owned; /* the body's memory, if it is ours to free */
};

struct stream; /* answer_stream.c */

struct conn {
    ev_io io; /* first: the watcher is the connection */
    struct deadline deadline;
    struct idle_place idle;
    struct connection_slot *slot;
    enum conn_state state;
    int events;
    bool in_process;  /* inside conn_process: do not enter it again, do not free */
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

struct exchange {
    struct conn *conn;
    struct exchange *next; /* in the pool */
    struct request request;
    size_t head_len;
    const char *body;
    size_t body_len;
    char *body_owned;     /* body, when it did not arrive with the head */
    bool body_whole;
    bool answered;
    bool let_in;          /* policy admitted it */
    bool outside;         /* the path is not below the base path */
    bool has_csp, has_cache;
    void (*gone)(struct exchange *x, void *ctx);
    void *gone_ctx;
    void (*admitted)(struct exchange *x); /* access_gate.c: what follows */
    uint32_t ticket;                      /* its question to the broker */
    uint16_t token;                       /* that it carried, or TOKENS_NONE; 0: no good one */
    char params[HTTP_PARAMS][LIMIT_PATH_SEGMENT + 1];
    size_t headers_len;
    char headers[HTTP_HEADERS_SIZE];
};

/* --- http.c --------------------------------------------------------------------------- */

/* Before the sandbox. */
void
http_init(struct ev_loop *loop);

/* A new connection; takes fd and slot on success. 0 or -ENOMEM. */
int
http_conn_new(int fd, struct connection_slot *slot);

/* From server.c: a deadline passed; an idle connection has to go. */
void
http_deadline_passed(struct deadline *d);
void
http_close_idle(struct idle_place *place);
/* From server.c, when the worker finishes: close it unless a request is on its way. */
void
http_drain_idle(struct idle_place *place);

/* Cut what a token holds open that is not `valid` any more. How many. */
unsigned
http_close_tokens(bool (*valid)(uint16_t token));

/* Watch for these events (EV_READ, EV_WRITE, 0). */
void
http_watch(struct conn *c, int events);

/* The connection is of no more use: tell the handler or source, close, free. */
void
http_abort(struct conn *c);

/* The whole answer is with the kernel: go on with the next request, or close. */
void
http_answer_done(struct conn *c);

/* --- answer.c ---------------------------------------------------------------------------- */

/* Render the head of an answer into `out` (HTTP_HEAD_MAX bytes). content_len < 0: none given
 * (`chunked` says whether the body is). Returns its length. */
#define HTTP_HEAD_MAX (HTTP_HEADERS_SIZE + 2048u)
size_t
answer_head(struct exchange *x, int status, const char *type, int64_t content_len,
            bool chunked, char *out);

/* The moment an answer begins: no more on_gone, decide whether the connection stays. */
void
answer_begin(struct exchange *x);

/* Write these pieces; the first `n_volatile` live only until the call returns and are copied
 * if they do not fit into the socket. `owned` is freed when all is written. Ends in
 * http_answer_done, stream_written or http_abort, perhaps before it returns. */
void
answer_write(struct conn *c, const struct iovec *iov, unsigned n, unsigned n_volatile,
             char *owned);

/* The socket takes bytes again. */
void
answer_flush(struct conn *c);

void
answer_out_free(struct out *out);

/* --- answer_stream.c ------------------------------------------------------------------------ */

/* The last piece is with the kernel: end, or wait for the next turn. */
void
stream_written(struct conn *c);

/* Make and write the next piece. */
void
stream_next(struct conn *c);

/* End the source, if there is one. */
void
stream_free(struct conn *c);

#endif
