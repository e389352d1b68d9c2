/* Fuzz entry of what a container's daemon answers: the verdict, the body and the type are the
 * same wherever the stream is cut, and nothing over the limit is passed on. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/limits.h"
#include "worker/upstream_parse.h"

#define BODY_MOST 4096u

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct got {
    struct buf body;
    char type[UPSTREAM_TYPE_SIZE];
    int status, verdict;
    bool endless, keeps;
};

static bool
on_head(void *ctx, int status, const char *type)
{
    struct got *got = ctx;

    if (got->status != 0 || status < 200 || status > 599 || strlen(type) >= sizeof got->type)
        abort();
    got->status = status;
    strcpy(got->type, type);
    return true;
}

static bool
on_data(void *ctx, const char *at, size_t len)
{
    struct got *got = ctx;

    if (got->status == 0)
        abort(); /* a body before its head */
    buf_add(&got->body, at, len);
    if (!got->endless && got->body.len > BODY_MOST)
        abort();
    return true;
}

static void
read_all(const char *bytes, size_t len, size_t piece, bool endless, struct got *got)
{
    struct upstream_sink sink = {on_head, on_data, got};
    struct upstream_parser *p = upstream_parser_new(sink, BODY_MOST, endless);

    *got = (struct got){.endless = endless};
    buf_init(&got->body, 0);
    for (size_t at = 0; at < len && got->verdict == 0; at += piece)
        got->verdict = upstream_parser_feed(p, bytes + at, len - at < piece ? len - at : piece);
    if (got->verdict == 0)
        got->verdict = upstream_parser_end(p);
    got->keeps = got->verdict == 1 && upstream_parser_keeps(p);
    if (got->verdict == 1 && got->status == 0)
        abort();
    upstream_parser_free(p);
}

static void
compare(struct got *a, struct got *b)
{
    if (a->verdict != b->verdict)
        abort();
    if (a->verdict == 1 &&
        (a->status != b->status || strcmp(a->type, b->type) != 0 || a->body.len != b->body.len ||
         (a->body.len > 0 && memcmp(a->body.data, b->body.data, a->body.len) != 0)))
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *text = (const char *)bytes;
    struct got whole, parts;
    bool endless;

    if (len == 0)
        return 0;
    endless = bytes[0] & 1;
    read_all(text + 1, len - 1, len, endless, &whole);
    for (size_t piece = 1; piece <= 7; piece += 3) {
        read_all(text + 1, len - 1, piece, endless, &parts);
        /* Limits of the head are counted by reads; both sides of one are refusals. */
        if (len < LIMIT_UPSTREAM_HEAD)
            compare(&whole, &parts);
        buf_done(&parts.body);
    }
    buf_done(&whole.body);
    return 0;
}
