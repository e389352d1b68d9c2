/* Full-text search over the dialogs of finished runs, within a time budget. */
#ifndef WORKER_SEARCH_H
#define WORKER_SEARCH_H

struct exchange;

/* GET /api/search?q=TEXT&limit=N&budget=MS: entries that hold the text (ASCII letters in any
 * case), newest run first. Says how many runs were read and whether that was all. */
void
handle_search(struct exchange *x);

#endif
