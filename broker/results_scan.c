/*
 * Answering RESULTS_SCAN: the walk and the reading of summaries share small slices of time,
 * below everything else the broker does.
 * Distrusts: the summaries; they are copied into a memfd unread.
 */
#include "broker/results_scan.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/dispatch.h"
#include "broker/results_walk.h"
#include "broker/run_dirs.h"
#include "common/buf.h"
#include "common/handoff.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/monotonic.h"
#include "common/open_beneath.h"

#define STEPS_PER_LOOK 8u /* steps between two looks at the clock */

/* One request: the first in line is being answered, the others wait. */
struct job {
    STAILQ_ENTRY(job) link;
    struct ask ask;
    uint64_t generation; /* of the last record, or what the worker holds */
    uint32_t last;       /* the directory of the last record, or RUN_DIR_NONE */
};

struct results_scan {
    struct broker *broker;
    struct results_walk walk;
    uint64_t walked_ms; /* when the last complete walk began; 0: none yet */
    uint64_t began_ms;  /* when the one under way began */
    enum scan_cut cut;  /* of the last complete walk */
    bool outgrown;      /* the table has no room and is mostly of what has vanished */
    bool stale;         /* something happened since that: it makes nothing fresh */
    struct event *work;
    struct buf records; /* of the first job */
    STAILQ_HEAD(, job) jobs;
};

/* --- one record ---------------------------------------------------------------------- */

/* Read all of a file that may shrink meanwhile. Bytes read, or -errno. */
static ssize_t
read_up_to(int fd, char *out, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, out + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

enum outcome { ADDED, SKIPPED, FULL, TRY_LATER };

/* One record, the summary read straight to where it belongs. */
static enum outcome
add_run(struct results_scan *scan, struct scan_record *head, int fd, size_t size,
        const char *path)
{
    struct buf *out = &scan->records;
    size_t before = sizeof *head + head->dir_len, len;
    char *room;
    ssize_t n;

    if (out->len > 0 && out->len + before + size + 8 > LIMIT_SCAN_BATCH)
        return FULL;
    room = buf_reserve(out, before + size + 8);
    if (room == NULL)
        return TRY_LATER;
    n = read_up_to(fd, room + before, size);
    if (n < 0)
        return SKIPPED;
    head->summary_len = (uint32_t)n;
    memcpy(room, head, sizeof *head);
    memcpy(room + sizeof *head, path, head->dir_len);
    len = before + (size_t)n;
    memset(room + len, 0, 8);
    buf_commit(out, (len + 7) / 8 * 8);
    return ADDED;
}

/* Safe: a directory this broker found, a constant name, no link followed, size bounded. */
static enum outcome
add_dir(struct results_scan *scan, uint32_t dir)
{
    struct run_dirs *rd = scan->broker->run_dirs;
    struct run_dir *d = &rd->dirs[dir];
    struct scan_record head = {.root = d->root, .ref = dir};
    char path[RUN_DIRS_PATH + sizeof "/summary.json"];
    int len = run_dirs_path(rd, dir, path), fd = -ENOENT;
    enum outcome outcome = SKIPPED;
    struct stat st;

    if (d->state == RUN_DIR_RUN && len >= 0 && rd->root_fds[d->root] >= 0) {
        memcpy(path + len, "/summary.json", sizeof "/summary.json");
        fd = open_beneath_file(rd->root_fds[d->root], path, LIMIT_SUMMARY, &st);
    }
    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
        return TRY_LATER;
    if (fd >= 0) {
        head.mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
        head.dir_len = (uint32_t)len;
        outcome = add_run(scan, &head, fd, (size_t)st.st_size, path);
        close(fd);
    }
    if (outcome == ADDED)
        d->given = true;
    if (outcome != SKIPPED || !d->given)
        return outcome; /* what was never given out need not be taken back */
    head = (struct scan_record){.gone = 1, .root = d->root, .ref = dir};
    if (scan->records.len + sizeof head > LIMIT_SCAN_BATCH && scan->records.len > 0)
        return FULL;
    buf_add(&scan->records, &head, sizeof head);
    return scan->records.failed ? TRY_LATER : ADDED;
}

/* --- one job ---------------------------------------------------------------------------- */

static uint32_t
next_dir(const struct run_dirs *rd, const struct job *job)
{
    /* Unless the last one changed again meanwhile, the next stands beside it. */
    if (job->last != RUN_DIR_NONE && rd->dirs[job->last].generation == job->generation)
        return rd->dirs[job->last].newer;
    return run_dirs_after(rd, job->generation);
}

static void
finish_job(struct results_scan *scan, enum answer_status status, bool more)
{
    struct job *job = STAILQ_FIRST(&scan->jobs);
    struct answer_results_scan a = {.status = status, .more = more,
                                    .epoch = scan->broker->run_dirs->epoch,
                                    .generation = job->generation,
                                    .cut = scan->cut};
    int fd = -1;

    if (status == ANSWER_OK && scan->records.len > 0) {
        fd = scan->records.failed
                 ? -ENOMEM
                 : handoff_seal("results", scan->records.data, scan->records.len);
        a.size = scan->records.len;
    }
    if (fd < -1)
        dispatch_answer_status(scan->broker->dispatch, &job->ask, ANSWER_BUSY);
    else
        dispatch_answer(scan->broker->dispatch, &job->ask, &a, fd);
    STAILQ_REMOVE_HEAD(&scan->jobs, link);
    free(job);
    buf_done(&scan->records);
    buf_init(&scan->records, 0);
}

/* A few records for the first job. False: nothing to do for it before the walk goes on. */
static bool
work_on_job(struct results_scan *scan)
{
    struct job *job = STAILQ_FIRST(&scan->jobs);
    struct run_dirs *rd = scan->broker->run_dirs;
    uint32_t dir = next_dir(rd, job);

    if (dir == RUN_DIR_NONE) {
        if (scan->walk.active)
            return false;
        finish_job(scan, ANSWER_OK, false);
        return true;
    }
    switch (add_dir(scan, dir)) {
    case ADDED:
    case SKIPPED:
        job->last = dir;
        job->generation = rd->dirs[dir].generation;
        break;
    case FULL:
        finish_job(scan, ANSWER_OK, true);
        break;
    case TRY_LATER:
        if (scan->records.len > 0 && !scan->records.failed)
            finish_job(scan, ANSWER_OK, true);
        else
            finish_job(scan, ANSWER_BUSY, true);
        break;
    }
    return true;
}

/* --- slices ------------------------------------------------------------------------------- */

void
results_scan_expire(struct results_scan *scan)
{
    scan->walked_ms = 0;
    scan->stale = true;
}

void
results_scan_renew(struct results_scan *scan)
{
    struct run_dirs *rd = scan->broker->run_dirs;

    log_event(LOG_LEVEL_WARNING, "results-table-renewed", "directories=%u", rd->n_dirs);
    results_walk_done(&scan->walk);
    if (run_dirs_reset(rd) != 0) {
        log_event(LOG_LEVEL_ERROR, "results-table-lost", "reason=memory");
        event_base_loopbreak(scan->broker->base); /* the master starts a new broker */
        return;
    }
    results_walk_init(&scan->walk, rd);
    scan->walked_ms = 0;
    scan->outgrown = false;
}

static void
end_walk(struct results_scan *scan)
{
    struct run_dirs *rd = scan->broker->run_dirs;
    uint32_t n_gone = 0;

    scan->walked_ms = scan->stale ? 0 : scan->began_ms;
    scan->cut = scan->walk.cut;
    scan->outgrown = false;
    if (scan->cut < SCAN_CUT_DIRECTORIES)
        return;
    /* More has vanished than is there: start anew, or the table would never have room again. */
    for (uint32_t i = 1; i < rd->n_dirs; i++)
        n_gone += rd->dirs[i].state == RUN_DIR_GONE;
    scan->outgrown = n_gone >= rd->n_dirs / 2;
}

static void
on_work(evutil_socket_t fd, short what, void *arg)
{
    struct results_scan *scan = arg;
    uint64_t end_us = monotonic_us() + LIMIT_SCAN_SLICE_US;

    (void)fd;
    (void)what;
    do {
        for (unsigned i = 0; i < STEPS_PER_LOOK; i++) {
            bool busy = !STAILQ_EMPTY(&scan->jobs) && work_on_job(scan);

            if (busy)
                continue;
            if (!scan->walk.active) {
                if (scan->outgrown) /* not under the hands of a request, and there is none */
                    results_scan_renew(scan);
                return;
            }
            results_walk_step(&scan->walk);
            if (!scan->walk.active)
                end_walk(scan);
        }
    } while (monotonic_us() < end_us);
    event_active(scan->work, EV_TIMEOUT, 0);
}

static void
begin_walk(struct results_scan *scan)
{
    if (scan->walk.active)
        return;
    scan->began_ms = broker_now_ms();
    scan->stale = false;
    results_walk_begin(&scan->walk);
}

int
handle_results_scan(struct broker *b, const struct ask *ask, const void *request,
                    struct channel_packet *packet)
{
    const struct request_results_scan *q = request;
    struct results_scan *scan = b->results_scan;
    struct job *job = calloc(1, sizeof *job);
    uint64_t now = broker_now_ms();

    (void)packet;
    if (job == NULL) {
        dispatch_answer_status(b->dispatch, ask, ANSWER_BUSY);
        return 0;
    }
    job->ask = *ask;
    if (q->epoch == b->run_dirs->epoch && q->generation <= b->run_dirs->generation)
        job->generation = q->generation;
    STAILQ_INSERT_TAIL(&scan->jobs, job, link);
    /* A worker that fetches batch after batch makes no new walk; one that asks now and then
     * gets what is at most LIMIT_SCAN_AGE_MS old. */
    if (scan->walked_ms == 0 || now - scan->walked_ms > LIMIT_SCAN_AGE_MS)
        begin_walk(scan);
    event_active(scan->work, EV_TIMEOUT, 0);
    return 0;
}

struct results_scan *
results_scan_new(struct broker *b)
{
    struct results_scan *scan = calloc(1, sizeof *scan);

    if (scan == NULL)
        return NULL;
    scan->broker = b;
    STAILQ_INIT(&scan->jobs);
    results_walk_init(&scan->walk, b->run_dirs);
    buf_init(&scan->records, 0);
    scan->work = event_new(b->base, -1, 0, on_work, scan);
    if (scan->work == NULL ||
        event_priority_set(scan->work, BROKER_PRIORITY_WALK) != 0) {
        results_scan_free(scan);
        return NULL;
    }
    begin_walk(scan);
    event_active(scan->work, EV_TIMEOUT, 0);
    return scan;
}

void
results_scan_free(struct results_scan *scan)
{
    if (scan == NULL)
        return;
    while (!STAILQ_EMPTY(&scan->jobs)) {
        struct job *job = STAILQ_FIRST(&scan->jobs);

        STAILQ_REMOVE_HEAD(&scan->jobs, link);
        free(job);
    }
    results_walk_done(&scan->walk);
    buf_done(&scan->records);
    if (scan->work != NULL)
        event_free(scan->work);
    free(scan);
}
