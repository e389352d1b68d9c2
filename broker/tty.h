/*
 * Terminals in containers: the broker holds each one's descriptor and the ring of its newest
 * output, so that it outlives page, connection and worker; it never looks at a byte.
 *
 * Who reads: the one worker that has taken the terminal; while there is none, the broker moves
 * bytes from the terminal to the ring, slowly. What a worker reads it writes to the ring before
 * it sends it, so `kill -9` of that worker loses nothing that a viewer could want back.
 */
#ifndef BROKER_TTY_H
#define BROKER_TTY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/cli.h"
#include "broker/dispatch.h"
#include "common/handoff.h"
#include "common/limits.h"
#include "common/messages.h"
#include "common/tty_ring.h"

struct broker;
struct buf;
struct child;
struct event;
struct recording;
struct tty_sweep;

/* NULL: no memory. */
struct ttys *
ttys_new(struct broker *b);
void
ttys_free(struct ttys *all); /* no callback runs afterwards */

/* A worker is gone: what it read is read by the broker now, until somebody comes back. */
void
ttys_end_peer(struct ttys *all, uint64_t peer);

/* End all, inside the containers too; `done` is called when that is over, or after
 * LIMIT_TTY_STOP_MS. */
void
ttys_stop(struct ttys *all, void (*done)(void *ctx), void *ctx);

/* --- between the files of this part ------------------------------------------------------- */

#define TTY_TAG_SIZE 33u /* 16 random bytes in hex and NUL */

/* The variable with the tag, in the environment of the program in the container and of all it
 * starts: by it the session is found there. Backends that hand no variables on have none. */
#define TTY_MARK "SSEBENCH_WEBUI_TTY"

struct attachment {
    uint64_t id, peer; /* id 0: free */
};

enum tty_inside { INSIDE_WAITING, INSIDE_LOOKING, INSIDE_KNOWN, INSIDE_UNKNOWN, INSIDE_ENDING, INSIDE_GONE };

struct tty {
    struct ttys *all;
    LIST_ENTRY(tty) link;
    uint32_t number;
    enum tty_program program;
    char run_id[MESSAGE_ID_SIZE];
    uint8_t session[MESSAGE_TTY_SESSION];
    char owner[HANDOFF_TOKEN_NAME]; /* the token it was opened with; "": none */
    char tag[TTY_TAG_SIZE]; /* names it inside the container; no secret */
    bool marked;            /* TTY_MARK is set there */
    int kept;               /* its file of tty_sweep.c, or -1 */
    int master, ring;
    struct tty_ring_head head; /* while the broker is the ring's writer */
    struct child *child;       /* NULL: ended */
    bool exited;
    int exit_status;
    bool ending;  /* we end it: nobody comes back */
    bool taken;   /* somebody knows its session id */
    bool fetched; /* its end was told to somebody */
    bool drained; /* nothing more comes out of it */
    bool clear;   /* nothing of it is left inside the container */
    enum tty_inside inside;
    uint64_t started_ms, unseen_ms; /* unseen: since when without a viewer */
    struct attachment attachments[LIMIT_TTY_VIEWERS];
    uint64_t reader;      /* attachment that reads the terminal; 0: the broker does */
    struct ask take_ask;  /* waits for the reader to leave */
    uint64_t taker;       /* its attachment; 0: none */
    struct event *drain, *rest, *take_limit;
    struct recording *recording; /* NULL: none */
};

struct ttys {
    struct broker *broker;
    LIST_HEAD(, tty) list;
    unsigned n_ttys;
    uint32_t last_number;
    uint32_t leftovers; /* groups inside containers that outlived our ending them */
    uint64_t last_attachment;
    struct event *orphans, *stop_limit;
    struct tty_sweep *sweep;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

/* broker/tty.c */
struct tty *
tty_new(struct ttys *all, const struct request_tty_open *q);
/* Start its program. 0, or -errno with `error`: then it is gone, or goes by itself. */
int
tty_start(struct tty *t, const struct request_tty_open *q, char *error);
unsigned
tty_viewers(const struct tty *t);
/* Forget it if it is over in every respect; `t` may be gone then. */
void
tty_settle(struct tty *t);
/* A viewer left. Nobody can come back to a terminal whose id nobody was told. */
void
tty_left(struct tty *t);
/* Hang up: SIGHUP, then SIGKILL, to the group here and, by a second call, inside. */
void
tty_end(struct tty *t);
struct attachment *
tty_attach(struct tty *t, uint64_t peer); /* NULL: LIMIT_TTY_VIEWERS are there */
void
tty_detach(struct tty *t, struct attachment *a);

/* broker/tty_spawn.c: make the terminal and start the program. 0, or -errno with `error`. */
int
tty_spawn(struct tty *t, const struct request_tty_open *q, void (*on_exit)(void *, int),
          char *error);

/* broker/tty_record.c: begin a recording, if that is switched on. 0 or -errno; tty_record_end
 * is due either way: it writes the rest. */
int
tty_record_start(struct tty *t, unsigned cols, unsigned rows);
void
tty_record_end(struct tty *t);

/* broker/tty_inside.c: find the session's processes in the container, and end them. */
void
tty_inside_find(struct tty *t);
void
tty_inside_end(struct tty *t);
/* End what a broker before left there. 0 or -errno; `fn` hears what came of it. */
int
tty_inside_end_left(struct broker *b, const char *run_id, const char *tag, cli_done_fn fn,
                    void *ctx);

/* broker/tty_sweep.c: a file for each session, so that a broker that comes after a killed one
 * ends what is left of it in the containers. */
void
tty_sweep_keep(struct tty *t);
/* It is over here: forget it, or leave it to the next broker if it is not clear inside. */
void
tty_sweep_forget(struct tty *t);
/* Find and end what other brokers left. NULL: no memory. */
struct tty_sweep *
tty_sweep_new(struct ttys *all);
void
tty_sweep_free(struct tty_sweep *s);

#endif
