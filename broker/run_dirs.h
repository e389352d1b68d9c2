/*
 * Every directory found below the results roots, as a compact table. An index into it is the
 * reference that workers hold, so a worker can only name a directory the broker has found
 * itself (design R2). An index is never used for another directory within one epoch.
 */
#ifndef BROKER_RUN_DIRS_H
#define BROKER_RUN_DIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_DIRS_PATH 4096u /* bytes of a path below a root, NUL included */
#define RUN_DIR_NONE 0u     /* no directory has this index */

struct broker;

enum run_dir_state {
    RUN_DIR_GONE,  /* not there when last looked */
    RUN_DIR_PLAIN, /* a directory without summary.json: walked into, unless a run's own */
    RUN_DIR_RUN,   /* has a usable summary.json: a finished run, not walked into */
    RUN_DIR_ODD,   /* has a summary.json nobody may read (link, FIFO, too large): neither */
};

/* What tells that a file or directory is unchanged. */
struct run_dir_id {
    uint64_t inode;
    int64_t size, mtime_ns, ctime_ns;
};

struct run_dir {
    char *name;             /* one component; "" for a root */
    uint32_t parent;        /* RUN_DIR_NONE for a root */
    uint32_t first_child, next_sibling;
    uint32_t next_in_bucket;
    uint32_t older, newer;  /* neighbours in the order of generations */
    uint32_t seen;          /* number of the walk that last met it */
    uint8_t state;          /* enum run_dir_state */
    uint8_t root;           /* which results root */
    uint8_t depth;          /* 0 for a root */
    bool given : 1;         /* its reference was given to a worker */
    bool ordered : 1;       /* stands in the order of generations */
    bool recent : 1;        /* its summary changed too lately for coarse clocks to tell */
    bool of_run : 1;        /* has a result.json: a run's own, perhaps not over yet */
    uint64_t generation;    /* of the last change of its summary */
    struct run_dir_id id;   /* RUN: of summary.json; PLAIN: of the directory */
};

struct run_dirs {
    struct broker *broker;
    uint64_t epoch;         /* of all references; changes when the table starts anew */
    struct run_dir *dirs;   /* [0] is unused */
    uint32_t n_dirs, cap;
    uint32_t *buckets;      /* by parent and name */
    uint32_t n_buckets;
    /* Everything that is or was a run, in the order of its last change. */
    uint32_t oldest, newest;
    uint64_t generation;    /* of the last change of all */
    uint32_t n_runs;        /* in state RUN */
    uint64_t key[2];        /* of the hash: names are the agent's to choose */
    uint32_t max;           /* entries of `dirs`: LIMIT_SCAN_NODES */
    unsigned n_roots;
    uint32_t n_in_root[16]; /* directories; each root can have its share of `max` */
    const char *roots[16];  /* paths, in the configuration */
    int root_fds[16];       /* -1: not there (yet) */
    uint32_t root_dirs[16];
};

/* NULL: no memory. Roots that do not exist yet may appear later. */
struct run_dirs *
run_dirs_new(struct broker *b);
void
run_dirs_free(struct run_dirs *rd);

/* Forget everything under a new epoch. 0 or -ENOMEM. */
int
run_dirs_reset(struct run_dirs *rd);

/* Open a root anew: it may have appeared, vanished or been replaced. Descriptor (borrowed)
 * or -errno. */
int
run_dirs_open_root(struct run_dirs *rd, unsigned root);

/* The child of this name, made (state GONE) when it is not in the table. RUN_DIR_NONE: no memory, or
 * as many as can be are there. Pointers into `dirs` are stale afterwards. */
uint32_t
run_dirs_add(struct run_dirs *rd, uint32_t parent, const char *name, size_t len);

/* Path below its root ("" for a root itself). Length, or -ENAMETOOLONG. */
int
run_dirs_path(const struct run_dirs *rd, uint32_t dir, char path[RUN_DIRS_PATH]);

/* Give a directory its new state; to or from RUN is a change with a generation of its own.
 * Its id is forgotten unless it is a RUN. */
void
run_dirs_set_state(struct run_dirs *rd, uint32_t dir, enum run_dir_state state);

/* Its summary changed: it moves to the end of the order. */
void
run_dirs_touch(struct run_dirs *rd, uint32_t dir);

/* The first directory that changed after `generation`, or RUN_DIR_NONE. Quick for 0 and for
 * recent ones. */
uint32_t
run_dirs_after(const struct run_dirs *rd, uint64_t generation);

/* The directory that a worker's reference means, or RUN_DIR_NONE. */
uint32_t
run_dirs_by_ref(const struct run_dirs *rd, uint64_t epoch, uint64_t ref);

#endif
