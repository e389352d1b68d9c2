/* Frames by the rules or not, whatever the borders of the reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/ws_frames.h"

#define BYTES(text) text, sizeof(text) - 1
#define MASK "\1\2\3\4"

#define LONG_126 "\x82\xfe\x00\x7e" MASK TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "abcdef"
#define TEN "0123456789"

struct frame_case {
    const char *label;
    const char *bytes;
    size_t len;
    size_t kept; /* ALL, or how many bytes stand before the break */
};
#define ALL SIZE_MAX

static const struct frame_case cases[] = {
    {"nothing", BYTES(""), ALL},
    {"half a head", BYTES("\x82"), ALL},
    {"a short text", BYTES("\x81\x83" MASK "abc"), ALL},
    {"two frames", BYTES("\x81\x81" MASK "a\x82\x82" MASK "bc"), ALL},
    {"a payload that looks like a head", BYTES("\x81\x82" MASK "\x81\x01"), ALL},
    {"ping and pong", BYTES("\x89\x80" MASK "\x8a\x81" MASK "x"), ALL},
    {"closes", BYTES("\x88\x80" MASK "\x88\x82" MASK "\x03\xe8"), ALL},
    {"an empty frame, then an unmasked one", BYTES("\x81\x80" MASK "\x81\x00"), 7},
    {"a ping without a mask", BYTES("\x89\x00"), 1},
    {"a text without a mask", BYTES("\x81\x03" "abc"), 1},
    {"reserved bit 1", BYTES("\xc1\x80" MASK), 0},
    {"reserved bit 2", BYTES("\x81\x80" MASK "\xa1\x80" MASK), 6},
    {"reserved bit 3 of a ping", BYTES("\x99\x80" MASK), 0},
    {"opcode 3", BYTES("\x83\x80" MASK), 0},
    {"opcode 7", BYTES("\x87\x80" MASK), 0},
    {"opcode 11", BYTES("\x8b\x80" MASK), 0},
    {"opcode 15", BYTES("\x8f\x80" MASK), 0},
    {"fragments", BYTES("\x01\x80" MASK "\x00\x81" MASK "a\x80\x80" MASK "\x82\x80" MASK), ALL},
    {"a ping between fragments", BYTES("\x01\x80" MASK "\x89\x80" MASK "\x80\x80" MASK), ALL},
    {"a continuation of nothing", BYTES("\x80\x80" MASK), 0},
    {"a continuation of what is over", BYTES("\x81\x80" MASK "\x80\x80" MASK), 6},
    {"a message inside of a message", BYTES("\x01\x80" MASK "\x81\x80" MASK), 6},
    {"a fragmented ping", BYTES("\x09\x80" MASK), 0},
    {"a fragmented close", BYTES("\x08\x80" MASK), 0},
    {"a long ping", BYTES("\x89\xfe\x00\x7e" MASK), 1},
    {"a very long close", BYTES("\x88\xff\0\0\0\0\0\1\0\0" MASK), 1},
    {"a close of one byte", BYTES("\x88\x81" MASK "a"), 1},
    {"a 16-bit length", BYTES(LONG_126 "\x81\x80" MASK), ALL},
    {"a 16-bit length without a mask", BYTES("\x82\x7e\x00\x7e" "ab"), 1},
    {"a 16-bit length that is not needed", BYTES("\x82\xfe\x00\x7d" MASK "ab"), 3},
    {"a length of 0 in 16 bits", BYTES("\x82\xfe\0\0" MASK), 3},
    {"a 64-bit length", BYTES("\x82\xff\0\0\0\0\0\1\0\0" MASK "ab"), ALL},
    {"a 64-bit length that is not needed", BYTES("\x82\xff\0\0\0\0\0\0\xff\xff" MASK "ab"), 9},
    {"a 64-bit length with its highest bit", BYTES("\x82\xff\x80\0\0\0\0\0\0\2" MASK), 2},
};

static size_t
follow(struct ws_frames *f, const struct frame_case *c, size_t step)
{
    size_t kept = 0;
    for (size_t at = 0; at < c->len; at += step) {
        size_t left = c->len - at;
        kept += ws_frames_follow(f, c->bytes + at, left < step ? left : step);
    }
    return kept;
}

static void
test_frames(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t wanted = cases[i].kept == ALL ? cases[i].len : cases[i].kept;
        for (size_t step = 1; step <= 24; step++) {
            struct ws_frames f = {0};
            if (follow(&f, &cases[i], step) != wanted ||
                (f.broken == NULL) != (cases[i].kept == ALL))
                fail_msg("%s, in steps of %zu: %s", cases[i].label, step, f.broken);
        }
    }
}

/* After a break heads are still followed: the client's close is found, and nothing else is. */
static void
test_close_after_a_break(void **state)
{
    static const struct frame_case broken[] = {
        {"reserved", BYTES("\xc1\x82" MASK "\x88\x80" "\x88\x80" MASK), 0},
        {"no mask", BYTES("\x81\x02" "\x88\x80" "\x88\x80" MASK), 0},
        {"long ping", BYTES("\x89\xfe\x00\x02" MASK "\x88\x80" "\x88\x80" MASK), 0},
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct frame_case before = broken[i];
        struct ws_frames all = {0}, part = {0};
        before.len -= 6;
        follow(&all, &broken[i], 1);
        follow(&part, &before, 1);
        assert_true(all.close_seen);
        assert_false(part.close_seen);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_frames),
                                       cmocka_unit_test(test_close_after_a_break)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
