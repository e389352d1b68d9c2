/* What the feed's files share: feed.c (viewers), feed_message.c, feed_dialog.c (out of the file),
   feed_daemon.c, feed_entries.c (out of the daemon's answer), feed_file.c. */
#ifndef WORKER_FEED_PARTS_H
#define WORKER_FEED_PARTS_H

#include "common/messages.h"
#include "worker/body_scan.h"
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

/* A message that is compared with the one before, a piece a turn. */
struct feed_fresh {
    struct ws_bytes *bytes; /* NULL: none */
    size_t at;              /* the same up to here */
    enum feed_message kind;
    ev_timer timer;
};

/* The entries of a daemon's answer, handed out a piece a turn. */
struct feed_entries {
    struct ws_bytes *body; /* the answer; NULL: none */
    const char *text;
    size_t end;            /* of the array's inside */
    struct body_element element;
    struct json_line line; /* of the element at hand, as far as `fed` */
    size_t fed;
    double seq;            /* of `found` */
    bool found;            /* the element is wanted and has not been handed out */
    bool truncated;        /* the daemon has more than fits an answer */
    bool gained;           /* somebody got an entry */
    struct feed_place *for_place; /* whom it is for; NULL: all that are level */
    bool single;                  /* it is for one, who may be gone */
    ev_timer timer;
};

struct feed {
    struct feed *next, **link; /* among those that can be joined; link NULL: not */
    struct feed_place *places;
    unsigned n_places;
    unsigned guard; /* > 0: not to be freed now */
    enum feed_state state;
    double begun, changed; /* worker_now_s() */
    double active;         /* wall clock: clients are shown it */
    struct ws_bytes *messages[FEED_MESSAGES];
    struct feed_fresh fresh;
    bool graded;
    /* the daemon */
    struct daemon_call *call;
    unsigned step, attempts;
    unsigned silent;    /* questions in a row without an answer */
    bool in_round;
    bool probing;       /* this round asks for the dialog alone */
    bool cheap;         /* what the dialog's last question cost was nothing */
    double full_due;    /* when a whole round is */
    ev_timer round;
    double last_seq;    /* of what the daemon said */
    struct feed_entries entries;
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

/* Give everybody what is due; to this place, from the loop. */
void
feed_pump_all(struct feed *f);
void
feed_pump_later(struct feed_place *place);

/* Something happened: look at the daemon soon. */
void
feed_touch(struct feed *f);

/* The run is over, or nobody knows it any more. */
void
feed_over(struct feed *f);

/* All feeds that can be joined, the first of them. */
struct feed *
feed_list(void);

/* --- feed_message.c ---------------------------------------------------------------------- */

void
feed_message_begin(struct feed *f);
void
feed_message_end(struct feed *f);

/* A new message of this kind. */
void
feed_message_set(struct feed *f, enum feed_message kind, const char *text, size_t len);

/* The same of a daemon's answer, which leaves room in front of its value: prefix, value, "}".
 * Takes the body. Long ones are compared with the one before in slices: FEED_LATER, and
 * feed_daemon_compared is called. */
enum feed_taken { FEED_SAME, FEED_NEW, FEED_LATER };
enum feed_taken
feed_message_take(struct feed *f, enum feed_message kind, const char *prefix,
                  struct buf *body, size_t start, size_t end);

/* --- feed_dialog.c ----------------------------------------------------------------------- */

/* The place reads what it lacks of the file, one slice. */
void
feed_dialog_send(struct feed_place *place);
bool
feed_dialog_open(struct feed_place *place);
void
feed_dialog_close(struct feed_place *place);

/* Whole lines [from..f->file_end) are new: those who are level get them at once. */
void
feed_file_grew(struct feed *f, uint64_t from);

/* --- feed_daemon.c ------------------------------------------------------------------------ */

void
feed_daemon_begin(struct feed *f);
void
feed_daemon_end(struct feed *f);

/* Somebody is behind, and there is no file: ask for him when it is his turn. */
void
feed_daemon_serve(struct feed *f);

/* A message was compared: is it another? */
void
feed_daemon_compared(struct feed *f, bool changed);

/* The entries of an answer are with those whom they were for. `again`: it was a round's, and
 * there are more. */
void
feed_daemon_handed_out(struct feed *f, bool again);

/* Begin the next round in so many seconds at the latest. */
void
feed_daemon_hurry(struct feed *f, double seconds);

/* --- feed_entries.c ----------------------------------------------------------------------- */

void
feed_entries_begin(struct feed *f);
void
feed_entries_end(struct feed *f);

/* Hand out what is in the answer to f->entries.for_place or all who are level; takes its body.
 * False: no memory. */
bool
feed_entries_take(struct feed *f, struct daemon_answer *answer);

/* The place is going: nothing is handed out to it any more. */
void
feed_entries_drop(struct feed *f, const struct feed_place *place);

/* Can it take an entry now? */
bool
feed_may_take(const struct feed_place *place);

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
