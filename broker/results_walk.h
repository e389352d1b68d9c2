/*
 * One walk over the results roots after the other, in small steps: which runs are there,
 * which summaries changed. What did not change costs one system call.
 */
#ifndef BROKER_RESULTS_WALK_H
#define BROKER_RESULTS_WALK_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/run_dirs.h"
#include "common/messages.h"

struct results_walk {
    struct run_dirs *rd;  /* borrowed; the walk writes its states and order */
    bool active;
    enum scan_cut cut;    /* of the walk so far */
    unsigned said_cut;    /* bits: which reasons were logged, once each */
    uint32_t number;      /* of this walk, for `seen` */
    unsigned next_root;
    int64_t now_ns;       /* wall clock when this walk began */
    uint32_t *todo;       /* directories still to visit */
    uint32_t n_todo, cap_todo;
    /* the directory in hand */
    uint32_t dir;         /* RUN_DIR_NONE: none */
    int fd;               /* of it, or -1 */
    DIR *stream;          /* while its entries are read anew */
    uint32_t next_child;  /* while its known children are looked after */
    struct run_dir_id id; /* what it is to be remembered by */
};

void
results_walk_init(struct results_walk *w, struct run_dirs *rd);
void
results_walk_done(struct results_walk *w);

/* Begin a walk over all roots. */
void
results_walk_begin(struct results_walk *w);

/* Do a little (some microseconds). `active` is false once the walk is complete. */
void
results_walk_step(struct results_walk *w);

#endif
