/* One launch, as the files of this area share it: launches.c (table, states), launch_folder.c
 * (state directory), launch_start.c (keeper's start), launch_link.c (the keeper's words), launch_tell.c (workers),
 * launch_requests.c (handlers). */
#ifndef BROKER_LAUNCH_H
#define BROKER_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "broker/dispatch.h"
#include "broker/launch_record.h"
#include "broker/launches.h"

struct event;

struct launch {
    TAILQ_ENTRY(launch) link; /* in the order in which they were asked for */
    struct launches *all;
    struct launch_meta meta;
    int dir_fd;    /* its folder */
    int pipe_fd;   /* the FIFO's reading end: what is in it survives without a keeper; or -1 */
    int output_fd; /* opened when first needed, or -1 */
    /* its keeper */
    bool alive;        /* there is one, or one is being started */
    bool ready;        /* it has reported: orders reach it */
    bool doomed;       /* to be removed, folder and all, in the next turn of the loop */
    bool end_wanted;   /* cancelled: whoever keeps it has to be told */
    bool unknown_meta; /* adopted without a readable meta.json: its file is left alone */
    int lock_fd;       /* until the keeper has it, or -1 */
    int report_fd, conn_fd, pid_fd;
    pid_t pid; /* 0: not our child */
    struct event *report, *conn, *reap, *retry;
    unsigned rescues;
    uint64_t started_ms;
    /* the command */
    bool graded;           /* its place is free although it goes on */
    int64_t ended_ms;      /* since 1970; 0: it has not ended */
    uint64_t ended_mono_ms;
    int exit_status;       /* -1: not known */
    int output_error;
    uint64_t size, cut;    /* of the output */
    int watch;             /* inotify, or -1 */
    uint32_t position;     /* in the queue, as last told */
    /* who has to hear of it: a bit for each watcher */
    uint64_t untold, untold_output;
    /* who asked for it and waits for its start */
    bool asked;
    struct ask ask;
};

TAILQ_HEAD(launch_list, launch);

struct watcher {
    uint64_t peer; /* 0: free */
};

#define LAUNCH_WATCHERS 64u

struct launches {
    struct broker *broker;
    struct launch_list list;
    unsigned n;
    int dir_fd;       /* the checkout's folder, or -1: not ours (yet) */
    int lock_fd;      /* its lock, or -1 */
    char why[256];    /* why dir_fd is -1 */
    struct event *tick;  /* while something is expected of the listing */
    struct event *lock_retry;
    struct event *sweep; /* removes what is doomed */
    struct event *tell;  /* output grew */
    struct event *notify;
    int inotify_fd;
    bool telling;
    struct watcher watchers[LAUNCH_WATCHERS];
};

/* --- launches.c ----------------------------------------------------------------------------- */

struct launch *
launch_new(struct launches *all);
void
launch_free(struct launch *l); /* closes; files stay */
struct launch *
launch_find(struct launches *all, const char *id);

/* Change the state, durably as far as the disk allows, and tell everyone. */
void
launch_set_state(struct launch *l, enum launch_state state, const char *error);

/* The command has ended / its keeper has. */
void
launch_command_ended(struct launch *l, int exit_status, int64_t ended_ms);
void
launch_keeper_gone(struct launch *l);

/* Start what waits, as far as there are places. */
void
launches_schedule(struct launches *all);

/* Remove the folder of an ended launch, and the launch: at once, or in the next turn of the
 * loop, where nobody up the stack still holds it. */
void
launch_remove(struct launch *l);
void
launch_remove_later(struct launch *l);


/* --- launch_folder.c -------------------------------------------------------------------------- */

/* Take the folder and its lock, and what is in it, if that has not been done. 0, or -errno with
 * all->why for people. */
int
launches_ready(struct launches *all);
void
launches_unlock(struct launches *all);

/* --- launch_start.c --------------------------------------------------------------------------- */

/* Make a launch and its folder; queued. 0; -errno: nothing is left of it. */
int
launch_create(struct launches *all, const struct launch_fields *f, const char *key,
              struct launch **ret_launch);

/* Start its keeper (or, `rescue`, another one). 0, or -errno with a reason for people. */
int
launch_start(struct launch *l, bool rescue, char *error, size_t error_size);

/* --- launch_link.c ------------------------------------------------------------------------------ */

/* Connect to the keeper. 0, or -errno. */
int
launch_connect(struct launch *l);
/* Have the command ended: now, or as soon as its keeper can be told. */
void
launch_end(struct launch *l);
/* Look again in a moment: its lock is held by one that comes or goes. */
void
launch_take_up_later(struct launch *l);
/* Take up a folder found at start. */
void
launch_adopt(struct launches *all, const char *id);

/* --- launch_tell.c ---------------------------------------------------------------------------- */

int
launch_tell_init(struct launches *all);
void
launch_tell_done(struct launches *all);
void
launch_watch_output(struct launch *l); /* while it may grow */
void
launch_measure(struct launch *l);      /* size and cut, as they are now */
void
launch_changed(struct launch *l);      /* everyone has to hear */
/* Tell `peer`, and from now on; `full`: everything. 0 or -EBUSY. */
int
launch_watch(struct launches *all, uint64_t peer, bool full);
/* The output, for reading. Descriptor (the caller's) or -errno. */
int
launch_open_output(struct launch *l);

#endif
