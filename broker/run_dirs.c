/*
 * The table of directories, and RUN_LOCATE: from a run's names to a reference.
 * Distrusts: names on disk (the agent makes them) and names in requests (the worker does).
 */
#include "broker/run_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/dispatch.h"
#include "common/limits.h"
#include "common/open_beneath.h"
#include "common/text_hash.h"
#include "policy/run_id.h"

#define FIRST_BUCKETS 1024u

_Static_assert(LIMIT_ROOTS == 16, "arrays of struct run_dirs");

/* Keyed, so that an agent cannot make directories that share one bucket. */
static uint32_t
bucket_of(const struct run_dirs *rd, uint32_t parent, const char *name, size_t len)
{
    return (uint32_t)text_hash(rd->key, parent, name, len) & (rd->n_buckets - 1);
}

static void
put_in_bucket(struct run_dirs *rd, uint32_t dir)
{
    struct run_dir *d = &rd->dirs[dir];
    uint32_t *bucket = &rd->buckets[bucket_of(rd, d->parent, d->name, strlen(d->name))];

    d->next_in_bucket = *bucket;
    *bucket = dir;
}

static int
grow_buckets(struct run_dirs *rd)
{
    uint32_t n = rd->n_buckets * 2;
    uint32_t *fresh = calloc(n, sizeof *fresh);

    if (fresh == NULL)
        return -ENOMEM;
    free(rd->buckets);
    rd->buckets = fresh;
    rd->n_buckets = n;
    for (uint32_t i = 1; i < rd->n_dirs; i++)
        put_in_bucket(rd, i);
    return 0;
}

static int
grow_dirs(struct run_dirs *rd)
{
    uint32_t cap = rd->cap * 2;
    struct run_dir *fresh = realloc(rd->dirs, cap * sizeof *fresh);

    if (fresh == NULL)
        return -ENOMEM;
    rd->dirs = fresh;
    rd->cap = cap;
    return 0;
}

/* Each root can have an equal share of the table, and what the others leave of theirs. */
static bool
has_room(const struct run_dirs *rd, unsigned root)
{
    uint32_t share = rd->max / rd->n_roots, taken = rd->n_dirs;

    if (rd->n_in_root[root] < share)
        return true;
    for (unsigned i = 0; i < rd->n_roots; i++)
        if (rd->n_in_root[i] < share)
            taken += share - rd->n_in_root[i];
    return taken < rd->max;
}

static uint32_t
append(struct run_dirs *rd, unsigned root, uint32_t parent, const char *name, size_t len)
{
    uint32_t dir = rd->n_dirs;
    char *copy;

    if (!has_room(rd, root) || (dir >= rd->cap && grow_dirs(rd) != 0) ||
        (dir >= rd->n_buckets && grow_buckets(rd) != 0))
        return RUN_DIR_NONE;
    copy = strndup(name, len);
    if (copy == NULL)
        return RUN_DIR_NONE;
    rd->dirs[dir] = (struct run_dir){.name = copy, .parent = parent, .root = (uint8_t)root};
    rd->n_in_root[root]++;
    rd->n_dirs++;
    put_in_bucket(rd, dir);
    return dir;
}

static void
drop_dirs(struct run_dirs *rd)
{
    for (uint32_t i = 1; i < rd->n_dirs; i++)
        free(rd->dirs[i].name);
    free(rd->dirs);
    free(rd->buckets);
    rd->dirs = NULL;
    rd->buckets = NULL;
    rd->n_dirs = 0;
}

int
run_dirs_reset(struct run_dirs *rd)
{
    drop_dirs(rd);
    rd->cap = rd->n_buckets = FIRST_BUCKETS;
    rd->dirs = calloc(rd->cap, sizeof *rd->dirs);
    rd->buckets = calloc(rd->n_buckets, sizeof *rd->buckets);
    if (rd->dirs == NULL || rd->buckets == NULL)
        return -ENOMEM;
    rd->n_dirs = 1;
    rd->epoch++;
    rd->oldest = rd->newest = RUN_DIR_NONE;
    rd->generation = 0;
    rd->n_runs = 0;
    memset(rd->n_in_root, 0, sizeof rd->n_in_root);
    for (unsigned i = 0; i < rd->n_roots; i++) {
        /* The names of roots never meet: a root's "parent" is none, its name unlike any
         * component. */
        char name[2] = {'/', (char)('a' + i)};
        uint32_t dir = append(rd, i, RUN_DIR_NONE, name, sizeof name);

        if (dir == RUN_DIR_NONE)
            return -ENOMEM;
        rd->dirs[dir].state = RUN_DIR_PLAIN;
        rd->root_dirs[i] = dir;
    }
    return 0;
}

struct run_dirs *
run_dirs_new(struct broker *b)
{
    struct run_dirs *rd = calloc(1, sizeof *rd);
    const char *roots = b->config.roots;
    const char *end = roots + sizeof b->config.roots;

    if (rd == NULL)
        return NULL;
    rd->broker = b;
    rd->max = LIMIT_SCAN_NODES;
    rd->epoch = b->epoch - 1; /* the first table's is the broker's own */
    while (roots < end && *roots != '\0' && rd->n_roots < LIMIT_ROOTS) {
        rd->root_fds[rd->n_roots] = -1;
        rd->roots[rd->n_roots++] = roots;
        roots += strnlen(roots, (size_t)(end - roots)) + 1;
    }
    if (getrandom(rd->key, sizeof rd->key, 0) != sizeof rd->key || run_dirs_reset(rd) != 0) {
        run_dirs_free(rd);
        return NULL;
    }
    return rd;
}

void
run_dirs_free(struct run_dirs *rd)
{
    if (rd == NULL)
        return;
    drop_dirs(rd);
    for (unsigned i = 0; i < rd->n_roots; i++)
        if (rd->root_fds[i] >= 0)
            close(rd->root_fds[i]);
    free(rd);
}

/* The root's own path is the administrator's: links in it are followed. */
int
run_dirs_open_root(struct run_dirs *rd, unsigned root)
{
    int fd = open(rd->roots[root], O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -errno : fd;

    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        return r; /* ours to solve: keep what we have */
    if (rd->root_fds[root] >= 0)
        close(rd->root_fds[root]);
    rd->root_fds[root] = fd;
    return r;
}

/* The child of this name, or RUN_DIR_NONE. */
static uint32_t
find_child(const struct run_dirs *rd, uint32_t parent, const char *name, size_t len)
{
    uint32_t dir = rd->buckets[bucket_of(rd, parent, name, len)];

    while (dir != RUN_DIR_NONE) {
        const struct run_dir *d = &rd->dirs[dir];

        if (d->parent == parent && strncmp(d->name, name, len) == 0 && d->name[len] == '\0')
            return dir;
        dir = d->next_in_bucket;
    }
    return RUN_DIR_NONE;
}

uint32_t
run_dirs_add(struct run_dirs *rd, uint32_t parent, const char *name, size_t len)
{
    uint32_t dir = find_child(rd, parent, name, len);
    struct run_dir *d, *p;

    if (dir != RUN_DIR_NONE)
        return dir;
    dir = append(rd, rd->dirs[parent].root, parent, name, len);
    if (dir == RUN_DIR_NONE)
        return RUN_DIR_NONE;
    d = &rd->dirs[dir];
    p = &rd->dirs[parent];
    d->depth = (uint8_t)(p->depth + 1);
    d->next_sibling = p->first_child;
    p->first_child = dir;
    return dir;
}

int
run_dirs_path(const struct run_dirs *rd, uint32_t dir, char path[RUN_DIRS_PATH])
{
    char *at = path + RUN_DIRS_PATH - 1;
    size_t len;

    *at = '\0';
    for (; rd->dirs[dir].parent != RUN_DIR_NONE; dir = rd->dirs[dir].parent) {
        len = strlen(rd->dirs[dir].name);
        if ((size_t)(at - path) < len + 1)
            return -ENAMETOOLONG;
        if (*at != '\0')
            *--at = '/';
        at -= len;
        memcpy(at, rd->dirs[dir].name, len);
    }
    len = (size_t)(path + RUN_DIRS_PATH - 1 - at);
    memmove(path, at, len + 1);
    return (int)len;
}

void
run_dirs_touch(struct run_dirs *rd, uint32_t dir)
{
    struct run_dir *d = &rd->dirs[dir];

    if (d->ordered) { /* take it out of its place */
        if (d->older != RUN_DIR_NONE)
            rd->dirs[d->older].newer = d->newer;
        else
            rd->oldest = d->newer;
        if (d->newer != RUN_DIR_NONE)
            rd->dirs[d->newer].older = d->older;
        else
            rd->newest = d->older;
    }
    d->ordered = true;
    d->generation = ++rd->generation;
    d->older = rd->newest;
    d->newer = RUN_DIR_NONE;
    if (rd->newest != RUN_DIR_NONE)
        rd->dirs[rd->newest].newer = dir;
    else
        rd->oldest = dir;
    rd->newest = dir;
}

uint32_t
run_dirs_after(const struct run_dirs *rd, uint64_t generation)
{
    uint32_t dir = rd->newest, after = RUN_DIR_NONE;

    if (generation == 0)
        return rd->oldest;
    while (dir != RUN_DIR_NONE && rd->dirs[dir].generation > generation) {
        after = dir;
        dir = rd->dirs[dir].older;
    }
    return after;
}

void
run_dirs_set_state(struct run_dirs *rd, uint32_t dir, enum run_dir_state state)
{
    struct run_dir *d = &rd->dirs[dir];

    rd->n_runs += (state == RUN_DIR_RUN) - (d->state == RUN_DIR_RUN);
    if (state == RUN_DIR_RUN || d->state == RUN_DIR_RUN)
        run_dirs_touch(rd, dir);
    d->state = (uint8_t)state;
    if (state != RUN_DIR_RUN)
        d->id = (struct run_dir_id){0};
}

uint32_t
run_dirs_by_ref(const struct run_dirs *rd, uint64_t epoch, uint64_t ref)
{
    if (epoch != rd->epoch || ref == RUN_DIR_NONE || ref >= rd->n_dirs ||
        !rd->dirs[ref].given)
        return RUN_DIR_NONE;
    return (uint32_t)ref;
}

/* Put the components of `path` below `root` into the table. */
static uint32_t
add_path(struct run_dirs *rd, unsigned root, const char *path)
{
    uint32_t dir = rd->root_dirs[root];

    while (dir != RUN_DIR_NONE && *path != '\0') {
        size_t len = strcspn(path, "/");

        dir = run_dirs_add(rd, dir, path, len);
        if (dir != RUN_DIR_NONE && rd->dirs[dir].state == RUN_DIR_GONE) {
            rd->dirs[dir].state = RUN_DIR_PLAIN;
            rd->dirs[dir].id = (struct run_dir_id){0};
        }
        path += len + (path[len] == '/');
    }
    return dir;
}

/* Safe for any worker: the names were checked by policy, the kernel refuses links and "..",
 * and what comes back is a number. */
static enum answer_status
act_run_locate(struct run_dirs *rd, const char *path, uint64_t *ret_ref)
{
    for (unsigned root = 0; root < rd->n_roots; root++) {
        uint32_t dir;
        int fd;

        if (rd->root_fds[root] < 0 && run_dirs_open_root(rd, root) < 0)
            continue;
        fd = open_beneath(rd->root_fds[root], path, O_PATH | O_DIRECTORY);
        if (fd < 0)
            continue;
        close(fd);
        dir = add_path(rd, root, path);
        if (dir == RUN_DIR_NONE)
            return ANSWER_BUSY;
        rd->dirs[dir].given = true;
        *ret_ref = dir;
        return ANSWER_OK;
    }
    return ANSWER_NOT_FOUND;
}

/* The same rules as the worker's (design R3), on the bytes that will be used. */
static bool
names_are_valid(const struct request_run_locate *q)
{
    return policy_run_id_valid(q->run_id, strlen(q->run_id)) &&
           policy_component_valid(q->task, strlen(q->task)) &&
           policy_component_valid(q->agent, strlen(q->agent)) &&
           policy_model_path_valid(q->model, strlen(q->model));
}

int
handle_run_locate(struct broker *b, const struct ask *ask, const void *request,
                  struct channel_packet *packet)
{
    const struct request_run_locate *q = request;
    struct answer_run_locate a = {.epoch = b->run_dirs->epoch};
    char path[sizeof q->task + sizeof q->model + sizeof q->agent + sizeof q->run_id];
    static const uint8_t zero[sizeof q->reserved];

    (void)packet;
    if (!message_string_valid(q->run_id, sizeof q->run_id) ||
        !message_string_valid(q->task, sizeof q->task) ||
        !message_string_valid(q->agent, sizeof q->agent) ||
        !message_string_valid(q->model, sizeof q->model) ||
        memcmp(q->reserved, zero, sizeof zero) != 0)
        return -EBADMSG;
    if (!names_are_valid(q)) {
        a.status = ANSWER_REFUSED;
    } else {
        /* Fits: each array's NUL makes room for a slash or the end. */
        stpcpy(stpcpy(stpcpy(stpcpy(stpcpy(stpcpy(stpcpy(path, q->task), "/"), q->model),
                                    "/"), q->agent), "/"), q->run_id);
        a.status = act_run_locate(b->run_dirs, path, &a.ref);
    }
    dispatch_answer(b->dispatch, ask, &a, -1);
    return 0;
}
