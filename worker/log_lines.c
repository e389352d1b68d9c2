/* A byte stream as whole lines, in bounded memory. */
#include "worker/log_lines.h"

#include <limits.h>
#include <string.h>

#include "common/limits.h"

void
log_lines_init(struct log_lines *l, void (*line)(void *ctx, const char *text, size_t len),
               void *ctx)
{
    *l = (struct log_lines){.line = line, .ctx = ctx};
    buf_init(&l->rest, 0);
}

void
log_lines_done(struct log_lines *l)
{
    buf_done(&l->rest);
}

void
log_lines_reset(struct log_lines *l)
{
    buf_reset(&l->rest);
    l->in_pieces = false;
}

static bool
is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\r\v\f", text[i]) || text[i] == '\0')
            return false;
    return true;
}

static void
pass_line(struct log_lines *l, const char *text, size_t len)
{
    /* The last piece of a long line may be empty or blank like any text inside a line. */
    if (len > 0 && (l->in_pieces || !is_blank(text, len)))
        l->line(l->ctx, text, len);
    l->in_pieces = false;
}

/* Where to cut before `most`, so that no UTF-8 sequence is torn. */
static size_t
cut_at(const char *text, size_t most)
{
    size_t at = most;
    while (at > most - 3 && ((unsigned char)text[at] & 0xC0) == 0x80)
        at--;
    return ((unsigned char)text[at] & 0xC0) == 0x80 ? most : at;
}

/* Pass on pieces of text[0..len) while it is too long for one; returns what remains. */
static size_t
pass_pieces(struct log_lines *l, const char *text, size_t len)
{
    size_t used = 0;
    while (len - used > LIMIT_LOG_PIECE) {
        size_t cut = cut_at(text + used, LIMIT_LOG_PIECE);
        l->line(l->ctx, text + used, cut);
        l->in_pieces = true;
        used += cut;
    }
    return used;
}

static void
keep_rest(struct log_lines *l, const char *text, size_t len)
{
    buf_add(&l->rest, text, len);
    if (l->rest.failed) { /* out of memory: lose this piece, not the stream */
        buf_done(&l->rest);
        return;
    }
    if (l->rest.len > LIMIT_LOG_PIECE)
        buf_consume(&l->rest, pass_pieces(l, l->rest.data, l->rest.len));
}

void
log_lines_feed(struct log_lines *l, const char *bytes, size_t len)
{
    log_lines_feed_some(l, bytes, len, UINT_MAX);
}

size_t
log_lines_feed_some(struct log_lines *l, const char *bytes, size_t len, unsigned max_lines)
{
    const char *begin = bytes;

    while (len > 0 && max_lines-- > 0) {
        const char *newline = memchr(bytes, '\n', len);
        size_t part = newline ? (size_t)(newline - bytes) : len;
        if (newline && l->rest.len == 0) {
            size_t used = pass_pieces(l, bytes, part);
            pass_line(l, bytes + used, part - used);
        } else if (part > 0) {
            keep_rest(l, bytes, part);
        }
        if (newline && l->rest.len > 0) {
            pass_line(l, l->rest.data, l->rest.len);
            buf_reset(&l->rest);
        } else if (newline) {
            l->in_pieces = false;
        }
        bytes += part + (newline ? 1 : 0);
        len -= part + (newline ? 1 : 0);
    }
    return (size_t)(bytes - begin);
}

void
log_lines_end(struct log_lines *l)
{
    if (l->rest.len > 0)
        pass_line(l, l->rest.data, l->rest.len);
    log_lines_reset(l);
    buf_done(&l->rest);
}
