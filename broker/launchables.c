/*
 * The names in the checkout, read again whenever somebody asks.
 * Distrusts: nobody more than the administrator's own files need: a broken one lists nothing.
 */
#include "broker/launchables.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/launchables_yaml.h"
#include "common/buf.h"
#include "common/limits.h"
#include "policy/run_id.h"

struct launchables {
    char *checkout, *local_tasks;
    bool has_catalog;
    uint64_t read_ms; /* 0: never */
    uint64_t generation;
    struct buf records;
    bool has_local;
};

struct launchables *
launchables_new(const char *checkout, const char *local_tasks, bool has_catalog)
{
    struct launchables *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    buf_init(&l->records, 0);
    l->has_catalog = has_catalog;
    l->checkout = strdup(checkout);
    l->local_tasks = strdup(local_tasks);
    if (l->checkout != NULL && l->local_tasks != NULL)
        return l;
    launchables_free(l);
    return NULL;
}

void
launchables_free(struct launchables *l)
{
    if (l == NULL)
        return;
    buf_done(&l->records);
    free(l->checkout);
    free(l->local_tasks);
    free(l);
}

/* --- names of directories ----------------------------------------------------------------- */

struct names {
    char **at;
    size_t n;
    bool failed; /* names are missing for want of memory or descriptors */
};

static int
compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
names_done(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->at[i]);
    free(names->at);
    *names = (struct names){0};
}

/* Is it our want, or is nothing there to be read? */
static bool
is_want(int error)
{
    return error == ENOMEM || error == EMFILE || error == ENFILE;
}

static void
names_add(struct names *names, const char *name)
{
    char **at;

    if (names->n >= LIMIT_LAUNCHABLES)
        return;
    at = realloc(names->at, (names->n + 1) * sizeof *at);
    names->failed |= at == NULL;
    if (at == NULL)
        return;
    names->at = at;
    at[names->n] = strdup(name);
    names->failed |= at[names->n] == NULL;
    if (at[names->n] != NULL)
        names->n++;
}

/* A name that reaches a command line and a listing: no control byte, no option. */
static bool
is_plain(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            return false;
    return len > 0 && len < LAUNCH_NAME_SIZE && name[0] != '.' &&
           policy_component_valid(name, len);
}

/* Entries of a directory that are directories, or links to such. */
static struct names
list_directories(const char *path, bool sorted)
{
    struct names names = {0};
    DIR *dir = opendir(path);
    struct dirent *entry;

    names.failed = dir == NULL && is_want(errno);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat st;

        if (is_plain(entry->d_name) &&
            (entry->d_type == DT_DIR ||
             (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode))))
            names_add(&names, entry->d_name);
    }
    if (dir != NULL)
        closedir(dir);
    if (sorted && names.n > 0)
        qsort(names.at, names.n, sizeof *names.at, compare);
    return names;
}

/* --- records ---------------------------------------------------------------------------------- */

static void
put(struct buf *out, char kind, const char *name)
{
    buf_add(out, &kind, 1);
    buf_add(out, name, strlen(name) + 1);
}

static void
put_names(struct buf *out, char kind, struct names *names)
{
    out->failed |= names->failed;
    for (size_t i = 0; i < names->n; i++)
        if (i == 0 || strcmp(names->at[i], names->at[i - 1]) != 0)
            put(out, kind, names->at[i]);
    names_done(names);
}

/* Whole, or nothing: a bounded regular file. The result is malloc'ed. `ret_want`: it may be
 * there all the same. */
static char *
read_file(const char *path, size_t *ret_len, bool *ret_want)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char *bytes = NULL;
    struct stat st;
    ssize_t n = 0;

    *ret_want = fd < 0 && is_want(errno);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_size <= (off_t)LIMIT_LAUNCHABLES_FILE)
        *ret_want = (bytes = malloc((size_t)st.st_size + 1)) == NULL;
    if (bytes != NULL)
        n = read(fd, bytes, (size_t)st.st_size);
    if (fd >= 0)
        close(fd);
    if (n <= 0) {
        free(bytes);
        return NULL;
    }
    *ret_len = (size_t)n;
    return bytes;
}

static void
on_model(void *ctx, const struct yaml_entry *entry)
{
    size_t len = strlen(entry->name);

    if (len > 0 && len < LAUNCH_MODEL_SIZE && policy_model_path_valid(entry->name, len))
        names_add(ctx, entry->name);
}

static void
put_models(struct launchables *l, struct buf *out)
{
    struct names models = {0};
    char path[8192];
    DIR *dir;
    struct dirent *entry;

    snprintf(path, sizeof path, "%s/models", l->checkout);
    dir = opendir(path);
    models.failed = dir == NULL && is_want(errno);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *dot = strrchr(entry->d_name, '.');
        size_t len;
        char *bytes;
        bool want;

        if (entry->d_name[0] == '.' || dot == NULL ||
            (strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0))
            continue;
        snprintf(path, sizeof path, "%s/models/%s", l->checkout, entry->d_name);
        bytes = read_file(path, &len, &want);
        if (bytes != NULL)
            want = !launchables_yaml_read(bytes, len, "model_name", on_model, &models);
        models.failed |= want;
        free(bytes);
    }
    if (dir != NULL)
        closedir(dir);
    if (models.n > 0)
        qsort(models.at, models.n, sizeof *models.at, compare);
    put_names(out, 'm', &models);
}

static bool
is_plugin_name(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len < LAUNCH_PLUGIN_SIZE &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
               len;
}

static void
on_plugin(void *ctx, const struct yaml_entry *entry)
{
    struct buf *out = ctx;

    if (!is_plugin_name(entry->name))
        return;
    put(out, 'p', entry->name);
    buf_add(out, entry->enabled ? "1" : "0", 2);
    buf_add(out, entry->hook, strlen(entry->hook) + 1);
    buf_add(out, entry->llm ? "1" : "0", 2);
}

static void
put_plugins(struct launchables *l, struct buf *out)
{
    char path[8192];
    size_t len;
    char *bytes;
    bool want;

    snprintf(path, sizeof path, "%s/runtime/plugins/plugins.yaml", l->checkout);
    bytes = read_file(path, &len, &want);
    if (bytes != NULL)
        want = !launchables_yaml_read(bytes, len, "name", on_plugin, out);
    out->failed |= want;
    free(bytes);
}

static void
put_all(struct launchables *l, struct buf *out)
{
    struct names agents, tasks;
    char path[8192];

    put_models(l, out);
    snprintf(path, sizeof path, "%s/agents", l->checkout);
    agents = list_directories(path, true);
    put_names(out, 'a', &agents);
    put_plugins(l, out);
    tasks = list_directories(l->local_tasks, true);
    l->has_local = tasks.n > 0;
    put_names(out, 't', &tasks);
}

void
launchables_refresh(struct launchables *l, uint64_t now_ms)
{
    struct buf fresh;

    if (l->read_ms != 0 && now_ms - l->read_ms < LIMIT_LAUNCHABLES_AGE_MS)
        return;
    l->read_ms = now_ms;
    buf_init(&fresh, 0);
    put_all(l, &fresh);
    if (fresh.failed ||
        (l->generation != 0 && fresh.len == l->records.len &&
         (fresh.len == 0 || memcmp(fresh.data, l->records.data, fresh.len) == 0))) {
        buf_done(&fresh);
        return;
    }
    buf_done(&l->records);
    l->records = fresh;
    /* Unlike any number of a broker before this one. */
    l->generation = l->generation != 0 ? l->generation + 1 : now_ms << 20 | 1;
}

bool
launchables_known(const struct launchables *l)
{
    return l->generation != 0;
}

const char *
launchables_records(const struct launchables *l, size_t *ret_len, uint64_t *ret_generation)
{
    *ret_len = l->records.len;
    *ret_generation = l->generation;
    return l->records.data;
}

bool
launchables_has_local(const struct launchables *l)
{
    return l->has_local;
}

/* --- questions ------------------------------------------------------------------------------------ */

static bool
has(const void *ctx, char kind, const char *name)
{
    const struct launchables *l = ctx;
    const char *at = l->records.data, *end = at + l->records.len;

    while (at != NULL && at < end) {
        char what = *at++;

        if (what == kind && strcmp(at, name) == 0)
            return true;
        for (unsigned i = what == 'p' ? 4 : 1; i > 0; i--)
            at += strlen(at) + 1;
    }
    return false;
}

struct launch_offer
launchables_offer(const struct launchables *l)
{
    return (struct launch_offer){has, l->has_catalog, l};
}
