/* The table of finished runs: two indexes and an order, all kept up record by record. */
#include "worker/runs_results.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/messages.h"
#include "common/text_hash.h"
#include "worker/run_heap.h"
#include "worker/summary_read.h"

#define FIRST_BUCKETS 256u
#define RECORD_COST 1024u /* bytes of a summary that take as long as all else about a run */
#define TAIL 256u /* new runs that are put in their place one by one; more: sort all */

struct results_table {
    struct finished_run **by_ref, **by_id; /* n_buckets chains each; by_id of winners only */
    size_t n_buckets, n_runs;
    uint64_t key[2];
    struct finished_run **order; /* sorted; losers included, and what was removed since */
    size_t n_order, order_cap;
    size_t n_removed; /* of `order`, which owns them */
    struct finished_run *tail[TAIL]; /* not yet in `order` */
    size_t n_tail;
    bool order_lost; /* sort anew from the index */
    const struct finished_run **shown;
    size_t n_shown, shown_cap;
    uint64_t version, shown_version;
};

struct results_table *
results_table_new(const uint64_t key[2])
{
    struct results_table *t = calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    memcpy(t->key, key, sizeof t->key);
    t->n_buckets = FIRST_BUCKETS;
    t->by_ref = calloc(t->n_buckets, sizeof *t->by_ref);
    t->by_id = calloc(t->n_buckets, sizeof *t->by_id);
    t->version = 1;
    if (t->by_ref == NULL || t->by_id == NULL) {
        results_table_free(t);
        return NULL;
    }
    return t;
}

/* More has changed than is put in its place one by one. */
static void
lose_order(struct results_table *t)
{
    for (size_t i = 0; t->n_removed > 0 && i < t->n_order; i++)
        if (t->order[i]->removed)
            free(t->order[i]);
    t->n_order = t->n_tail = t->n_removed = 0;
    t->order_lost = true;
}

void
results_table_clear(struct results_table *t)
{
    lose_order(t);
    for (size_t i = 0; t->by_ref != NULL && i < t->n_buckets; i++) {
        while (t->by_ref[i] != NULL) {
            struct finished_run *r = t->by_ref[i];

            t->by_ref[i] = r->next_ref;
            free(r);
        }
        if (t->by_id != NULL)
            t->by_id[i] = NULL;
    }
    t->n_runs = t->n_shown = 0;
    t->order_lost = false;
    t->version++;
}

void
results_table_free(struct results_table *t)
{
    if (t == NULL)
        return;
    results_table_clear(t);
    free(t->by_ref);
    free(t->by_id);
    free(t->order);
    free(t->shown);
    free(t);
}

uint64_t
results_table_version(const struct results_table *t)
{
    return t->version;
}

static uint64_t
hash_id(const struct results_table *t, const char *run_id)
{
    return text_hash(t->key, 0, run_id, strlen(run_id));
}

static size_t
ref_bucket(const struct results_table *t, uint64_t ref)
{
    return (size_t)(ref * 0x9e3779b97f4a7c15u >> 32) & (t->n_buckets - 1);
}

static int
compare_slots(const void *a, const void *b)
{
    return run_heap_order(*(struct finished_run *const *)a,
                          *(struct finished_run *const *)b);
}

/* Where the chains point to the winner of this ID, or could. */
static struct finished_run **
winner_slot(const struct results_table *t, uint64_t hash, const char *run_id)
{
    struct finished_run **slot = &t->by_id[hash & (t->n_buckets - 1)];

    while (*slot != NULL && ((*slot)->id_hash != hash || strcmp((*slot)->run_id, run_id) != 0))
        slot = &(*slot)->next_id;
    return slot;
}

/* Put the new winner, or none, in the place of the old one, or none. */
static void
set_winner(struct finished_run **slot, struct finished_run *winner)
{
    struct finished_run *next = *slot != NULL ? (*slot)->next_id : NULL;

    if (winner != NULL)
        winner->next_id = next;
    *slot = winner != NULL ? winner : next;
}

const struct finished_run *
results_table_find(const struct results_table *t, const char *run_id)
{
    return *winner_slot(t, hash_id(t, run_id), run_id);
}

static void
link_ref(struct results_table *t, struct finished_run *r)
{
    struct finished_run **ref = &t->by_ref[ref_bucket(t, r->ref)];

    r->next_ref = *ref;
    *ref = r;
}

/* Twice the buckets; without memory the chains just grow longer. */
static void
grow(struct results_table *t)
{
    size_t old_n = t->n_buckets;
    struct finished_run **old_ref = t->by_ref;
    struct finished_run **by_ref = calloc(2 * old_n, sizeof *by_ref);
    struct finished_run **by_id = calloc(2 * old_n, sizeof *by_id);

    if (by_ref == NULL || by_id == NULL) {
        free(by_ref);
        free(by_id);
        return;
    }
    free(t->by_id);
    t->by_ref = by_ref;
    t->by_id = by_id;
    t->n_buckets = 2 * old_n;
    for (size_t i = 0; i < old_n; i++) {
        struct finished_run *r = old_ref[i], *next;

        for (; r != NULL; r = next) {
            next = r->next_ref;
            link_ref(t, r);
            if (r->heap_left == NULL)
                set_winner(winner_slot(t, r->id_hash, r->run_id), r);
        }
    }
    free(old_ref);
}

static void
add_run(struct results_table *t, struct finished_run *r)
{
    struct finished_run **slot;

    if (t->n_runs >= t->n_buckets)
        grow(t);
    r->id_hash = hash_id(t, r->run_id);
    link_ref(t, r);
    t->n_runs++;
    slot = winner_slot(t, r->id_hash, r->run_id);
    set_winner(slot, run_heap_join(*slot, r));
    if (t->order_lost)
        return;
    if (t->n_tail < TAIL)
        t->tail[t->n_tail++] = r;
    else
        lose_order(t);
}

/* The place in `order` where `r` stands or belongs. */
static size_t
find_place(const struct results_table *t, const struct finished_run *r)
{
    size_t low = 0, high = t->n_order;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (run_heap_order(t->order[mid], r) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Free a run, or leave that to the order that it stands in. */
static void
drop_run(struct results_table *t, struct finished_run *r)
{
    for (size_t i = 0; i < t->n_tail; i++)
        if (t->tail[i] == r) {
            t->tail[i] = t->tail[--t->n_tail];
            free(r);
            return;
        }
    if (t->order_lost) {
        free(r);
    } else {
        r->removed = true;
        t->n_removed++;
    }
}

static void
remove_ref(struct results_table *t, uint64_t ref)
{
    struct finished_run **at = &t->by_ref[ref_bucket(t, ref)], **slot, *r;

    while (*at != NULL && (*at)->ref != ref)
        at = &(*at)->next_ref;
    r = *at;
    if (r == NULL)
        return;
    *at = r->next_ref;
    t->n_runs--;
    slot = winner_slot(t, r->id_hash, r->run_id);
    set_winner(slot, run_heap_remove(*slot, r));
    drop_run(t, r);
}

/* False: for want of memory, which says nothing about the run. */
static bool
apply_record(struct results_table *t, const struct scan_record *record, const char *dir)
{
    struct finished_run *r;

    remove_ref(t, record->ref);
    if (record->gone || t->n_runs >= LIMIT_RUNS)
        return true;
    errno = 0;
    r = summary_read(dir + record->dir_len, record->summary_len, dir, record->dir_len);
    if (r == NULL)
        return errno != ENOMEM;
    r->ref = record->ref;
    r->mtime_ns = record->mtime_ns;
    add_run(t, r);
    return true;
}

int64_t
results_table_apply(struct results_table *t, const unsigned char *bytes, size_t len,
                    size_t budget)
{
    size_t used = 0, spent = 0;

    while (used < len && spent < budget) {
        struct scan_record record;
        size_t size;

        if (len - used < sizeof record)
            return -EBADMSG;
        memcpy(&record, bytes + used, sizeof record);
        size = sizeof record + (size_t)record.dir_len + record.summary_len;
        size = (size + 7) & ~(size_t)7;
        if (size > len - used)
            return -EBADMSG;
        if (!apply_record(t, &record, (const char *)bytes + used + sizeof record))
            return -ENOMEM;
        used += size;
        spent += size > RECORD_COST ? size : RECORD_COST;
    }
    if (used > 0)
        t->version++;
    return (int64_t)used;
}

static bool
reserve_order(struct results_table *t, size_t n)
{
    struct finished_run **order;

    if (n <= t->order_cap)
        return true;
    n += n / 2;
    order = realloc(t->order, n * sizeof *order);
    if (order == NULL)
        return false;
    t->order = order;
    t->order_cap = n;
    return true;
}

static void
sweep_order(struct results_table *t)
{
    size_t n = 0;

    for (size_t i = 0; t->n_removed > 0 && i < t->n_order; i++) {
        if (!t->order[i]->removed)
            t->order[n++] = t->order[i];
        else
            free(t->order[i]);
    }
    if (t->n_removed > 0)
        t->n_order = n;
    t->n_removed = 0;
}

static bool
update_order(struct results_table *t)
{
    sweep_order(t);
    if (!reserve_order(t, t->n_runs))
        return false;
    if (t->order_lost) {
        for (size_t i = 0; i < t->n_buckets; i++)
            for (struct finished_run *r = t->by_ref[i]; r != NULL; r = r->next_ref)
                t->order[t->n_order++] = r;
        qsort(t->order, t->n_order, sizeof *t->order, compare_slots);
        t->order_lost = false;
    }
    while (t->n_tail > 0) {
        struct finished_run *r = t->tail[--t->n_tail];
        size_t place = find_place(t, r);

        memmove(t->order + place + 1, t->order + place,
                (t->n_order - place) * sizeof *t->order);
        t->order[place] = r;
        t->n_order++;
    }
    return true;
}

static bool
reserve_shown(struct results_table *t, size_t n)
{
    const struct finished_run **shown;

    if (n <= t->shown_cap)
        return true;
    n += n / 2;
    shown = realloc(t->shown, n * sizeof *shown);
    if (shown == NULL)
        return false;
    t->shown = shown;
    t->shown_cap = n;
    return true;
}

bool
results_table_is_empty(const struct results_table *t)
{
    return t->n_runs == 0;
}

const struct finished_run *const *
results_table_sorted(struct results_table *t, size_t *ret_n)
{
    *ret_n = t->n_shown;
    if (t->shown_version == t->version)
        return t->shown;
    t->n_shown = *ret_n = 0; /* the old pointers may be gone */
    if (!update_order(t) || !reserve_shown(t, t->n_order))
        return NULL;
    for (size_t i = 0; i < t->n_order; i++)
        if (t->order[i]->heap_left == NULL) /* the winner of its ID */
            t->shown[t->n_shown++] = t->order[i];
    t->shown_version = t->version;
    *ret_n = t->n_shown;
    return t->shown;
}

const char *
grade_name(enum grade grade)
{
    switch (grade) {
    case GRADE_PASSED:
        return "passed";
    case GRADE_FAILED:
        return "failed";
    case GRADE_ERROR:
        return "error";
    case GRADE_NONE:
        break;
    }
    return NULL;
}
