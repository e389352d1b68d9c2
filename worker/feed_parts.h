/* What the feed's files share: feed.c (viewers), feed_daemon.c, feed_file.c. */
#ifndef WORKER_FEED_PARTS_H
#define WORKER_FEED_PARTS_H

#include "common/messages.h"
#include "worker/daemon.h"
#include "worker/feed.h"
#include "worker/run_source.h"

/* An open dialog; viewers that still read one that was replaced keep it. */
struct feed_file {
    unsigned references;
    int fd;
    uint64_t inode;
};

enum feed_message { FEED_STATUS, FEED_PROJECT, FEED_FILES, FEED_DIFF, FEED_RESULT,
                    FEED_MESSAGES };

enum feed_state { FEED_CONNECTING, FEED_READY, FEED_FAILED, FEED_OVER };

struct feed {
    struct feed *next, **link; /* among those that can be joined; link NULL: not */
    struct feed_place *places;
    unsigned n_places;
    unsigned guard; /* > 0: not to be freed now */
    enum feed_state state;
    double begun, changed; /* worker_now_s() */
    double active;         /* wall clock: clients are shown it */
    struct {
        struct ws_bytes *bytes;
        const char *data; /* the same, to compare */
        size_t len;
    } messages[FEED_MESSAGES];
    bool graded;
    /* the daemon */
    struct daemon_call *call;
    unsigned step, attempts;
    bool in_round;
    ev_timer round;
    double last_seq; /* of what the daemon said */
    struct feed_place *for_place; /* whom the call is for; NULL: all that are level */
    bool single;                  /* it is for one, who may be gone */
    struct buf body;              /* entries being handed out: body[at..end), without brackets */
    size_t at, end;
    ev_timer hand_out;
    /* the file */
    struct run_source source;     /* where the directory is; its dialog being opened */
    bool located;                 /* dir_epoch, dir_ref are known */
    bool looking, opening;        /* the source is in use for that */
    bool reopen;                  /* once more afterwards */
    uint64_t dir_epoch, dir_ref;
    struct feed_file *file;       /* NULL: none (yet) */
    uint64_t file_end, scanned;   /* whole lines end here; looked at up to here */
    ev_timer tail;
    broker_ticket watch_ticket;
    bool watch_asked;
    uint64_t watch;               /* 0: none */
    char run_id[MESSAGE_ID_SIZE];
};

/* --- feed.c ----------------------------------------------------------------------------- */

/* Give everybody, or this place, what is due. */
void
feed_pump_all(struct feed *f);
void
feed_pump(struct feed_place *place);

/* A new message of this kind: prefix, value, "}". True: it differs from the one before. */
bool
feed_set_message(struct feed *f, enum feed_message kind, const char *prefix,
                 const char *value, size_t len);

/* Whole lines [from..f->file_end) are new: those who are level get them at once. */
void
feed_file_grew(struct feed *f, uint64_t from);

/* Something happened: look at the daemon soon. */
void
feed_touch(struct feed *f);

/* The run is over, or nobody knows it any more. */
void
feed_over(struct feed *f);

/* All feeds that can be joined, the first of them. */
struct feed *
feed_list(void);

/* --- feed_daemon.c ------------------------------------------------------------------------ */

void
feed_daemon_begin(struct feed *f);
void
feed_daemon_end(struct feed *f);

/* Somebody is behind, and there is no file: ask for him when it is his turn. */
void
feed_daemon_serve(struct feed *f);

/* The place is going: nothing is handed out to it any more. */
void
feed_daemon_drop(struct feed *f, const struct feed_place *place);

/* Begin the next round in so many seconds at the latest. */
void
feed_daemon_hurry(struct feed *f, double seconds);

/* --- feed_file.c -------------------------------------------------------------------------- */

/* Find the run's directory, watch it, read its dialog; again: is the run over? */
void
feed_file_begin(struct feed *f);
void
feed_file_end(struct feed *f);

/* Has it grown, appeared, been replaced? */
void
feed_file_look(struct feed *f);

struct feed_file *
feed_file_ref(struct feed_file *file);
void
feed_file_unref(struct feed_file *file);

#endif
