/*
 * The walk: the rules of `ssebench runs results` (contract 2.10), without following any link.
 * Distrusts: the tree; the agent of a running run may change it under the walk, so a step
 * only concludes, and every opening is checked again by the kernel.
 */
#include "broker/results_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/log.h"
#include "common/open_beneath.h"

/* Two changes within one tick of a file system's clock look like one. What changed less than
 * this long ago is looked at again next time (2 s: the coarsest clock in use, FAT's). */
#define COARSE_CLOCK_NS 2000000000LL

#define SUMMARY "summary.json"

/* The command makes these two before it starts a run's container, the summary after it. */
#define RESULT "result.json"
#define ARCHIVE "archive" /* the only one that the agent can write */

void
results_walk_init(struct results_walk *w, struct run_dirs *rd)
{
    *w = (struct results_walk){.rd = rd, .fd = -1};
}

static void
put_down(struct results_walk *w)
{
    if (w->stream != NULL)
        closedir(w->stream); /* closes its own copy of the descriptor */
    if (w->fd >= 0)
        close(w->fd);
    w->stream = NULL;
    w->fd = -1;
    w->dir = RUN_DIR_NONE;
}

void
results_walk_done(struct results_walk *w)
{
    put_down(w);
    free(w->todo);
    w->todo = NULL;
}

static struct run_dir_id
id_of(const struct stat *st)
{
    return (struct run_dir_id){
        .inode = st->st_ino,
        .size = S_ISDIR(st->st_mode) ? 0 : st->st_size,
        .mtime_ns = st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec,
        .ctime_ns = st->st_ctim.tv_sec * 1000000000LL + st->st_ctim.tv_nsec,
    };
}

static bool
same_id(const struct run_dir_id *a, const struct run_dir_id *b)
{
    return a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

static void
cut(struct results_walk *w, enum scan_cut reason)
{
    static const char *const names[] = {"", "depth", "runs", "directories", "memory"};

    if ((w->said_cut & 1u << reason) == 0)
        log_event(LOG_LEVEL_ERROR, "results-cut", "reason=%s runs=%u directories=%u",
                  names[reason], w->rd->n_runs, w->rd->n_dirs);
    w->said_cut |= 1u << reason;
    if (reason > w->cut)
        w->cut = reason;
}

static void
push(struct results_walk *w, uint32_t dir)
{
    if (w->rd->dirs[dir].depth >= LIMIT_SCAN_DEPTH) {
        cut(w, SCAN_CUT_DEPTH);
        return;
    }
    if (w->n_todo == w->cap_todo) {
        uint32_t cap = w->cap_todo == 0 ? 256 : 2 * w->cap_todo;
        uint32_t *fresh = realloc(w->todo, cap * sizeof *fresh);

        if (fresh == NULL) {
            cut(w, SCAN_CUT_MEMORY);
            return;
        }
        w->todo = fresh;
        w->cap_todo = cap;
    }
    w->todo[w->n_todo++] = dir;
}

/* What is below `top` is no longer to be found there. Not recursive: depth is bounded, width
 * is not, and this is one pass. */
static void
forget_below(struct results_walk *w, uint32_t top)
{
    struct run_dir *dirs = w->rd->dirs;
    uint32_t dir = dirs[top].first_child;

    while (dir != RUN_DIR_NONE) {
        bool known = dirs[dir].state != RUN_DIR_GONE;

        if (known)
            run_dirs_set_state(w->rd, dir, RUN_DIR_GONE);
        if (known && dirs[dir].first_child != RUN_DIR_NONE) {
            dir = dirs[dir].first_child;
            continue;
        }
        while (dirs[dir].next_sibling == RUN_DIR_NONE && dirs[dir].parent != top)
            dir = dirs[dir].parent;
        dir = dirs[dir].next_sibling;
    }
}

static void
forget(struct results_walk *w, uint32_t dir)
{
    if (w->rd->dirs[dir].state == RUN_DIR_GONE)
        return;
    run_dirs_set_state(w->rd, dir, RUN_DIR_GONE);
    forget_below(w, dir);
}

/* A summary.json stands in `dir`: a run, unless it is one that nobody may read. */
static void
meet_summary(struct results_walk *w, uint32_t dir, const struct stat *st)
{
    struct run_dir *d = &w->rd->dirs[dir];
    struct run_dir_id id = id_of(st);
    bool is_recent = w->now_ns - id.ctime_ns < COARSE_CLOCK_NS;
    bool was_recent = d->recent;

    if (d->state == RUN_DIR_PLAIN)
        forget_below(w, dir);
    if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size > LIMIT_SUMMARY) {
        if (d->state != RUN_DIR_ODD)
            run_dirs_set_state(w->rd, dir, RUN_DIR_ODD);
        return;
    }
    if (d->state != RUN_DIR_RUN) {
        if (w->rd->n_runs >= LIMIT_RUNS) {
            cut(w, SCAN_CUT_RUNS);
            return;
        }
        run_dirs_set_state(w->rd, dir, RUN_DIR_RUN);
    } else if (!same_id(&d->id, &id) || (was_recent && !is_recent)) {
        run_dirs_touch(w->rd, dir);
    } else {
        return;
    }
    d->id = id;
    d->recent = is_recent;
}

/* One subdirectory of the directory in hand. The name may mean a link by now: then the answer
 * here is a wrong hint, and opening it will be refused.
 * A run that goes on has no summary yet, and its agent must not get one of its own making
 * listed: of a run's subdirectories none is walked into, and its archive is none at all. The
 * others may be runs themselves, beside what an older release left one level up. */
static void
meet_child(struct results_walk *w, uint32_t child)
{
    char path[NAME_MAX + sizeof "/" SUMMARY];
    struct run_dir *d = &w->rd->dirs[child];
    bool in_run = w->rd->dirs[w->dir].of_run;
    struct stat st;

    if (in_run && strcmp(d->name, ARCHIVE) == 0) {
        forget(w, child);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", d->name, SUMMARY);
    if (fstatat(w->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode)) {
        meet_summary(w, child, &st);
        return;
    }
    if (d->state != RUN_DIR_PLAIN)
        run_dirs_set_state(w->rd, child, RUN_DIR_PLAIN);
    if (!in_run)
        push(w, child);
    else if (w->stream != NULL) /* perhaps walked into before the result was there */
        forget_below(w, child);
}

static bool
is_directory(int fd, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* The entries are read: who was not met is gone; remember what the directory looked like. */
static void
finish_reading(struct results_walk *w, bool complete)
{
    struct run_dir *dirs = w->rd->dirs;
    uint32_t next;

    for (uint32_t c = dirs[w->dir].first_child; complete && c != RUN_DIR_NONE; c = next) {
        next = dirs[c].next_sibling;
        if (dirs[c].seen != w->number)
            forget(w, c);
    }
    if (complete && w->now_ns - w->id.mtime_ns >= COARSE_CLOCK_NS)
        dirs[w->dir].id = w->id;
    put_down(w);
}

static void
read_entry(struct results_walk *w)
{
    struct dirent *entry;
    uint32_t child;

    errno = 0;
    entry = readdir(w->stream);
    if (entry == NULL) {
        finish_reading(w, errno == 0);
        return;
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
        !is_directory(w->fd, entry))
        return;
    child = run_dirs_add(w->rd, w->dir, entry->d_name, strlen(entry->d_name));
    if (child == RUN_DIR_NONE) {
        cut(w, SCAN_CUT_DIRECTORIES);
        return;
    }
    w->rd->dirs[child].seen = w->number;
    meet_child(w, child);
}

static void
look_after_child(struct results_walk *w)
{
    uint32_t child = w->next_child;

    if (child == RUN_DIR_NONE) {
        put_down(w);
        return;
    }
    w->next_child = w->rd->dirs[child].next_sibling;
    if (w->rd->dirs[child].state != RUN_DIR_GONE)
        meet_child(w, child);
}

/* Choose between reading the entries anew and looking after the children that are known. */
static void
take_in_hand(struct results_walk *w, uint32_t dir, const struct stat *st)
{
    struct run_dir *d = &w->rd->dirs[dir];
    struct stat result;
    int copy;

    w->dir = dir;
    w->id = id_of(st);
    if (same_id(&d->id, &w->id)) {
        w->next_child = d->first_child;
        return;
    }
    d->id = (struct run_dir_id){0};
    /* The results root itself is no run, whatever lies in it. */
    d->of_run = d->depth > 0 && fstatat(w->fd, RESULT, &result, AT_SYMLINK_NOFOLLOW) == 0 &&
                !S_ISDIR(result.st_mode);
    copy = fcntl(w->fd, F_DUPFD_CLOEXEC, 3); /* closedir closes it */
    w->stream = copy < 0 ? NULL : fdopendir(copy);
    if (w->stream == NULL) {
        if (copy >= 0)
            close(copy);
        put_down(w);
    }
}

static void
visit(struct results_walk *w, uint32_t dir)
{
    struct run_dir *d = &w->rd->dirs[dir];
    char path[RUN_DIRS_PATH];
    struct stat st, summary;
    int len = run_dirs_path(w->rd, dir, path), root_fd = w->rd->root_fds[d->root];

    if (len < 0 || root_fd < 0)
        return;
    w->fd = open_beneath(root_fd, len > 0 ? path : ".",
                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    if (w->fd < 0) {
        if (open_beneath_is_missing(w->fd) && d->depth > 0)
            forget(w, dir);
        else if (open_beneath_is_missing(w->fd))
            forget_below(w, dir);
        w->fd = -1;
        return;
    }
    if (fstat(w->fd, &st) != 0) {
        put_down(w);
    } else if (d->depth > 0 && fstatat(w->fd, SUMMARY, &summary, AT_SYMLINK_NOFOLLOW) == 0 &&
               !S_ISDIR(summary.st_mode)) {
        meet_summary(w, dir, &summary);
        put_down(w);
    } else {
        take_in_hand(w, dir, &st);
    }
}

static void
next_root(struct results_walk *w)
{
    unsigned root = w->next_root++;
    uint32_t dir = w->rd->root_dirs[root];
    int fd = run_dirs_open_root(w->rd, root);

    if (fd >= 0)
        push(w, dir);
    else if (open_beneath_is_missing(fd)) {
        forget_below(w, dir);
        w->rd->dirs[dir].id = (struct run_dir_id){0};
    }
}

void
results_walk_begin(struct results_walk *w)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    w->now_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    w->active = true;
    w->cut = SCAN_CUT_NONE;
    w->number++;
    w->next_root = 0;
    w->n_todo = 0;
}

void
results_walk_step(struct results_walk *w)
{
    if (w->stream != NULL)
        read_entry(w);
    else if (w->dir != RUN_DIR_NONE)
        look_after_child(w);
    else if (w->n_todo > 0)
        visit(w, w->todo[--w->n_todo]);
    else if (w->next_root < w->rd->n_roots)
        next_root(w);
    else
        w->active = false;
}
