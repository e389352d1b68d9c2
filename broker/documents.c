/*
 * DOCTOR and CATALOG: bytes for workers to parse.
 * Distrusts: the catalog's server (slow, endless, hostile: fetched by a process of its own with
 * a time limit and a size limit), and the CLI.
 */
#include "broker/documents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/cli.h"
#include "broker/dispatch.h"
#include "common/limits.h"

#define CATALOG_AGE_MS 1000u /* contract 8.5: read again each time; a burst is one time */

struct waiter {
    STAILQ_ENTRY(waiter) link;
    struct ask ask;
};

/* One document, the call that gets it and who waits for that. */
struct document {
    struct documents *all;
    STAILQ_HEAD(, waiter) waiters;
    bool calling, any_status;
    uint64_t age_ms, got_ms; /* got_ms 0: never */
    size_t size_max;
    enum answer_status status;
    int fd;
    size_t size;
    char error[MESSAGE_ERROR_SIZE];
};

_Static_assert(MESSAGE_ERROR_SIZE >= LIMIT_CLI_ERROR, "cli_start writes its reason there");

struct documents {
    struct broker *broker;
    struct document doctor, catalog;
};

static void
document_init(struct document *doc, struct documents *all, uint64_t age_ms, size_t size_max)
{
    *doc = (struct document){.all = all, .age_ms = age_ms, .size_max = size_max, .fd = -1};
    STAILQ_INIT(&doc->waiters);
}

struct documents *
documents_new(struct broker *b)
{
    struct documents *d = calloc(1, sizeof *d);

    if (d == NULL)
        return NULL;
    d->broker = b;
    document_init(&d->doctor, d, LIMIT_DOCTOR_AGE_MS, LIMIT_CLI_OUTPUT);
    d->doctor.any_status = true; /* its report is there although a check failed (contract 3) */
    document_init(&d->catalog, d, CATALOG_AGE_MS, LIMIT_CATALOG);
    return d;
}

static void
drop_waiter(struct document *doc)
{
    struct waiter *w = STAILQ_FIRST(&doc->waiters);

    STAILQ_REMOVE_HEAD(&doc->waiters, link);
    free(w);
}

static void
document_done(struct document *doc)
{
    while (!STAILQ_EMPTY(&doc->waiters))
        drop_waiter(doc);
    if (doc->fd >= 0)
        close(doc->fd);
}

void
documents_free(struct documents *d)
{
    if (d == NULL)
        return;
    document_done(&d->doctor);
    document_done(&d->catalog);
    free(d);
}

static void
answer(struct broker *b, const struct ask *ask, enum answer_status status, int fd, size_t size,
       const char *error)
{
    struct answer_document a = {.status = status, .size = size};

    message_string_set(a.error, sizeof a.error, error);
    dispatch_answer(b->dispatch, ask, &a, fd);
}

static void
answer_known(struct document *doc, const struct ask *ask)
{
    int fd = doc->fd >= 0 ? fcntl(doc->fd, F_DUPFD_CLOEXEC, 3) : -1;
    enum answer_status status = doc->fd >= 0 && fd < 0 ? ANSWER_BUSY : doc->status;

    answer(doc->all->broker, ask, status, fd, doc->size, doc->error);
}

static void
take(struct document *doc, struct cli_result *result)
{
    bool good = result->outcome == CLI_EXITED && result->size > 0 &&
                (result->exit_status == 0 || doc->any_status);

    if (doc->fd >= 0)
        close(doc->fd);
    doc->fd = -1;
    doc->size = 0;
    doc->error[0] = '\0';
    if (good && result->size > doc->size_max) {
        doc->status = ANSWER_TOO_LARGE;
        snprintf(doc->error, sizeof doc->error, "It is larger than %zu MiB",
                 doc->size_max / 1024 / 1024);
    } else if (good) {
        doc->status = ANSWER_OK;
        doc->fd = result->output_fd;
        doc->size = result->size;
        result->output_fd = -1;
    } else {
        doc->status = result->outcome == CLI_TIMEOUT ? ANSWER_TIMEOUT : ANSWER_FAILED;
        message_string_set(doc->error, sizeof doc->error,
                           result->error[0] != '\0' ? result->error : "It printed nothing");
    }
}

static void
answer_all(struct document *doc)
{
    doc->got_ms = broker_now_ms();
    while (!STAILQ_EMPTY(&doc->waiters)) {
        answer_known(doc, &STAILQ_FIRST(&doc->waiters)->ask);
        drop_waiter(doc);
    }
}

static void
on_done(void *ctx, struct cli_result *result)
{
    struct document *doc = ctx;

    doc->calling = false;
    take(doc, result);
    answer_all(doc);
}

/* Answer from what is known, or with what this call brings. */
static void
get(struct document *doc, const struct ask *ask, struct cli_call *call)
{
    struct waiter *w;
    int r = 0;

    if (!doc->calling && doc->got_ms != 0 && broker_now_ms() - doc->got_ms < doc->age_ms) {
        answer_known(doc, ask);
        return;
    }
    w = malloc(sizeof *w);
    if (w == NULL) {
        answer(doc->all->broker, ask, ANSWER_BUSY, -1, 0, "Out of memory");
        return;
    }
    w->ask = *ask;
    STAILQ_INSERT_TAIL(&doc->waiters, w, link);
    if (doc->calling)
        return;
    call->fn = on_done;
    call->ctx = doc;
    r = cli_start(doc->all->broker->cli, call, doc->error);
    doc->calling = r == 0;
    if (r < 0) {
        doc->status = r == -EBUSY ? ANSWER_BUSY : ANSWER_FAILED;
        if (doc->fd >= 0)
            close(doc->fd);
        doc->fd = -1;
        answer_all(doc);
        doc->got_ms = 0;
    }
}

/* --- DOCTOR -------------------------------------------------------------------------------------- */

/* Safe: the command is fixed. Not for a hosted server's visitors: it describes the host. */
int
handle_doctor(struct broker *b, const struct ask *ask, const void *request,
              struct channel_packet *packet)
{
    static const char *const args[] = {"doctor", "--json", NULL};
    struct cli_call call = {.args = args};

    (void)request;
    (void)packet;
    if (b->config.hosted)
        answer(b, ask, ANSWER_REFUSED, -1, 0, "");
    else
        get(&b->documents->doctor, ask, &call);
    return 0;
}

/* --- CATALOG --------------------------------------------------------------------------------------- */

static bool
is_url(const char *location)
{
    return strncasecmp(location, "http://", 7) == 0 || strncasecmp(location, "https://", 8) == 0;
}

int
documents_manifest_url(const char *location, char *out, size_t size)
{
    size_t path = strcspn(location, "?#");
    const char *query = strchr(location, '?');
    size_t n_query = query != NULL ? strcspn(query, "#") : 0;
    bool whole = path >= 5 && strncmp(location + path - 5, ".json", 5) == 0;
    int n;

    if (!is_url(location))
        return false;
    while (!whole && path > 8 && location[path - 1] == '/')
        path--;
    n = snprintf(out, size, "%.*s%s%.*s", (int)path, location, whole ? "" : "/manifest.json",
                 (int)n_query, query != NULL ? query : "");
    return n > 0 && (size_t)n < size;
}

/* The URL goes by stdin: it may hold a password, and command lines are for all to see. */
static int
make_curl_config(const char *location)
{
    char url[HANDOFF_PATH + 32], config[2 * sizeof url + 16];
    size_t n;

    if (!documents_manifest_url(location, url, sizeof url))
        return -EINVAL;
    n = (size_t)snprintf(config, sizeof config, "url = \"");
    for (const char *at = url; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            config[n++] = '\\';
        config[n++] = *at;
    }
    config[n++] = '"';
    config[n++] = '\n';
    return handoff_seal("catalog", config, n);
}

/* Safe: the location is the administrator's setting; curl is held to http and https and to the
 * contract's 10 s (the call's own limit is a little longer, so that curl tells the reason). */
static void
act_fetch(struct broker *b, const struct ask *ask)
{
    static const char *const name[] = {"(catalog)", NULL};
    static const char *const curl[] = {"curl", "--disable", "--silent", "--show-error", "--fail",
                                       "--location", "--max-redirs", "10", "--max-time", "10",
                                       "--proto", "=http,https", "--config", "-", NULL};
    struct cli_call call = {.args = name, .program = (char *const *)(uintptr_t)curl,
                            .timeout_ms = LIMIT_CATALOG_MS + 2000};
    int fd = make_curl_config(b->config.catalog);

    if (fd < 0) {
        answer(b, ask, ANSWER_FAILED, -1, 0, strerror(-fd));
        return;
    }
    call.in_fd = fd;
    get(&b->documents->catalog, ask, &call);
    close(fd);
}

/* Safe: the administrator's file, opened for reading. Descriptor or -errno. */
static int
act_open(const char *location, size_t *ret_size)
{
    char path[HANDOFF_PATH + 32];
    struct stat st;
    int fd, r = 0;

    snprintf(path, sizeof path, "%s", location);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        snprintf(path, sizeof path, "%s/manifest.json", location);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) != 0)
        r = -errno;
    else if (!S_ISREG(st.st_mode))
        r = -EINVAL;
    else if (st.st_size > (off_t)LIMIT_CATALOG)
        r = -EFBIG;
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_size = (size_t)st.st_size;
    return fd;
}

int
handle_catalog(struct broker *b, const struct ask *ask, const void *request,
               struct channel_packet *packet)
{
    size_t size = 0;
    int fd;

    (void)request;
    (void)packet;
    if (b->config.catalog[0] == '\0') {
        answer(b, ask, ANSWER_NOT_FOUND, -1, 0, "");
    } else if (is_url(b->config.catalog)) {
        act_fetch(b, ask);
    } else {
        fd = act_open(b->config.catalog, &size);
        answer(b, ask, fd >= 0 ? ANSWER_OK : ANSWER_FAILED, fd >= 0 ? fd : -1, size,
               fd >= 0 ? "" : strerror(-fd));
    }
    return 0;
}
