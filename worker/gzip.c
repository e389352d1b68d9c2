/* Compressing JSON answers with zlib: at once when small, in slices when large. */
#include "worker/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "common/limits.h"

#define GZIP_LEVEL 1           /* JSON shrinks tenfold at the lowest level already */
#define GZIP_WINDOW (15 + 16)  /* 32 KiB, gzip wrapper */
#define GZIP_SLICE 65536u      /* bytes of input in one turn: about 1 ms */
#define GZIP_SILENT 4u           /* slices in one turn from which nothing comes out: well packed */
#define GZIP_STREAMS_MAX 64u   /* at once; each holds 268 kB. More go out as they are */

static unsigned n_streams;

/* Is this list member "gzip" with a weight above 0? 1 yes, 0 no, -1 another
 * coding. */
static int
member_verdict(const char *at, size_t len)
{
    const char *semicolon = memchr(at, ';', len);
    const char *end = at + len;
    size_t n = semicolon ? (size_t)(semicolon - at) : len;

    while (n > 0 && (at[n - 1] == ' ' || at[n - 1] == '\t'))
        n--;
    if (!(n == 4 && strncasecmp(at, "gzip", 4) == 0))
        return -1;
    if (!semicolon)
        return 1;
    at = semicolon + 1;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    if (end - at < 3 || (at[0] | 0x20) != 'q' || at[1] != '=')
        return 0;
    for (at += 2; at < end; at++)
        if (*at >= '1' && *at <= '9')
            return 1;
    return 0;
}

bool
gzip_accepted(const struct request *request)
{
    const char *at = request->accept_encoding.at;
    const char *end = at ? at + request->accept_encoding.len : NULL;

    while (at && at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        int verdict;

        while (at < stop && (*at == ' ' || *at == '\t'))
            at++;
        verdict = member_verdict(at, (size_t)(stop - at));
        if (verdict >= 0)
            return verdict == 1;
        at = comma ? comma + 1 : end;
    }
    return false;
}

/* --- at once ---------------------------------------------------------------------------- */

bool
gzip_is(const char *bytes, size_t len)
{
    return len > 2 && (unsigned char)bytes[0] == 0x1f && (unsigned char)bytes[1] == 0x8b;
}

char *
gzip_bytes(char *bytes, size_t *len)
{
    static z_stream z; /* kept: its 268 kB are allocated once */
    static bool ready;
    char *out = malloc(*len);

    if (!ready)
        ready = deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
                             Z_DEFAULT_STRATEGY) == Z_OK;
    if (!out || !ready || deflateReset(&z) != Z_OK) {
        free(out);
        return bytes;
    }
    z.next_in = (unsigned char *)bytes;
    z.avail_in = (unsigned)*len;
    z.next_out = (unsigned char *)out;
    z.avail_out = (unsigned)*len;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END) {
        free(out);
        return bytes;
    }
    *len -= z.avail_out;
    free(bytes);
    return out;
}

/* --- in slices ---------------------------------------------------------------------------- */

struct gzip_stream {
    z_stream z;
    struct body_source inner;
    struct buf plain; /* what the inner source gave last */
    bool ended;       /* the inner source, and all of it is in */
};

/* Compress what lies in z.next_in. 0 or -errno. */
static int
stream_deflate(struct gzip_stream *g, struct buf *out, int flush)
{
    int result;

    do {
        size_t room = 16384;
        char *at = buf_reserve(out, room);

        if (!at)
            return -ENOMEM;
        g->z.next_out = (unsigned char *)at;
        g->z.avail_out = (unsigned)room;
        result = deflate(&g->z, flush);
        if (result == Z_STREAM_ERROR)
            return -EIO;
        buf_commit(out, room - g->z.avail_out);
    } while (g->z.avail_out == 0 || (flush == Z_FINISH && result != Z_STREAM_END));
    return 0;
}

/* 1: bytes are in `out`; the inner source's answer otherwise. Goes on while the compressor
 * swallows without giving, for some slices; then it has to give. */
static int
stream_fill(void *ctx, struct buf *out)
{
    struct gzip_stream *g = ctx;
    size_t before = out->len;
    unsigned n_slices = 0;
    int more, error;

    if (g->ended)
        return 0;
    do {
        buf_reset(&g->plain);
        more = g->inner.fill(g->inner.ctx, &g->plain);
        if (more < 0 && more != -EAGAIN)
            return more;
        if (g->plain.failed)
            return -ENOMEM;
        g->z.next_in = (unsigned char *)g->plain.data;
        g->z.avail_in = (unsigned)g->plain.len;
        /* A source that waits wants what it gave to be seen. */
        error = stream_deflate(g, out,
                               more == 0 ? Z_FINISH
                               : more == -EAGAIN || ++n_slices == GZIP_SILENT
                                   ? Z_SYNC_FLUSH
                                   : Z_NO_FLUSH);
        if (error < 0)
            return error;
        g->ended = more == 0;
    } while (more == 1 && out->len == before);
    return out->len > before ? 1 : more;
}

static void
stream_done(void *ctx)
{
    struct gzip_stream *g = ctx;

    deflateEnd(&g->z);
    buf_done(&g->plain);
    g->inner.done(g->inner.ctx);
    free(g);
    n_streams--;
}

struct body_source
gzip_source(struct body_source inner, bool *ret_wrapped)
{
    struct gzip_stream *g = n_streams < GZIP_STREAMS_MAX ? calloc(1, sizeof(*g)) : NULL;

    *ret_wrapped = false;
    if (!g || deflateInit2(&g->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
                           Z_DEFAULT_STRATEGY) != Z_OK) {
        free(g);
        return inner;
    }
    n_streams++;
    g->inner = inner;
    buf_init(&g->plain, 0);
    *ret_wrapped = true;
    return (struct body_source){stream_fill, stream_done, g};
}

/* A source over bytes in memory. */
struct memory_source {
    char *bytes;
    size_t len, at;
};

static int
memory_fill(void *ctx, struct buf *out)
{
    struct memory_source *m = ctx;
    size_t n = m->len - m->at < GZIP_SLICE ? m->len - m->at : GZIP_SLICE;

    if (n == 0)
        return 0;
    buf_add(out, m->bytes + m->at, n);
    m->at += n;
    return 1;
}

static void
memory_done(void *ctx)
{
    struct memory_source *m = ctx;

    free(m->bytes);
    free(m);
}

void
gzip_answer(struct exchange *x, int status, char *bytes, size_t len)
{
    struct memory_source *m = malloc(sizeof(*m));

    if (!m) {
        free(bytes);
        exchange_error(x, 500, "The server is out of memory: try again", NULL);
        return;
    }
    *m = (struct memory_source){bytes, len, 0};
    exchange_stream(x, status, "application/json",
                    (struct body_source){memory_fill, memory_done, m});
}
