/* Finished runs: the broker's scans, one after another, applied in slices. */
#include "worker/results_scan.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/hash.h"
#include "common/log.h"
#include "common/messages.h"
#include "worker/broker_link.h"
#include "worker/runs_results.h"
#include "worker/worker.h"

#define SLICE (128u * 1024u) /* bytes of summaries per turn of the loop: below 2 ms */

static struct {
    void (*ready)(void);
    uint64_t key[2]; /* of the tables' hashes */
    struct results_table *results;
    struct results_table *building; /* another broker numbers anew: swapped in when whole */
    uint64_t version_before;        /* the sum of those of the tables before `results` */
    uint64_t epoch, generation;     /* of what was applied */
    uint64_t shown_epoch;           /* of `results` */
    bool pending, whole;
    uint32_t cut; /* enum scan_cut */
    bool rescan;          /* the scan under way may be older than the listing */
    unsigned char *batch; /* mapped records under way */
    size_t batch_len, batch_used;
    struct answer_results_scan batch_answer;
} scan;

static void
ask(void);

/* The sandbox has no random numbers: the key comes from this start's. */
void
results_scan_init(void (*ready)(void))
{
    uint8_t digest[HASH_SIZE];

    hash_keyed(worker_config()->token_key, "results", strlen("results"), digest);
    memcpy(scan.key, digest, sizeof scan.key);
    scan.ready = ready;
    scan.results = results_table_new(scan.key);
    if (scan.results == NULL)
        log_die("no memory for the list of runs");
}

static struct results_table *
scan_target(void)
{
    return scan.building != NULL ? scan.building : scan.results;
}

static void
show_building(void)
{
    scan.version_before += results_table_version(scan.results);
    results_table_free(scan.results);
    scan.results = scan.building;
    scan.building = NULL;
}

static void
end_scan(void)
{
    scan.pending = false;
    scan.whole = true;
    scan.cut = scan.batch_answer.cut;
    if (scan.building != NULL)
        show_building();
    scan.shown_epoch = scan.epoch;
    if (scan.rescan) {
        scan.rescan = false;
        ask();
    }
}

/* Another epoch means another numbering: what it tells is everything. The runs that are shown
 * stay until the new table is whole. */
static void
begin_epoch(uint64_t epoch)
{
    scan.epoch = epoch;
    results_table_free(scan.building);
    scan.building = results_table_new(scan.key);
    if (scan.building == NULL)
        results_table_clear(scan.results);
    if (!scan.whole && scan.building != NULL) {
        /* nothing is shown yet: let the first runs be seen as they come */
        show_building();
        scan.shown_epoch = epoch;
    }
}

static void
end_batch(void)
{
    if (scan.batch != NULL)
        munmap(scan.batch, scan.batch_len);
    scan.batch = NULL;
    scan.generation = scan.batch_answer.generation;
    if (scan.batch_answer.more != 0)
        ask();
    else
        end_scan();
}

static void
on_scan(void *ctx, const void *answer, int *fds, unsigned n_fds)
{
    const struct answer_results_scan *a = answer;

    if (a == NULL || a->status != ANSWER_OK) {
        scan.pending = false; /* what is known goes on being shown */
        scan.ready();
        return;
    }
    if (a->epoch != scan.epoch)
        begin_epoch(a->epoch);
    scan.batch_answer = *a;
    scan.batch_used = 0;
    scan.batch_len = (size_t)a->size;
    if (n_fds > 0 && a->size > 0) {
        void *map = mmap(NULL, (size_t)a->size, PROT_READ, MAP_SHARED, fds[0], 0);

        scan.batch = map != MAP_FAILED ? map : NULL;
        if (scan.batch == NULL) {
            log_event(LOG_LEVEL_ERROR, "scan", "problem=memory");
            scan.pending = false;
        }
    } else {
        end_batch();
    }
    scan.ready();
}

static void
ask(void)
{
    scan.pending = true;
    broker_ask_results_scan(scan.epoch, scan.generation, on_scan, NULL);
}

/* What was missed for want of memory would be missed until it changes: ask for everything. */
static void
start_over(void)
{
    log_event(LOG_LEVEL_ERROR, "scan", "problem=memory");
    munmap(scan.batch, scan.batch_len);
    scan.batch = NULL;
    scan.epoch = scan.generation = 0;
    scan.pending = false;
}

static void
apply_slice(void)
{
    int64_t used = results_table_apply(scan_target(), scan.batch + scan.batch_used,
                                       scan.batch_len - scan.batch_used, SLICE);

    if (used == -ENOMEM) {
        start_over();
        return;
    }
    if (used < 0) {
        log_event(LOG_LEVEL_ERROR, "scan", "problem=records");
        scan.batch_used = scan.batch_len;
    } else {
        scan.batch_used += (size_t)used;
    }
    if (scan.batch_used >= scan.batch_len)
        end_batch();
}

/* --- what the table of runs asks and sees ------------------------------------------ */

void
results_scan_ask(void)
{
    if (!scan.pending)
        ask();
}

void
results_scan_again(void)
{
    if (scan.pending)
        scan.rescan = true;
    else
        ask();
}

bool
results_scan_pending(void)
{
    return scan.pending;
}

bool
results_scan_apply(void)
{
    if (scan.batch != NULL)
        apply_slice();
    return scan.batch != NULL;
}

struct results_table *
results_scan_table(void)
{
    return scan.results;
}

uint64_t
results_scan_version(void)
{
    return scan.version_before + results_table_version(scan.results);
}

bool
results_scan_whole(void)
{
    return scan.whole;
}

const char *
results_scan_cut(void)
{
    static const char *const reasons[] = {
        [SCAN_CUT_DEPTH] = "Some directories are too deep below a results root to be looked into",
        [SCAN_CUT_RUNS] = "There are more finished runs than are listed",
        [SCAN_CUT_DIRECTORIES] =
            "There are more directories below the results roots than are looked into",
        [SCAN_CUT_MEMORY] = "There was no memory to look into all of the results roots",
    };

    return scan.cut < sizeof reasons / sizeof *reasons ? reasons[scan.cut] : NULL;
}

uint64_t
results_scan_epoch(void)
{
    return scan.shown_epoch;
}
