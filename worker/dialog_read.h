/*
 * Reading a dialog (contract 4.4, 5): the lines of a file that are JSON objects with a numeric
 * `seq` above a bound, as a JSON document, slice by slice. Memory is one window whatever the
 * file holds; a line longer than the window is looked at first and copied afterwards.
 */
#ifndef WORKER_DIALOG_READ_H
#define WORKER_DIALOG_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "worker/json_line.h"

#define DIALOG_WINDOW (64u * 1024u) /* bytes read, and about what one slice renders */

enum dialog_state { DIALOG_HEAD, DIALOG_LINES, DIALOG_LONG, DIALOG_COPY, DIALOG_OVER };

struct dialog_reader {
    int fd; /* owned */
    enum dialog_state state;
    uint64_t size;   /* bytes to read: what the file had when it was opened */
    uint64_t offset; /* of the next byte to read */
    uint64_t line_at, line_end; /* the long line at hand */
    double since;    /* only entries with seq > since */
    bool rising;     /* only entries with a seq above all before: set after dialog_reader_new */
    bool borrowed;   /* the descriptor is not closed: the same */
    uint32_t n_entries, max_entries;
    double last_seq; /* the highest of the entries so far; `since` before the first */
    bool truncated;  /* max_entries were reached and one more is there; or `cut` */
    bool cut;        /* the file has more than is read */
    struct json_line line;
    uint32_t start, end; /* unread bytes in the window */
    char window[DIALOG_WINDOW];
};

/* `fd` becomes the reader's. NULL: no memory (fd is closed). */
struct dialog_reader *
dialog_reader_new(int fd, uint64_t size, double since, uint32_t max_entries);

/* The same for a document: of a longer file the first LIMIT_RUN_FILE bytes, LIMIT_DIALOG_ENTRIES
 * of them, and `truncated` if there is more. */
struct dialog_reader *
dialog_reader_of_file(int fd, uint64_t size, double since);

void
dialog_reader_free(struct dialog_reader *r);

/* Render the next slice: at least one byte is added. 1; 0 when the document is complete
 * (nothing was added); -EIO when the file cannot be read. A slice ends between two entries
 * unless `state` is DIALOG_COPY after it; sdk_documents.c cuts the document there. */
int
dialog_reader_fill(struct dialog_reader *r, struct buf *out);

/* Read the text of a `since` parameter. False: not digits only. */
bool
dialog_since_parse(const char *text, double *ret_since);

/* Add bytes with ill-formed UTF-8 replaced by U+FFFD. */
void
dialog_add_clean(struct buf *out, const char *text, size_t len);

#endif
