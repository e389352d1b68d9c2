/* Fuzz entry of OpenCode's event stream: the events are the same wherever it is cut, and what is
 * written again of one reads as the same value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "worker/opencode_stream.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static bool
collect(void *ctx, const char *data, size_t len)
{
    struct buf *out = ctx;

    buf_add(out, "\0|", 2);
    if (data == NULL)
        abort(); /* no input here is that long */
    buf_add(out, data, len);
    return true;
}

static void
read_all(const char *bytes, size_t len, size_t piece, struct buf *out)
{
    struct opencode_stream s;

    opencode_stream_init(&s);
    buf_init(out, 0);
    for (size_t at = 0; at < len; at += piece)
        opencode_stream_feed(&s, bytes + at, len - at < piece ? len - at : piece, collect, out);
    opencode_stream_done(&s);
}

static void
write_again(const struct json_value *v, struct buf *out)
{
    struct json_writer w;

    buf_init(out, 0);
    json_begin(&w, out);
    json_value(&w, v);
}

static bool
judge(void *ctx, const char *data, size_t len)
{
    struct opencode_filter *f = ctx;
    struct json_doc *doc = json_parse(data, len, false, NULL), *again;
    struct buf once, twice;

    if (doc == NULL)
        return true;
    opencode_filter_passes(f, json_root(doc));
    if (f->n_children > OPENCODE_CHILDREN || !opencode_filter_has(f, "ses_1"))
        abort();
    for (unsigned i = 0; i < f->n_children; i++)
        if (strnlen(f->children[i], sizeof f->children[i]) == sizeof f->children[i])
            abort();
    write_again(json_root(doc), &once);
    again = json_parse(once.data, once.len, false, NULL);
    if (again == NULL)
        abort();
    write_again(json_root(again), &twice);
    if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
        abort();
    buf_done(&once);
    buf_done(&twice);
    json_doc_free(doc);
    json_doc_free(again);
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *text = (const char *)bytes;
    struct opencode_filter f = {.session = "ses_1"};
    struct opencode_stream s;
    struct buf whole, parts;

    read_all(text, len, len + 1, &whole);
    read_all(text, len, 1, &parts);
    if (whole.len != parts.len || (whole.len > 0 && memcmp(whole.data, parts.data, whole.len) != 0))
        abort();
    buf_done(&whole);
    buf_done(&parts);
    opencode_stream_init(&s);
    opencode_stream_feed(&s, text, len, judge, &f);
    opencode_stream_done(&s);
    return 0;
}
