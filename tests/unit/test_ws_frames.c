/* Masked or not, whatever the borders of the reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/ws_frames.h"

#define BYTES(text) text, sizeof(text) - 1
#define MASK "\1\2\3\4"

struct frame_case {
    const char *label;
    const char *bytes;
    size_t len;
    bool good;
};

static const struct frame_case cases[] = {
    {"nothing", BYTES(""), true},
    {"a short text", BYTES("\x81\x83" MASK "abc"), true},
    {"two frames", BYTES("\x81\x81" MASK "a\x82\x82" MASK "bc"), true},
    {"an empty frame, then an unmasked one", BYTES("\x81\x80" MASK "\x81\x00"), false},
    {"a ping without a mask", BYTES("\x89\x00"), false},
    {"a text without a mask", BYTES("\x81\x03" "abc"), false},
    {"a payload that looks like a head", BYTES("\x81\x82" MASK "\x81\x01"), true},
    {"a 16-bit length", BYTES("\x82\xfe\x00\x02" MASK "ab\x81\x80" MASK), true},
    {"a 16-bit length without a mask", BYTES("\x82\x7e\x00\x02" "ab"), false},
    {"a 64-bit length", BYTES("\x82\xff\0\0\0\0\0\0\0\2" MASK "ab\x81\x80" MASK), true},
    {"a 64-bit length with its highest bit", BYTES("\x82\xff\x80\0\0\0\0\0\0\2" MASK), false},
    {"a length of 0 in 16 bits", BYTES("\x82\xfe\0\0" MASK "\x81\x01"), false},
    {"half a head", BYTES("\x82"), true},
};

static void
test_frames(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t step = 1; step <= 24; step++) {
            struct ws_frames f = {0};
            bool good = true;
            for (size_t at = 0; at < cases[i].len && good; at += step) {
                size_t left = cases[i].len - at;
                good = ws_frames_follow(&f, cases[i].bytes + at, left < step ? left : step);
            }
            if (good != cases[i].good)
                fail_msg("%s, in steps of %zu", cases[i].label, step);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_frames)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
