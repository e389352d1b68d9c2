/* Fuzz entry of diffs: the files are the same wherever the bytes are cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/diff_files.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct sum {
    uint64_t hash;
    size_t n_files;
};

static void
add(struct sum *s, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        s->hash = (s->hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(1099511628211);
}

static void
on_file(void *ctx, const struct diff_file *f)
{
    struct sum *s = ctx;
    unsigned status = f->status, binary = f->binary;

    s->n_files++;
    add(s, f->path, f->path_len);
    add(s, &status, sizeof status);
    add(s, &binary, sizeof binary);
    add(s, &f->additions, sizeof f->additions);
    add(s, &f->deletions, sizeof f->deletions);
    if (diff_status_name(f->status) == NULL)
        abort();
}

static struct sum
read_in_pieces(const char *text, size_t len, size_t piece)
{
    struct sum s = {.hash = 1};
    struct diff_files d;

    diff_files_init(&d, on_file, &s);
    for (size_t at = 0; at < len; at += piece)
        diff_files_feed(&d, text + at, len - at < piece ? len - at : piece);
    diff_files_end(&d);
    diff_files_done(&d);
    return s;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len > 0 ? len : 1);
    struct sum whole, single, some;

    if (text == NULL)
        return 0;
    memcpy(text, bytes, len);
    whole = read_in_pieces(text, len, len + 1);
    single = read_in_pieces(text, len, 1);
    some = read_in_pieces(text, len, 7);
    if (whole.hash != single.hash || whole.n_files != single.n_files || whole.hash != some.hash)
        abort();
    free(text);
    return 0;
}
