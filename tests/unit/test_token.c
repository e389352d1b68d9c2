/* The token's form, and the two places where a request may carry it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/token.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT(s) s, sizeof(s) - 1
#define FIFTEEN "abcdefghijklmno"
#define OFFER "ssebench.token."
#define SPACED(s) "abcdefgh" s "abcdefghijkl"

static const struct {
    const char *label;
    const char *text;
    size_t len;
    bool valid;
} forms[] = {
    {"16 characters", TEXT(FIFTEEN "p"), true},
    {"15 characters", TEXT(FIFTEEN), false},
    {"empty", TEXT(""), false},
    {"64 hexadecimal",
     TEXT("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"), true},
    {"signs", TEXT("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"), true},
    {"15 and one of two bytes", TEXT(FIFTEEN "\xc3\xa4"), true},
    {"8 of two bytes are 8",
     TEXT("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"), false},
    {"15 and one of four bytes", TEXT(FIFTEEN "\xf0\x9f\x94\x91"), true},
    {"blank", TEXT(SPACED(" ")), false},
    {"blank first", TEXT(" " FIFTEEN "p"), false},
    {"blank last", TEXT(FIFTEEN "p "), false},
    {"tab", TEXT(SPACED("\t")), false},
    {"line feed last", TEXT(FIFTEEN "p\n"), false},
    {"carriage return", TEXT(SPACED("\r")), false},
    {"NUL", TEXT(SPACED("\0")), false},
    {"escape", TEXT(SPACED("\x1b")), false},
    {"delete", TEXT(SPACED("\x7f")), false},
    {"C1 control", TEXT(SPACED("\xc2\x9b")), false},
    {"no-break space", TEXT(SPACED("\xc2\xa0")), false},
    {"en space", TEXT(SPACED("\xe2\x80\x82")), false},
    {"line separator", TEXT(SPACED("\xe2\x80\xa8")), false},
    {"ideographic space", TEXT(SPACED("\xe3\x80\x80")), false},
    {"byte order mark", TEXT(SPACED("\xef\xbb\xbf")), false},
    {"bare continuation byte", TEXT(SPACED("\x80")), false},
    {"high byte", TEXT(SPACED("\xff")), false},
    {"overlong", TEXT(SPACED("\xc0\xaf")), false},
    {"overlong, three bytes", TEXT(SPACED("\xe0\x80\xaf")), false},
    {"surrogate", TEXT(SPACED("\xed\xa0\x80")), false},
    {"past the last", TEXT(SPACED("\xf4\x90\x80\x80")), false},
    {"cut at the end", TEXT(FIFTEEN "p\xe2\x82"), false},
};

static void
test_form(void **state)
{
    char *long_token = malloc(POLICY_TOKEN_MAX + 1);

    for (size_t i = 0; i < N(forms); i++)
        if (policy_token_valid(forms[i].text, forms[i].len) != forms[i].valid)
            fail_msg("%s", forms[i].label);
    assert_non_null(long_token);
    memset(long_token, 'a', POLICY_TOKEN_MAX + 1);
    assert_true(policy_token_valid(long_token, POLICY_TOKEN_MAX));
    assert_false(policy_token_valid(long_token, POLICY_TOKEN_MAX + 1));
    free(long_token);
}

static const struct {
    const char *label, *value, *token; /* NULL: none */
} bearers[] = {
    {"usual", "Bearer abc", "abc"},       {"letter case", "bEARER abc", "abc"},
    {"two blanks", "Bearer  abc", "abc"}, {"rest is kept", "Bearer a b", "a b"},
    {"scheme alone", "Bearer", NULL},     {"scheme and blank", "Bearer ", NULL},
    {"blanks only", "Bearer    ", NULL},  {"empty", "", NULL},
    {"tab", "Bearer\tabc", NULL},         {"joined", "Bearerabc", NULL},
    {"Basic", "Basic abc", NULL},         {"bare token", "abcdefghijklmnop", NULL},
    {"blank first", " Bearer abc", NULL}, {"quoted scheme", "\"Bearer\" abc", NULL},
};

static void
test_bearer(void **state)
{
    for (size_t i = 0; i < N(bearers); i++) {
        const char *token = NULL, *expected = bearers[i].token;
        size_t len = 0;
        bool found = policy_token_from_bearer(bearers[i].value,
                                              strlen(bearers[i].value), &token, &len);

        if (found != (expected != NULL))
            fail_msg("%s", bearers[i].label);
        if (found && (len != strlen(expected) || memcmp(token, expected, len) != 0))
            fail_msg("token of: %s", bearers[i].label);
        if (!found && (token != NULL || len != 0))
            fail_msg("written on failure: %s", bearers[i].label);
    }
}

static const struct {
    const char *label, *list, *token; /* NULL: none */
} offers[] = {
    {"both", "ssebench, " OFFER "YWJj", "abc"},
    {"token first", OFFER "YWJj, ssebench", "abc"},
    {"token alone", OFFER "YWJj", "abc"},
    {"no blank", "ssebench," OFFER "YWJj", "abc"},
    {"tabs and empty elements", ",\t ssebench ,, \t" OFFER "YWJj\t,", "abc"},
    {"one byte", OFFER "YQ", "a"},
    {"two bytes", OFFER "YWI", "ab"},
    {"url alphabet", OFFER "-_-_", "\xfb\xff\xbf"},
    {"none", "ssebench", NULL},
    {"empty list", "", NULL},
    {"only commas", " , ,", NULL},
    {"empty token", OFFER, NULL},
    {"padding", OFFER "YQ==", NULL},
    {"stray bits, one byte", OFFER "YR", NULL},
    {"stray bits, two bytes", OFFER "YWJ", NULL},
    {"length 1 of 4", OFFER "YWJjZ", NULL},
    {"one character", OFFER "Y", NULL},
    {"plain alphabet", OFFER "+/+/", NULL},
    {"blank inside", OFFER "YW Jj", NULL},
    {"two tokens", OFFER "YWJj, " OFFER "YWJj", NULL},
    {"good and bad", OFFER "YWJj, " OFFER "Y", NULL},
    {"letter case of the prefix", "SSEBENCH.token.YWJj", NULL},
    {"prefix inside", "x" OFFER "YWJj", NULL},
    {"quoted", "\"" OFFER "YWJj\"", NULL},
};

static void
test_subprotocols(void **state)
{
    for (size_t i = 0; i < N(offers); i++) {
        char out[POLICY_TOKEN_MAX];
        const char *expected = offers[i].token;
        size_t len = 4711;
        bool found = policy_token_from_subprotocols(offers[i].list,
                                                    strlen(offers[i].list), out, &len);

        if (found != (expected != NULL))
            fail_msg("%s", offers[i].label);
        if (found && (len != strlen(expected) || memcmp(out, expected, len) != 0))
            fail_msg("token of: %s", offers[i].label);
        if (!found && len != 4711)
            fail_msg("written on failure: %s", offers[i].label);
    }
}

/* The largest that fits, and one step more: the buffer is exactly POLICY_TOKEN_MAX. */
static void
test_subprotocol_bound(void **state)
{
    char list[sizeof(OFFER) + 4096];
    char *out = malloc(POLICY_TOKEN_MAX);
    size_t prefix = sizeof(OFFER) - 1, len = 0;

    assert_non_null(out);
    memcpy(list, OFFER, prefix);
    memset(list + prefix, 'A', 4096);
    /* 1366 characters are 1024 bytes and 4 stray bits, 1367 are 1025 bytes. */
    assert_true(policy_token_from_subprotocols(list, prefix + 1366, out, &len));
    assert_int_equal(len, POLICY_TOKEN_MAX);
    assert_false(policy_token_from_subprotocols(list, prefix + 1367, out, &len));
    assert_false(policy_token_from_subprotocols(list, prefix + 4096, out, &len));
    free(out);
}

static const struct {
    const char *list;
    bool offered;
} lists[] = {
    {"ssebench", true},           {" ssebench ", true},  {"a, ssebench", true},
    {"a,ssebench,b", true},       {",,ssebench", true},  {"", false},
    {"ssebench.token.YQ", false}, {"SSEBENCH", false},   {"ssebenchx", false},
    {"xssebench", false},         {"sse bench", false},  {"ssebench;q=1", false},
    {"ssebenc", false},           {"a;ssebench", false},
};

static void
test_offered(void **state)
{
    for (size_t i = 0; i < N(lists); i++)
        if (policy_subprotocol_offered(lists[i].list, strlen(lists[i].list),
                                       "ssebench") != lists[i].offered)
            fail_msg("\"%s\"", lists[i].list);
}

/* One bit of difference anywhere is a difference. */
static void
test_digest(void **state)
{
    uint8_t a[32], b[32];

    for (size_t i = 0; i < 32; i++)
        a[i] = b[i] = (uint8_t)(i * 7);
    assert_true(policy_digest_equal(a, b));
    for (size_t bit = 0; bit < 256; bit++) {
        b[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(policy_digest_equal(a, b));
        b[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form),         cmocka_unit_test(test_bearer),
        cmocka_unit_test(test_subprotocols), cmocka_unit_test(test_subprotocol_bound),
        cmocka_unit_test(test_offered),      cmocka_unit_test(test_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
