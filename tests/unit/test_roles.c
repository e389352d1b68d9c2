/* Roles and the tokens file: every deed by every role, every wrong line, every spelling of an
 * end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/token_list.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEX2 "ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define MADE "2026-01-02T03:04:05Z"
#define LINE(name) name " view " HEX " " MADE " never\n"

/* Written out again, so that a change of the table is seen. */
static void
test_deeds(void **state)
{
    static const bool may[DEEDS][ROLES] = {
        [DEED_VIEW] = {false, true, true, true},
        [DEED_OPERATE] = {false, false, true, true},
        [DEED_DOCTOR] = {false, false, true, true},
        [DEED_TERMINAL] = {false, false, false, true},
        [DEED_ASSISTANT] = {false, false, false, true},
        [DEED_OTHER] = {false, false, false, true},
    };

    for (unsigned deed = 0; deed < DEEDS; deed++)
        for (unsigned role = 0; role < ROLES; role++)
            assert_int_equal(policy_role_allows((enum role)role, (enum deed)deed),
                             may[deed][role]);
    assert_false(policy_role_allows((enum role)ROLES, DEED_VIEW));
    assert_false(policy_role_allows((enum role)255, DEED_VIEW));
    assert_false(policy_role_allows(ROLE_OPERATE, (enum deed)DEEDS));
}

static void
test_names(void **state)
{
    static const char *const good[] = {"a", "alice", "Build.Bot_2-x", "0",
                                       "abcdefghijabcdefghijabcdefghij12"};
    static const char *const bad[] = {"", "token", "-a", ".a", "_a", "a b", "a/b", "a:b", "a\n",
                                      "\xc3\xa9", "#a", "abcdefghijabcdefghijabcdefghij123"};

    for (size_t i = 0; i < N(good); i++)
        if (!policy_token_name_valid(good[i]))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < N(bad); i++)
        if (policy_token_name_valid(bad[i]))
            fail_msg("%s", bad[i]);
    assert_int_equal(policy_role_parse("view"), ROLE_VIEW);
    assert_int_equal(policy_role_parse("full"), ROLE_FULL);
    assert_int_equal(policy_role_parse("none"), ROLE_NONE);
    assert_int_equal(policy_role_parse("View"), ROLE_NONE);
    assert_string_equal(policy_role_name(ROLE_OPERATE), "operate");
}

static const struct {
    const char *label, *text;
    unsigned line; /* where it is wrong; 0: fine */
    uint32_t n;
} texts[] = {
    {"nothing", "", 0, 0},
    {"comments and empty lines", "# a\n\n#\n", 0, 0},
    {"one", LINE("a"), 0, 1},
    {"without a newline at the end", "a view " HEX " " MADE " never", 0, 1},
    {"two", LINE("a") "b full " HEX2 " " MADE " 2027-01-31T12:00:00Z\n", 0, 2},
    {"over already", "a full " HEX " " MADE " 2026-01-02T03:04:06Z\n", 0, 1},
    {"name twice", LINE("a") "a full " HEX2 " " MADE " never\n", 2, 0},
    {"digest twice", LINE("a") LINE("b"), 2, 0},
    {"four words", "a view " HEX " " MADE "\n", 1, 0},
    {"six words", "a view " HEX " " MADE " never x\n", 1, 0},
    {"two blanks", "a  view " HEX " " MADE " never\n", 1, 0},
    {"a tab", "a\tview " HEX " " MADE " never\n", 1, 0},
    {"a blank at first", " a view " HEX " " MADE " never\n", 1, 0},
    {"a blank at last", "a view " HEX " " MADE " never \n", 1, 0},
    {"a carriage return", "a view " HEX " " MADE " never\r\n", 1, 0},
    {"no role", "a king " HEX " " MADE " never\n", 1, 0},
    {"a role in capitals", "a VIEW " HEX " " MADE " never\n", 1, 0},
    {"role none", "a none " HEX " " MADE " never\n", 1, 0},
    {"a reserved name", "token view " HEX " " MADE " never\n", 1, 0},
    {"a digest in capitals", "a view " HEX2 "F " MADE " never\n", 1, 0},
    {"a short digest", "a view 0123 " MADE " never\n", 1, 0},
    {"a day alone", "a view " HEX " 2026-01-02 never\n", 1, 0},
    {"a day that is none", "a view " HEX " 2026-02-30T00:00:00Z never\n", 1, 0},
    {"a leap second", "a view " HEX " " MADE " 2026-12-31T23:59:60Z\n", 1, 0},
    {"another end", "a view " HEX " " MADE " Never\n", 1, 0},
    {"an end without a zone", "a view " HEX " " MADE " 2027-01-31T12:00:00\n", 1, 0},
    {"an end before time", "a view " HEX " " MADE " 1969-12-31T23:59:59Z\n", 1, 0},
    {"the third line", "# x\n" LINE("a") "rubbish\n", 3, 0},
};

static void
test_texts(void **state)
{
    static struct token_list list;

    for (size_t i = 0; i < N(texts); i++) {
        const char *why = "fine";
        unsigned line = 0;
        bool good = policy_token_list_parse(texts[i].text, strlen(texts[i].text), &list, &line,
                                            &why);

        if (good != (texts[i].line == 0) || line != texts[i].line || list.n != texts[i].n)
            fail_msg("%s: %s in line %u, %u tokens", texts[i].label, why, line, list.n);
    }
    assert_false(policy_token_list_parse("a view \0", 8, &list, &(unsigned){0},
                                         &(const char *){NULL}));
}

static void
test_bounds(void **state)
{
    static char text[POLICY_TOKEN_LIST_MAX + 2];
    static struct token_list list;
    struct token_entry entry = {.name = "a", .role = ROLE_VIEW, .created_s = 1};
    const char *why = NULL;
    unsigned line = 0;
    size_t len = 0;

    for (unsigned i = 0; i < POLICY_TOKENS + 1; i++) {
        snprintf(entry.name, sizeof entry.name, "n%u", i);
        entry.digest[0] = (uint8_t)i;
        if (i == POLICY_TOKENS)
            assert_true(policy_token_list_parse(text, len, &list, &line, &why));
        len += policy_token_line(&entry, text + len);
    }
    assert_int_equal(list.n, POLICY_TOKENS);
    assert_false(policy_token_list_parse(text, len, &list, &line, &why));
    assert_int_equal(line, POLICY_TOKENS + 1);
    memset(text, '#', sizeof text);
    assert_true(policy_token_list_parse(text, POLICY_TOKEN_LIST_MAX, &list, &line, &why));
    assert_false(policy_token_list_parse(text, POLICY_TOKEN_LIST_MAX + 1, &list, &line, &why));
}

/* What is written is read as it was. */
static void
test_round_trip(void **state)
{
    static struct token_list list;
    struct token_entry entry = {.role = ROLE_OPERATE, .created_s = 1767323045,
                                .expires_s = 253402300799};
    char text[POLICY_TOKEN_LINE];
    const char *why = NULL;
    unsigned line;
    size_t len;

    memset(entry.name, 'n', POLICY_TOKEN_NAME_SIZE - 1);
    memset(entry.digest, 0xa5, sizeof entry.digest);
    len = policy_token_line(&entry, text);
    assert_true(len < sizeof text);
    assert_true(policy_token_list_parse(text, len, &list, &line, &why));
    assert_memory_equal(&list.item[0], &entry, sizeof entry);
    assert_ptr_equal(policy_token_find(&list, entry.name), &list.item[0]);
    assert_null(policy_token_find(&list, "other"));
}

#define NOW 1767323045 /* 2026-01-02T03:04:05Z */

static void
test_ends(void **state)
{
    static const struct {
        const char *text;
        int64_t at_s; /* -1: refused */
    } rows[] = {
        {"never", 0},
        {"1m", NOW + 60},
        {"12h", NOW + 43200},
        {"30d", NOW + 2592000},
        {"2w", NOW + 1209600},
        {"3650d", NOW + 315360000},
        {"2026-01-03", 1767398400},
        {"2026-01-02T03:04:06Z", NOW + 1},
        {"2028-02-29", 1835395200},
        {"3651d", -1},
        {"0d", -1},
        {"-1d", -1},
        {"99999999m", -1},
        {"1y", -1},
        {"d", -1},
        {"30", -1},
        {"", -1},
        {"30d ", -1},
        {"2026-01-02", -1},
        {"2026-01-02T03:04:05Z", -1},
        {"2027-02-29", -1},
        {"2027-1-2", -1},
        {"2027-01-31T12:00:00+01:00", -1},
        {"2027-01-31T24:00:00Z", -1},
        {"2027/01/31", -1},
        {"tomorrow", -1},
    };

    for (size_t i = 0; i < N(rows); i++) {
        int64_t at_s = -1;
        const char *why = policy_token_expiry(rows[i].text, NOW, &at_s);

        if ((why == NULL) != (rows[i].at_s >= 0) || at_s != rows[i].at_s)
            fail_msg("%s: %s, %lld", rows[i].text, why != NULL ? why : "fine", (long long)at_s);
    }
    assert_false(policy_token_expired(0, NOW));
    assert_false(policy_token_expired(NOW + 1, NOW));
    assert_true(policy_token_expired(NOW, NOW));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deeds),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_texts),      cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
