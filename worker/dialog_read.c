/* A dialog as one JSON document, in bounded memory. */
#include "worker/dialog_read.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/utf8.h"
#include "worker/file_slice.h"

struct dialog_reader *
dialog_reader_new(int fd, uint64_t size, double since, uint32_t max_entries)
{
    struct dialog_reader *r = malloc(sizeof *r);

    if (r == NULL) {
        close(fd);
        return NULL;
    }
    r->fd = fd;
    r->state = DIALOG_HEAD;
    r->size = size;
    r->offset = 0;
    r->since = r->last_seq = since;
    r->n_entries = 0;
    r->max_entries = max_entries;
    r->truncated = r->cut = r->rising = r->borrowed = false;
    r->start = r->end = 0;
    return r;
}

struct dialog_reader *
dialog_reader_of_file(int fd, uint64_t size, double since)
{
    bool cut = size > LIMIT_RUN_FILE;
    struct dialog_reader *r =
        dialog_reader_new(fd, cut ? LIMIT_RUN_FILE : size, since, LIMIT_DIALOG_ENTRIES);

    if (r != NULL)
        r->cut = cut;
    return r;
}

void
dialog_reader_free(struct dialog_reader *r)
{
    if (r == NULL)
        return;
    if (!r->borrowed)
        close(r->fd);
    free(r);
}

bool
dialog_since_parse(const char *text, double *ret_since)
{
    size_t len = strspn(text, "0123456789");

    if (len == 0 || text[len] != '\0')
        return false;
    *ret_since = strtod(text, NULL);
    return true;
}

void
dialog_add_clean(struct buf *out, const char *text, size_t len)
{
    size_t from = 0, i = 0;

    if (utf8_valid(text, len)) {
        buf_add(out, text, len);
        return;
    }
    while (i < len) {
        size_t n = utf8_sequence(text + i, len - i);

        if (n > 0) {
            i += n;
            continue;
        }
        buf_add(out, text + from, i - from);
        buf_add_str(out, UTF8_REPLACEMENT);
        i += utf8_bad_prefix(text + i, len - i);
        from = i;
    }
    buf_add(out, text + from, len - from);
}

/* More bytes behind what the window holds. 1; 0 at the end; -EIO. */
static int
read_more(struct dialog_reader *r)
{
    size_t room;
    int64_t n;

    if (r->start > 0) {
        memmove(r->window, r->window + r->start, r->end - r->start);
        r->end -= r->start;
        r->start = 0;
    }
    room = sizeof r->window - r->end;
    if (room > r->size - r->offset)
        room = (size_t)(r->size - r->offset);
    if (room == 0)
        return 0;
    n = file_slice_read(r->fd, r->window + r->end, room, r->offset);
    if (n < 0)
        return (int)n;
    if (n == 0)
        r->size = r->offset; /* the file shrank */
    r->end += (uint32_t)n;
    r->offset += (uint64_t)n;
    return n > 0;
}

/* A complete entry may follow: its comma, or the mark that the list is cut. */
static bool
admit(struct dialog_reader *r, struct buf *out)
{
    if (r->n_entries == r->max_entries) {
        r->truncated = true;
        r->state = DIALOG_OVER;
        return false;
    }
    if (r->n_entries++ > 0)
        buf_add(out, ",\n", 2);
    if (r->line.seq > r->last_seq)
        r->last_seq = r->line.seq;
    return true;
}

static bool
line_wanted(struct dialog_reader *r)
{
    double seq;

    return json_line_end(&r->line, &seq) && seq > (r->rising ? r->last_seq : r->since);
}

static void
take_line(struct dialog_reader *r, const char *line, size_t len, struct buf *out)
{
    json_line_begin(&r->line);
    json_line_feed(&r->line, line, len);
    if (line_wanted(r) && admit(r, out))
        dialog_add_clean(out, line, len);
}

/* Every whole line in the window, and the last one of the file. */
static void
take_lines(struct dialog_reader *r, bool at_end, struct buf *out)
{
    while (r->state == DIALOG_LINES && r->start < r->end) {
        const char *line = r->window + r->start;
        size_t len = r->end - r->start;
        const char *newline = memchr(line, '\n', len);

        if (newline == NULL && !at_end)
            return;
        if (newline != NULL)
            len = (size_t)(newline - line);
        r->start += (uint32_t)len + (newline != NULL);
        take_line(r, line, len, out);
    }
}

/* The window holds no newline and is full: look at the line without keeping it. */
static void
begin_long(struct dialog_reader *r)
{
    r->state = DIALOG_LONG;
    r->line_at = r->offset - (r->end - r->start);
    json_line_begin(&r->line);
    json_line_feed(&r->line, r->window + r->start, r->end - r->start);
    r->start = r->end = 0;
}

static int
step_lines(struct dialog_reader *r, struct buf *out)
{
    int got = read_more(r);

    if (got < 0)
        return got;
    take_lines(r, got == 0, out);
    if (r->state == DIALOG_LINES && got == 0) {
        r->state = DIALOG_OVER;
        r->truncated = r->cut;
    } else if (r->state == DIALOG_LINES && r->start == 0 && r->end == sizeof r->window) {
        begin_long(r);
    }
    return 1;
}

/* Feed the long line up to its newline or the end of the file. */
static int
step_long(struct dialog_reader *r, struct buf *out)
{
    int got = read_more(r);
    const char *newline;
    size_t len;

    if (got < 0)
        return got;
    newline = memchr(r->window, '\n', r->end);
    len = newline != NULL ? (size_t)(newline - r->window) : r->end;
    json_line_feed(&r->line, r->window, len);
    r->line_end = r->offset - r->end + len;
    r->start = (uint32_t)len + (newline != NULL);
    if (newline == NULL && got > 0) {
        r->start = r->end = 0;
        return 1;
    }
    r->state = DIALOG_LINES;
    if (line_wanted(r) && admit(r, out)) {
        r->state = DIALOG_COPY;
        r->start = r->end = 0;
        r->offset = r->line_at;
    }
    return 1;
}

/* Copy the long line: it was an entry when it was looked at. An agent that rewrites it in
 * between spoils the document of its own run and nothing else. */
static int
step_copy(struct dialog_reader *r, struct buf *out)
{
    uint64_t size = r->size;
    size_t hold;
    int got;

    r->size = r->line_end;
    got = read_more(r);
    if (got < 0)
        return got;
    r->size = size;
    hold = got > 0 && r->offset < r->line_end ? utf8_incomplete_tail(r->window, r->end) : 0;
    dialog_add_clean(out, r->window, r->end - hold);
    r->start = r->end - (uint32_t)hold;
    if (got > 0 && r->offset < r->line_end)
        return 1;
    r->start = r->end = 0;
    r->offset = r->line_end < size ? r->line_end + 1 : size;
    r->state = DIALOG_LINES;
    return 1;
}

int
dialog_reader_fill(struct dialog_reader *r, struct buf *out)
{
    static const char head[] = "{\"entries\":[";
    size_t before = out->len;
    int result = 1;

    switch (r->state) {
    case DIALOG_HEAD:
        buf_add(out, head, sizeof head - 1);
        r->state = DIALOG_LINES;
        return 1;
    case DIALOG_LINES:
        result = step_lines(r, out);
        break;
    case DIALOG_LONG:
        result = step_long(r, out);
        break;
    case DIALOG_COPY:
        result = step_copy(r, out);
        break;
    case DIALOG_OVER:
        return 0;
    }
    if (result < 0)
        return result;
    if (r->state == DIALOG_OVER)
        buf_add_str(out, r->truncated ? "],\"truncated\":true}" : "]}");
    else if (out->len == before)
        buf_add(out, "\n", 1); /* a blank: this slice held no entry */
    return 1;
}
