/*
 * The walk and the openings below a results directory.
 * Distrusts: the tree. Every opening is one of common/open_beneath.h.
 */
#include "worker/export/results.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/messages.h"
#include "common/open_beneath.h"
#include "worker/file_slice.h"
#include "worker/runs_results.h"

#define SUMMARY "summary.json"
#define RESULT "result.json" /* stands in a run's directory from its start */
#define ARCHIVE "archive"    /* the agent's, in a run's directory */

/* A directory that is still to be read. */
struct todo {
    struct todo *next;
    unsigned depth;
    bool in_run; /* stands in a run's directory */
    char path[];
};

struct walk {
    struct results *results;
    struct results_table *table;
    struct todo *todo; /* a stack */
    size_t n_seen;
    int error;
};

int
results_open(const struct results *r, uint64_t ref, const char *name, uint64_t max,
             uint64_t *ret_size)
{
    char path[PATH_MAX];
    int len = ref < r->n_dirs ? snprintf(path, sizeof path, "%s/%s", r->dirs[ref], name) : -1;
    struct stat st;
    int fd;

    if (len < 0 || (size_t)len >= sizeof path)
        return -ENOENT;
    fd = open_beneath_file(r->root_fd, path, max, &st);
    if (fd >= 0)
        *ret_size = (uint64_t)st.st_size;
    return fd;
}

/* --- a run ------------------------------------------------------------------------------ */

/* Remember the directory. Its index, or -ENOMEM. */
static int64_t
add_dir(struct results *r, const char *path)
{
    if (r->n_dirs == r->cap_dirs) {
        size_t cap = r->cap_dirs == 0 ? 256 : 2 * r->cap_dirs;
        char **dirs = realloc(r->dirs, cap * sizeof *dirs);

        if (dirs == NULL)
            return -ENOMEM;
        r->dirs = dirs;
        r->cap_dirs = cap;
    }
    r->dirs[r->n_dirs] = strdup(path);
    return r->dirs[r->n_dirs] == NULL ? -ENOMEM : (int64_t)r->n_dirs++;
}

/* As the server's workers are told of a run: one record, applied to the table. */
static int
apply_summary(struct walk *w, uint64_t ref, const char *path, const char *summary, size_t len)
{
    static const char zeros[8];
    struct scan_record record = {
        .ref = ref, .dir_len = (uint32_t)strlen(path), .summary_len = (uint32_t)len};
    struct buf bytes;
    int64_t used = -ENOMEM;

    buf_init(&bytes, 0);
    buf_add(&bytes, &record, sizeof record);
    buf_add(&bytes, path, record.dir_len);
    buf_add(&bytes, summary, len);
    buf_add(&bytes, zeros, -bytes.len & 7);
    if (!bytes.failed)
        used = results_table_apply(w->table, (const unsigned char *)bytes.data, bytes.len,
                                   SIZE_MAX);
    buf_done(&bytes);
    return used < 0 ? (int)used : 0;
}

/* A summary stands in `path`: a run, unless nobody may read it or it says nothing. */
static void
meet_summary(struct walk *w, const char *path)
{
    uint64_t size = 0;
    size_t len = 0;
    int64_t ref;
    char *bytes;
    int fd;

    if (w->results->n_dirs >= LIMIT_RUNS) {
        w->results->n_skipped++;
        return;
    }
    ref = add_dir(w->results, path);
    if (ref < 0) {
        w->error = (int)ref;
        return;
    }
    fd = results_open(w->results, (uint64_t)ref, SUMMARY, LIMIT_SUMMARY, &size);
    if (fd == -ENOENT || fd == -EFBIG)
        return;
    if (fd < 0) {
        w->error = fd;
        return;
    }
    bytes = file_slice_whole(fd, size, &len);
    close(fd);
    if (bytes != NULL)
        w->error = apply_summary(w, (uint64_t)ref, path, bytes, len);
    free(bytes);
}

/* --- the walk --------------------------------------------------------------------------- */

static void
push(struct walk *w, const char *parent, const char *name, unsigned depth, bool in_run)
{
    size_t size = strlen(parent) + strlen(name) + 2;
    struct todo *t;

    if (depth > LIMIT_SCAN_DEPTH || size > PATH_MAX || ++w->n_seen > LIMIT_SCAN_NODES) {
        w->results->n_skipped++;
        return;
    }
    t = malloc(sizeof *t + size);
    if (t == NULL) {
        w->error = -ENOMEM;
        return;
    }
    snprintf(t->path, size, "%s%s%s", parent, *parent != '\0' ? "/" : "", name);
    t->depth = depth;
    t->in_run = in_run;
    t->next = w->todo;
    w->todo = t;
}

static bool
is_directory(int fd, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Is there something of this name that is no directory? */
static bool
has_file(int fd, const char *name)
{
    struct stat st;

    return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode);
}

/* Takes the descriptor. */
static void
read_entries(struct walk *w, int fd, const struct todo *dir)
{
    DIR *stream = fdopendir(fd);
    bool of_run = dir->depth > 0 && has_file(fd, RESULT);
    struct dirent *entry;

    if (stream == NULL) {
        w->error = -errno;
        close(fd);
        return;
    }
    while (w->error == 0 && (entry = readdir(stream)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !(of_run && strcmp(entry->d_name, ARCHIVE) == 0) && is_directory(fd, entry))
            push(w, dir->path, entry->d_name, dir->depth + 1, of_run);
    closedir(stream);
}

/* Below a directory with a summary nothing is looked for; a directory of that name is none.
 * A run that goes on has no summary yet, and its agent must not make one: as the server does
 * (broker/results_walk.c), of its subdirectories only runs count, and its archive never. */
static void
visit(struct walk *w, const struct todo *dir)
{
    int fd = open_beneath(w->results->root_fd, dir->depth > 0 ? dir->path : ".",
                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0) {
        w->error = open_beneath_is_missing(fd) && dir->depth > 0 ? 0 : fd;
    } else if (dir->depth > 0 && has_file(fd, SUMMARY)) {
        close(fd);
        meet_summary(w, dir->path);
    } else if (dir->in_run) {
        close(fd);
    } else {
        read_entries(w, fd, dir);
    }
}

int
results_read(struct results *r, int root_fd, struct results_table *table)
{
    struct walk w = {.results = r, .table = table};
    struct todo *t;

    *r = (struct results){.root_fd = root_fd};
    push(&w, "", "", 0, false);
    while ((t = w.todo) != NULL) {
        w.todo = t->next;
        if (w.error == 0)
            visit(&w, t);
        free(t);
    }
    return w.error;
}

void
results_done(struct results *r)
{
    for (size_t i = 0; i < r->n_dirs; i++)
        free(r->dirs[i]);
    free(r->dirs);
    *r = (struct results){.root_fd = -1};
}
