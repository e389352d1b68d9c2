/* Which runs of the table a page shows, and in what order. */
#include "worker/list_query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/request.h"
#include "worker/run_render.h"
#include "worker/runs_results.h"

static const char *const filter_names[FILTER_COUNT] = {
    [FILTER_TASK] = "task",     [FILTER_MODEL] = "model",   [FILTER_AGENT] = "agent",
    [FILTER_STATUS] = "status", [FILTER_SOURCE] = "source", [FILTER_GRADE] = "grade",
};

static const char *const sort_names[SORT_COUNT] = {
    [SORT_LISTED] = "listed",     [SORT_CREATED] = "created", [SORT_ID] = "id",
    [SORT_TASK] = "task",         [SORT_MODEL] = "model",     [SORT_AGENT] = "agent",
    [SORT_STATUS] = "status",     [SORT_GRADE] = "grade",     [SORT_SPEND] = "spend",
    [SORT_DURATION] = "duration",
};

/* --- parameters ------------------------------------------------------------------------- */

/* 1: a whole number up to `most`; 0: absent; -EBADMSG. */
static int
read_number(const struct request *request, const char *name, uint32_t most,
            uint32_t *ret_value)
{
    char text[16];
    int given = request_query(request, name, text, sizeof text);
    unsigned long value;

    if (given <= 0)
        return given;
    if (*text == '\0' || strlen(text) > 9 || strspn(text, "0123456789") != strlen(text))
        return -EBADMSG;
    value = strtoul(text, NULL, 10);
    if (value > most)
        return -EBADMSG;
    *ret_value = (uint32_t)value;
    return 1;
}

static int
read_sort(const struct request *request, struct list_query *q)
{
    char text[16];
    int given = request_query(request, "sort", text, sizeof text);

    if (given <= 0)
        return given;
    for (unsigned i = 0; i < SORT_COUNT; i++)
        if (strcmp(text, sort_names[i]) == 0) {
            q->sort = (enum list_sort)i;
            return 1;
        }
    return -EBADMSG;
}

static int
read_order(const struct request *request, struct list_query *q)
{
    char text[8];
    int given = request_query(request, "order", text, sizeof text);

    if (given <= 0)
        return given;
    q->descending = strcmp(text, "desc") == 0;
    return q->descending || strcmp(text, "asc") == 0 ? 1 : -EBADMSG;
}

const char *
list_query_parse(const struct request *request, struct list_query *ret)
{
    struct list_query q = {.limit = UINT32_MAX};
    int limit = read_number(request, "limit", LIST_QUERY_MOST, &q.limit);
    int offset = read_number(request, "offset", 999999999, &q.offset);
    int sort = read_sort(request, &q);
    int order = read_order(request, &q);
    int words = request_query(request, "q", q.words, sizeof q.words);

    if (limit < 0)
        return "Invalid limit: expected 0 to 10000";
    if (offset < 0)
        return "Invalid offset: expected a whole number";
    if (sort < 0)
        return "Invalid sort: expected listed, created, id, task, model, agent, status, "
               "grade, spend or duration";
    if (order < 0)
        return "Invalid order: expected asc or desc";
    if (words < 0)
        return "Invalid q: expected up to 256 bytes of text";
    q.given = limit > 0 || offset > 0 || sort > 0 || order > 0 || words > 0;
    for (unsigned i = 0; i < FILTER_COUNT; i++) {
        int given = request_query(request, filter_names[i], q.filter[i],
                                  sizeof q.filter[i]);

        if (given < 0)
            return "Invalid filter: expected one text of up to 256 bytes";
        q.given |= given > 0;
    }
    *ret = q;
    return NULL;
}

/* --- matching ---------------------------------------------------------------------------- */

static bool
word_in(const char *text, const char *word, size_t len)
{
    for (; *text != '\0'; text++)
        if (strncasecmp(text, word, len) == 0)
            return true;
    return false;
}

static bool
words_match(const char *words, const struct run_view *v)
{
    const char *const fields[] = {v->id, v->name, v->task, v->model, v->agent, v->image};

    while (*(words += strspn(words, " ")) != '\0') {
        size_t len = strcspn(words, " ");
        bool hit = false;

        for (size_t i = 0; !hit && i < sizeof fields / sizeof *fields; i++)
            hit = word_in(fields[i], words, len);
        if (!hit)
            return false;
        words += len;
    }
    return true;
}

static bool
row_matches(const struct list_query *q, const struct run_row *row)
{
    struct run_view v;

    run_view_of(row, &v);
    for (unsigned i = 0; i < FILTER_COUNT; i++) {
        const char *const values[FILTER_COUNT] = {
            [FILTER_TASK] = v.task,     [FILTER_MODEL] = v.model,
            [FILTER_AGENT] = v.agent,   [FILTER_STATUS] = v.status,
            [FILTER_SOURCE] = v.source, [FILTER_GRADE] = v.grade != NULL ? v.grade : "none",
        };

        if (q->filter[i][0] != '\0' && strcmp(q->filter[i], values[i]) != 0)
            return false;
    }
    return words_match(q->words, &v);
}

/* --- order -------------------------------------------------------------------------------- */

static const char *
sort_text(enum list_sort sort, const struct run_view *v)
{
    switch (sort) {
    case SORT_CREATED:
        return v->created_at;
    case SORT_ID:
        return v->id;
    case SORT_TASK:
        return v->task;
    case SORT_MODEL:
        return v->model;
    case SORT_AGENT:
        return v->agent;
    case SORT_STATUS:
        return v->status;
    case SORT_GRADE:
        return v->grade != NULL ? v->grade : "";
    case SORT_LISTED:
    case SORT_SPEND:
    case SORT_DURATION:
    case SORT_COUNT:
        break;
    }
    return "";
}

static double
sort_number(enum list_sort sort, const struct run_row *row)
{
    if (sort == SORT_SPEND)
        return row->done != NULL ? row->done->spend : -1;
    return run_duration(row);
}

static int
compare_rows(const void *a, const void *b, void *ctx)
{
    const struct run_row *x = *(const struct run_row *const *)a;
    const struct run_row *y = *(const struct run_row *const *)b;
    const struct list_query *q = ctx;
    int c = 0;

    if (q->sort == SORT_SPEND || q->sort == SORT_DURATION) {
        double p = sort_number(q->sort, x), r = sort_number(q->sort, y);

        c = (p > r) - (p < r);
    } else if (q->sort != SORT_LISTED) {
        struct run_view v, w;

        run_view_of(x, &v);
        run_view_of(y, &w);
        c = strcmp(sort_text(q->sort, &v), sort_text(q->sort, &w));
    } else {
        c = (x > y) - (x < y);
    }
    if (q->descending)
        c = -c;
    return c != 0 ? c : (x > y) - (x < y); /* rows lie in the listed order */
}

/* Rows lie with the newest first, which is also what people ask for most: looking costs n
 * comparisons, sorting a hundred thousand rows 40 ms of everybody's time. */
static bool
in_order(const struct list_query *q, const struct run_row **found, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (compare_rows(&found[i - 1], &found[i], (void *)(uintptr_t)q) > 0)
            return false;
    return true;
}

const struct run_row **
list_query_select(const struct list_query *q, const struct run_row *rows, size_t n_rows,
                  size_t *ret_n)
{
    const struct run_row **found = n_rows > 0 ? malloc(n_rows * sizeof *found) : NULL;
    size_t n = 0;

    for (size_t i = 0; found != NULL && i < n_rows; i++)
        if (row_matches(q, &rows[i]))
            found[n++] = &rows[i];
    if (found != NULL && (q->sort != SORT_LISTED || q->descending) && !in_order(q, found, n))
        qsort_r(found, n, sizeof *found, compare_rows, (void *)(uintptr_t)q);
    *ret_n = n;
    return found;
}
