/*
 * Counters of all workers and the broker in shared memory: one page each, the broker's last,
 * writable by its owner only, readable by all. Numbers are for people; nothing is decided by them.
 */
#ifndef COMMON_SCOREBOARD_H
#define COMMON_SCOREBOARD_H

#include <stdatomic.h>
#include <stdint.h>

enum score {
    SCORE_CONNECTIONS, /* open now */
    SCORE_WEBSOCKETS,  /* open now */
    SCORE_REQUESTS,    /* answered */
    SCORE_REFUSED,     /* answered 4xx by policy or the reader */
    SCORE_BAD_TOKENS,
    SCORE_FEED_VIEWERS,
    SCORE_LOG_VIEWERS,
    SCORE_TERMINALS,
    SCORE_LIMITED,     /* turned away at a cap */
    SCORE_SLOW_TURNS,  /* of a worker's loop */
    SCORE_LONGEST_TURN_US,
    SCORE_LAUNCHES,    /* launched runs that have not ended (the broker's page) */
    SCORE_TTYS,        /* terminals, watched or not (the broker's page) */
    SCORE_COUNT
};

struct scoreboard_page {
    _Atomic uint64_t value[SCORE_COUNT];
};

#define SCOREBOARD_PAGE_SIZE 4096u

/* Map the scoreboard at `fd` (n_pages pages): page `own` (0-based) writable, its numbers of what is
 * open now zero, all readable; the descriptor is closed. 0 or -errno. own = UINT32_MAX: read only. */
int
scoreboard_map(int fd, uint32_t n_pages, uint32_t own);

/* Add to one of this worker's own counters (negative: subtract). */
void
scoreboard_add(enum score score, int64_t amount);

/* Make one of our own this number. Without a page of ours: nothing. */
void
scoreboard_set(enum score score, uint64_t value);

/* The largest of all. */
uint64_t
scoreboard_max(enum score score);

/* Sum over all. */
uint64_t
scoreboard_sum(enum score score);

#endif
