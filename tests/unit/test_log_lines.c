/* Log lines whatever the borders of the reads: each case is fed whole and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/limits.h"
#include "worker/log_lines.h"

struct line_case {
    const char *label;
    const char *stream;
    const char *lines; /* each in <> */
};

static const struct line_case cases[] = {
    {"two lines", "a\nbc\n", "<a><bc>"},
    {"no newline at the end", "a\nb", "<a><b>"},
    {"blank lines are dropped", "\n\na\n \t\n\r\nb\n\n", "<a><b>"},
    {"carriage returns stay", "a\r\n10%\r20%\n", "<a\r><10%\r20%>"},
    {"multi-byte characters", "\xc3\xa9\xe2\x82\xac\n\xf0\x9f\x98\x80\n",
     "<\xc3\xa9\xe2\x82\xac><\xf0\x9f\x98\x80>"},
    {"invalid bytes pass", "\xff\xfe\n", "<\xff\xfe>"},
    {"leading blanks of a line stay", "  x \n", "<  x >"},
    {"nothing", "", ""},
};

static void
collect(void *ctx, const char *text, size_t len)
{
    buf_add(ctx, "<", 1);
    buf_add(ctx, text, len);
    buf_add(ctx, ">", 1);
}

static void
feed_by(const struct line_case *c, size_t step, unsigned max_lines)
{
    struct buf got;
    struct log_lines lines;
    size_t len = strlen(c->stream);
    buf_init(&got, 0);
    log_lines_init(&lines, collect, &got);
    for (size_t at = 0; at < len;) {
        size_t used = log_lines_feed_some(&lines, c->stream + at,
                                          len - at < step ? len - at : step, max_lines);

        assert_true(used > 0 && used <= step);
        at += used;
    }
    log_lines_end(&lines);
    if (got.len != strlen(c->lines) || (got.len && memcmp(got.data, c->lines, got.len)))
        fail_msg("%s, in steps of %zu: got %.*s", c->label, step, (int)got.len, got.data);
    log_lines_done(&lines);
    buf_done(&got);
}

static void
test_borders(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t step = 1; step < 8; step++)
            for (unsigned max_lines = 1; max_lines < 4; max_lines++)
                feed_by(&cases[i], step, max_lines);
}

/* What the pieces of one long line were. */
struct pieces {
    struct buf all;
    size_t longest;
    unsigned n;
    bool torn; /* one began with a continuation byte */
};

static void
collect_piece(void *ctx, const char *text, size_t len)
{
    struct pieces *p = ctx;
    buf_add(&p->all, text, len);
    p->longest = len > p->longest ? len : p->longest;
    p->torn |= ((unsigned char)text[0] & 0xC0) == 0x80;
    p->n++;
}

static void
feed_long(const char *unit, size_t n_units, size_t step)
{
    struct pieces p = {0};
    struct log_lines lines;
    struct buf line;
    buf_init(&line, 0);
    buf_init(&p.all, 0);
    for (size_t i = 0; i < n_units; i++)
        buf_add_str(&line, unit);
    buf_add(&line, "\nz\n", 3);
    log_lines_init(&lines, collect_piece, &p);
    for (size_t at = 0; at < line.len; at += step)
        log_lines_feed(&lines, line.data + at, line.len - at < step ? line.len - at : step);
    log_lines_end(&lines);
    assert_int_equal(p.all.len, line.len - 2); /* all but the newlines */
    assert_memory_equal(p.all.data, line.data, line.len - 3);
    assert_true(p.longest <= LIMIT_LOG_PIECE);
    assert_false(p.torn);
    assert_true(lines.rest.len == 0);
    log_lines_done(&lines);
    buf_done(&p.all);
    buf_done(&line);
}

static void
test_long_lines(void **state)
{
    static const size_t steps[] = {1000, 4096, LIMIT_LOG_PIECE, 65536, 1u << 20};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        feed_long("x", LIMIT_LOG_PIECE, steps[i]);
        feed_long("x", LIMIT_LOG_PIECE + 1, steps[i]);
        feed_long("\xe2\x82\xac", 100000, steps[i]);
        feed_long("a\xf0\x9f\x98\x80", 50000, steps[i]);
        feed_long(" ", 40000, steps[i]); /* too long to know that it is blank */
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_long_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
