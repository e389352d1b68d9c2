/* The broker's parts, as they know each other. One process, one loop, one of these. */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include <stdint.h>

#include "common/handoff.h"

struct event_base;

struct broker {
    struct event_base *base;
    struct broker_config config;
    int control_fd;            /* channel to the master */
    uint64_t drain_until_ms;   /* 0: not draining */
    unsigned drain_quiet;      /* looks in a row that found nothing pending */
    uint64_t epoch;            /* random: tells this process from the one before it */
    struct dispatch *dispatch; /* workers and their requests */
    struct children *children; /* every process this broker started */
    struct cli *cli;           /* short calls of the command line interface */
    struct runs_list *runs_list;
    struct run_dirs *run_dirs; /* every directory found below a results root */
    struct results_scan *results_scan;
    struct logs *logs;
    struct peer_uid *peer_uid;
    struct litellm *litellm;       /* orders to the key maker */
    struct assistants *assistants; /* each run's OpenCode server and key */
    struct launchables *launchables;
    struct launches *launches;
    struct documents *documents;
    struct connects *connects; /* addresses of containers */
    struct watches *watches;   /* dialogs that are looked at */
    struct ttys *ttys;         /* terminals in containers */
};

/* Make every part, in order; the configuration, base and control_fd are filled in. Begins
 * the first listing and the first walk. 0 or -errno. */
int
broker_init(struct broker *b);

/* End every child at once (SIGKILL to each process group) and free every part. */
void
broker_done(struct broker *b);

/* Monotonic time in milliseconds. */
uint64_t
broker_now_ms(void);

/* Priorities of events: the walk over the results waits for everything else. An event that
 * is given none gets the middle one (libevent), so serving stands there. */
enum broker_priority {
    BROKER_PRIORITY_UNUSED,
    BROKER_PRIORITY_SERVE,
    BROKER_PRIORITY_WALK,
    BROKER_PRIORITIES
};

#endif
