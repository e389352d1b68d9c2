/* Accept-Encoding, compression at once, and compression in slices over any source. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "worker/gzip.h"

/* gzip.c answers through it; the tests take the source instead. */
void
exchange_stream(struct exchange *x, int status, const char *type, struct body_source source)
{
    *(struct body_source *)x = source;
}

void
exchange_error(struct exchange *x, int status, const char *error, const char *hint)
{
    fail();
}

static void
test_accepted(void **state)
{
    static const struct {
        const char *value; /* NULL: no header */
        bool accepted;
    } ROWS[] = {
        {NULL, false},
        {"", false},
        {"gzip", true},
        {"GZIP", true},
        {"gzip, deflate, br", true},
        {"deflate,gzip", true},
        {"br", false},
        {"identity", false},
        {"xgzip", false},
        {"gzipx", false},
        {"gzip;q=0", false},
        {"gzip;q=0.0", false},
        {"gzip; q=0.5", true},
        {"gzip ;q=1", true},
        {"gzip;x=1", false},
        {"deflate;q=1, gzip;q=0", false},
        {",,gzip", true},
    };
    static struct request r;

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        r.accept_encoding.at = ROWS[i].value;
        r.accept_encoding.len = ROWS[i].value ? strlen(ROWS[i].value) : 0;
        if (gzip_accepted(&r) != ROWS[i].accepted)
            fail_msg("%s", ROWS[i].value);
    }
}

/* What a client reads out of `packed`. */
static void
assert_unpacks(const void *packed, size_t packed_len, const char *plain, size_t len)
{
    z_stream z = {0};
    char *out = malloc(len + 1);

    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)packed;
    z.avail_in = (unsigned)packed_len;
    z.next_out = (unsigned char *)out;
    z.avail_out = (unsigned)len + 1;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, len);
    assert_int_equal(z.avail_in, 0);
    assert_memory_equal(out, plain, len);
    inflateEnd(&z);
    free(out);
}

static char *
text_make(size_t len)
{
    char *text = malloc(len);

    for (size_t i = 0; i < len; i++)
        text[i] = (char)("{\"id\":1}"[i % 8] + (i / 977) % 3);
    return text;
}

static void
test_at_once(void **state)
{
    for (int round = 0; round < 2; round++) { /* the compressor is used again */
        size_t len = 50000;
        char *plain = text_make(len), *packed = text_make(len);

        packed = gzip_bytes(packed, &len);
        assert_true(gzip_is(packed, len));
        assert_true(len < 5000);
        assert_unpacks(packed, len, plain, 50000);
        free(packed);
        free(plain);
    }
}

static void
test_does_not_shrink(void **state)
{
    size_t len = 4;
    char *bytes = strdup("abcd");

    bytes = gzip_bytes(bytes, &len);
    assert_int_equal(len, 4);
    assert_memory_equal(bytes, "abcd", 4);
    assert_false(gzip_is(bytes, len));
    free(bytes);
}

/* Take all that a source gives, as a stream would. */
static void
drain(struct body_source source, struct buf *out, unsigned max_turns)
{
    int more;

    do {
        size_t before = out->len;

        assert_true(max_turns-- > 0);
        more = source.fill(source.ctx, out);
        assert_true(more == 0 || more == 1);
        assert_true(more == 0 || out->len > before);
        assert_false(out->failed);
    } while (more == 1);
    source.done(source.ctx);
}

static void
test_slices(void **state)
{
    static const size_t LENGTHS[] = {0, 1, 65535, 65536, 65537, 3000000};

    for (size_t i = 0; i < sizeof(LENGTHS) / sizeof(LENGTHS[0]); i++) {
        char *plain = text_make(LENGTHS[i] + 1);
        char *given = text_make(LENGTHS[i] + 1);
        struct body_source memory, packed;
        bool wrapped = false;
        struct buf out;

        buf_init(&out, 0);
        gzip_answer((struct exchange *)&memory, 200, given, LENGTHS[i]);
        packed = gzip_source(memory, &wrapped);
        assert_true(wrapped);
        drain(packed, &out, 100);
        assert_unpacks(out.data, out.len, plain, LENGTHS[i]);
        buf_done(&out);
        free(plain);
    }
}

/* A source that has nothing at first, then a line, then nothing until it fails. */
struct waiting_source {
    int calls;
    bool fails, done;
};

static int
waiting_fill(void *ctx, struct buf *out)
{
    struct waiting_source *w = ctx;

    if (w->calls++ == 1)
        buf_add_str(out, "line");
    return w->calls == 2 ? 1 : w->fails ? -EIO : -EAGAIN;
}

static void
waiting_done(void *ctx)
{
    ((struct waiting_source *)ctx)->done = true;
}

/* What was given is readable before the source goes on; its error is handed up. */
static void
test_waiting(void **state)
{
    struct waiting_source w = {0};
    bool wrapped = false;
    struct body_source s =
        gzip_source((struct body_source){waiting_fill, waiting_done, &w}, &wrapped);
    struct buf out;
    char text[16] = "";
    z_stream z = {0};
    int more;

    buf_init(&out, 0);
    while ((more = s.fill(s.ctx, &out)) == 1)
        ;
    assert_int_equal(more, -EAGAIN);
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = (unsigned char *)out.data;
    z.avail_in = (unsigned)out.len;
    z.next_out = (unsigned char *)text;
    z.avail_out = sizeof(text);
    inflate(&z, Z_SYNC_FLUSH);
    inflateEnd(&z);
    assert_string_equal(text, "line");
    w.fails = true;
    assert_int_equal(s.fill(s.ctx, &out), -EIO);
    assert_false(w.done);
    s.done(s.ctx);
    assert_true(w.done);
    buf_done(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),       cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_does_not_shrink), cmocka_unit_test(test_slices),
        cmocka_unit_test(test_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
