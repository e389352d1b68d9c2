/* Finding a text in the lines of a dialog. Pure. */
#ifndef WORKER_SEARCH_TEXT_H
#define WORKER_SEARCH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

#define SEARCH_TEXT_MAX 200u /* bytes of what is looked for */

/* What is looked for, as the bytes of a JSON line may spell it. */
struct search_text {
    char plain[SEARCH_TEXT_MAX + 1];
    size_t plain_len;
    struct buf utf8;  /* escaped as JSON must be */
    struct buf ascii; /* everything beyond ASCII as \uXXXX */
};

/* False: empty, too long, or no memory. search_text_done in any case. */
bool
search_text_init(struct search_text *t, const char *text);
void
search_text_done(struct search_text *t);

/* May this line hold it? Cheap; says yes where search_text_entry may still say no. */
bool
search_text_line(const struct search_text *t, const char *line, size_t len);

/* Does a string value of this entry hold it? Then one result as JSON members
 * `"seq":..,"type":..,"excerpt":..` (no braces) is added to `out`. */
bool
search_text_entry(const struct search_text *t, const char *line, size_t len, struct buf *out);

#endif
