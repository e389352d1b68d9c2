/* UTF-8: what is well formed, what is replaced, what is held back at a read's border. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

static const struct {
    const char *label;
    const char *text;
    size_t sequence;
    size_t bad; /* bytes one replacement stands for, where sequence is 0 */
} sequences[] = {
    {"ascii", "a", 1, 0},
    {"two bytes", "\xc3\xa4", 2, 0},
    {"three bytes", "\xe2\x82\xac", 3, 0},
    {"four bytes", "\xf0\x9f\x98\x80", 4, 0},
    {"last code point", "\xf4\x8f\xbf\xbf", 4, 0},
    {"above the last code point", "\xf4\x90\x80\x80", 0, 1},
    {"surrogate", "\xed\xa0\x80", 0, 1},
    {"overlong slash", "\xc0\xaf", 0, 1},
    {"overlong three bytes", "\xe0\x80\xaf", 0, 1},
    {"lone continuation", "\x80x", 0, 1},
    {"cut after two of three", "\xe2\x82x", 0, 2},
    {"cut after three of four", "\xf0\x9f\x98", 0, 3},
    {"0xff", "\xff", 0, 1},
};

static void
test_sequences(void **state)
{
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        size_t len = strlen(sequences[i].text);

        print_message("%s\n", sequences[i].label);
        assert_int_equal(utf8_sequence(sequences[i].text, len), sequences[i].sequence);
        if (sequences[i].sequence == 0)
            assert_int_equal(utf8_bad_prefix(sequences[i].text, len), sequences[i].bad);
        assert_int_equal(utf8_valid(sequences[i].text, len), sequences[i].sequence > 0);
    }
}

static const struct {
    const char *text;
    size_t held;
} tails[] = {
    {"abc", 0},          {"ab\xc3", 1},        {"ab\xe2\x82", 2}, {"\xf0\x9f\x98", 3},
    {"\xe2\x82\xac", 0}, {"a\xf0\x9f\x98\x80", 0}, {"a\xff", 0},   {"a\x80", 0},
    {"\xed\xa0", 0},     {"\xe0\x80", 0},
};

static void
test_tails(void **state)
{
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        assert_int_equal(utf8_incomplete_tail(tails[i].text, strlen(tails[i].text)),
                         tails[i].held);
}

static void
test_long_text_with_one_bad_byte(void **state)
{
    char text[100];

    memset(text, 'a', sizeof text);
    assert_true(utf8_valid(text, sizeof text));
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = '\xfe';
        assert_false(utf8_valid(text, sizeof text));
        text[i] = 'a';
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_tails),
        cmocka_unit_test(test_long_text_with_one_bad_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
