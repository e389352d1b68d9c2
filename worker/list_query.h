/*
 * Paging, sorting and filtering of the run list: GET /api/containers?limit=&offset=&sort=&
 * order=&q=&task=&model=&agent=&status=&source=&grade=. Pure but for the request's query.
 */
#ifndef WORKER_LIST_QUERY_H
#define WORKER_LIST_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/runs.h"

#define LIST_QUERY_TEXT 257u    /* bytes of one parameter with its NUL */
#define LIST_QUERY_MOST 10000u  /* runs in one page */

enum list_filter {
    FILTER_TASK, FILTER_MODEL, FILTER_AGENT, FILTER_STATUS, FILTER_SOURCE, FILTER_GRADE,
    FILTER_COUNT
};

enum list_sort {
    SORT_LISTED, /* live in the CLI's order, then finished, newest first */
    SORT_CREATED, SORT_ID, SORT_TASK, SORT_MODEL, SORT_AGENT, SORT_STATUS, SORT_GRADE,
    SORT_SPEND, SORT_DURATION, SORT_COUNT
};

struct list_query {
    bool given; /* any parameter of ours is there */
    uint32_t limit, offset;
    enum list_sort sort;
    bool descending;
    char words[LIST_QUERY_TEXT]; /* q: every word must stand somewhere, any case */
    char filter[FILTER_COUNT][LIST_QUERY_TEXT]; /* "": all; exact text */
};

struct request;

/* Read the parameters. NULL, or the text of the 400. */
const char *
list_query_parse(const struct request *request, struct list_query *ret);

/* The rows that match, in order: malloc'ed (free()), *ret_n of them; *ret_n is their number
 * before the page is cut. NULL: no memory, or none (then *ret_n is 0). */
const struct run_row **
list_query_select(const struct list_query *q, const struct run_row *rows, size_t n_rows,
                  size_t *ret_n);

#endif
