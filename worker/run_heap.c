/* Each run links to its first child and its neighbours; the first child's left one is its parent. */
#include "worker/run_heap.h"

#include <stddef.h>
#include <string.h>

#include "worker/runs_results.h"

static const char *
text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* By (started_at or "", run_id) descending; the reference makes it total. */
int
run_heap_order(const struct finished_run *a, const struct finished_run *b)
{
    int c = strcmp(text_or_empty(b->started_at), text_or_empty(a->started_at));

    if (c == 0)
        c = strcmp(b->run_id, a->run_id);
    if (c == 0)
        c = (a->ref > b->ref) - (a->ref < b->ref);
    return c;
}

/* Of all runs with one ID only the first in order is shown (contract 4.4). But one in a
 * directory of that name comes before any other: a summary alone, which a copy or an agent
 * may have made, does not replace it. */
static int
compare_claims(const struct finished_run *a, const struct finished_run *b)
{
    return a->named != b->named ? b->named - a->named : run_heap_order(a, b);
}

struct finished_run *
run_heap_join(struct finished_run *a, struct finished_run *b)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    if (compare_claims(b, a) < 0) {
        struct finished_run *better = b;

        b = a;
        a = better;
    }
    b->heap_left = a;
    b->heap_right = a->heap_child;
    if (b->heap_right != NULL)
        b->heap_right->heap_left = b;
    a->heap_child = b;
    return a;
}

static struct finished_run *
cut_off(struct finished_run *r)
{
    if (r != NULL)
        r->heap_left = r->heap_right = NULL;
    return r;
}

/* Neighbours become one heap: in pairs from the left, then the pairs from the right. That way
 * round is what keeps later removals quick. */
static struct finished_run *
join_all(struct finished_run *first)
{
    struct finished_run *pairs = NULL, *top = NULL, *next;

    while (first != NULL) {
        struct finished_run *a = first, *b = a->heap_right, *pair;

        first = b != NULL ? b->heap_right : NULL;
        pair = run_heap_join(cut_off(a), cut_off(b));
        pair->heap_right = pairs;
        pairs = pair;
    }
    for (; pairs != NULL; pairs = next) {
        next = pairs->heap_right;
        top = run_heap_join(top, cut_off(pairs));
    }
    return top;
}

struct finished_run *
run_heap_remove(struct finished_run *top, struct finished_run *r)
{
    struct finished_run *below = join_all(r->heap_child);

    r->heap_child = NULL;
    if (r == top)
        return below;
    if (r->heap_left->heap_child == r)
        r->heap_left->heap_child = r->heap_right;
    else
        r->heap_left->heap_right = r->heap_right;
    if (r->heap_right != NULL)
        r->heap_right->heap_left = r->heap_left;
    cut_off(r);
    return run_heap_join(top, below);
}
