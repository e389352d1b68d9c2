/* Finding a text in the lines of a dialog. Pure. */
#ifndef WORKER_SEARCH_TEXT_H
#define WORKER_SEARCH_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEARCH_TEXT_MAX 200u /* bytes of what is looked for */
#define SEARCH_SPELLING_MAX (6u * SEARCH_TEXT_MAX) /* each byte at most \uXXXX */

struct buf;

/* One spelling, folded, with what a search of Knuth, Morris and Pratt goes by: however often a
 * line almost holds it, each byte of the line is looked at twice at most. */
struct search_spelling {
    size_t len;
    char text[SEARCH_SPELLING_MAX];
    uint16_t border[SEARCH_SPELLING_MAX]; /* of text[0..i]: how long an end of it, not all of
                                             it, is also its beginning */
};

/* What is looked for, as the bytes of a JSON line may spell it. */
struct search_text {
    struct search_spelling plain;
    struct search_spelling utf8;  /* escaped as JSON must be */
    struct search_spelling ascii; /* everything beyond ASCII as \uXXXX */
};

/* False: empty, too long, or no memory. */
bool
search_text_init(struct search_text *t, const char *text);

/* May this line hold it? Cheap; says yes where search_text_entry may still say no. */
bool
search_text_line(const struct search_text *t, const char *line, size_t len);

/* Does a string value of this entry hold it? Then one result as JSON members
 * `"seq":..,"type":..,"excerpt":..` (no braces) is added to `out`. */
bool
search_text_entry(const struct search_text *t, const char *line, size_t len, struct buf *out);

#endif
