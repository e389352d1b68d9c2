/*
 * Terminals: /api/pty/:id and /api/pty-debug/:id, and the list of them.
 *
 * JSON mode (the contract's, and the default): text frames both ways. In {"type":"input",
 * "data"}, {"type":"resize","cols","rows"}; out {"type":"output","data"}, {"type":"error",
 * "message"}, one {"type":"exit","code"}.
 *
 * Binary mode (?mode=binary): output and input are binary frames of raw bytes; resize, exit and
 * error stay text frames as above. Besides:
 *   ?cols=&rows=   size before the first output (both modes; 1..LIMIT_TTY_SIZE)
 *   ?session=ID    attach again: the newest output comes first, then what is new. Who read it
 *                  before is closed with 4001. &view=1: only look on, input is ignored.
 *   {"type":"session","id","replay":N,"credit":true}   first frame out; N bytes of old output
 *                  follow (answer no query in them). In JSON mode only with ?session.
 *   {"type":"resize","cols","rows"}   out, to who attached again or only looks on: what follows
 *                  was made for a terminal of this size. After the replay it has the client's
 *                  own, unless that only looks on.
 *   {"type":"credit","bytes":N}   in: N more bytes are shown. From the first one on, at most
 *                  LIMIT_TTY_CREDIT bytes are on their way.
 * DELETE (or POST) /api/pty/sessions/ID ends a session whose id one knows, .../N one of the list.
 * Close codes: 1000 it ended; 1009 input too fast; 1012 the broker was restarted; 4001 taken
 * over by another viewer.
 */
#ifndef WORKER_PTY_H
#define WORKER_PTY_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/messages.h"
#include "common/tty_ring.h"
#include "worker/broker_link.h"
#include "worker/runs.h"

struct exchange;
struct daemon_call;
struct ws;

void
handle_pty(struct exchange *x);
void
handle_pty_debug(struct exchange *x);
void
handle_pty_sessions(struct exchange *x);
void
handle_pty_session_end(struct exchange *x);

/* --- between the files of this part ---------------------------------------------------------- */

struct pty {
    struct pty *next, **link; /* all of this worker */
    struct ws *ws;            /* NULL: closed, or not yet open */
    /* what was asked for */
    enum tty_program program;
    bool binary, view, resumes;
    uint16_t token; /* in whose name */
    uint16_t cols, rows;
    uint8_t session[MESSAGE_TTY_SESSION];
    char run_id[MESSAGE_ID_SIZE];
    char workdir[MESSAGE_TTY_DIR];
    char message[MESSAGE_TTY_TEXT];
    /* on the way to a terminal */
    struct runs_wait wait;
    struct daemon_call *project;
    bool asking; /* the broker owes an answer: this memory must stay */
    /* the terminal */
    uint64_t attachment; /* 0: none */
    int ring, master;    /* -1: none */
    struct tty_ring_head head;
    uint64_t position;   /* viewers: how far the ring was sent */
    struct tty_ring_size shown; /* told to the client last */
    ev_io readable, writable;
    ev_timer timer;      /* quiet after the end; a viewer's look */
    ev_timer gather;     /* active: `gathered` waits for more */
    struct buf gathered; /* in the ring, not yet sent */
    double sent_at;      /* when output was sent last */
    bool ended, at_end, over; /* program; terminal; exit was told or never will be */
    int exit_status;
    /* flow */
    bool counts;         /* the client tells what it has shown */
    uint64_t unshown;
    struct buf input;    /* not yet taken by the terminal */
    char tail[4];        /* JSON mode: a sequence that is not complete */
    unsigned n_tail;
};

/* A session's id from its 32 hex digits. False: it is none. */
bool
pty_session_parse(const char *text, uint8_t ret_session[MESSAGE_TTY_SESSION]);

/* worker/pty_io.c: the terminal's side. */
void
pty_io_init(struct pty *p);
/* The terminal is ours: replay, then read. Takes the descriptor. */
void
pty_io_begin(struct pty *p, int master);
void
pty_io_view(struct pty *p);
/* There may be room for more output. */
void
pty_io_resume(struct pty *p);
void
pty_io_input(struct pty *p, const char *bytes, size_t len);
void
pty_io_resize(struct pty *p, int64_t cols, int64_t rows);
/* Its program ended: read the rest, then tell. */
void
pty_io_ended(struct pty *p, int exit_status);
/* Stop reading; close every descriptor. */
void
pty_io_close(struct pty *p);

/* worker/pty_frames.c: the client's side. */
void
pty_send_session(struct pty *p, size_t replay);
void
pty_send_output(struct pty *p, const char *bytes, size_t len);
/* What follows was made for this size. */
void
pty_send_size(struct pty *p, struct tty_ring_size size);
void
pty_send_exit(struct pty *p, int status);
void
pty_send_error(struct pty *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void
pty_receive(struct pty *p, const char *bytes, size_t len, bool binary);

/* worker/pty.c: it is over; leave it and close the socket. */
void
pty_finish(struct pty *p, uint16_t code, const char *reason);

#endif
