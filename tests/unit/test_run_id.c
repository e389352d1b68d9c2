/* Forms of run IDs, task IDs, directory names and model paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/run_id.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define TEN "abcdefghij"
#define FIFTY TEN TEN TEN TEN TEN
#define TEXT(s) s, sizeof(s) - 1

struct name_case {
    const char *label;
    const char *text;
    size_t len;
    bool valid;
};

static const struct name_case run_ids[] = {
    {"one letter", TEXT("a"), true},
    {"one digit", TEXT("7"), true},
    {"UUID", TEXT("3f0c2f5e-9a53-4b6f-8f0e-5d2f8f6f9b11"), true},
    {"all of the alphabet", TEXT("aZ9._-"), true},
    {"ends in a dot", TEXT("a."), true},
    {"two dots inside", TEXT("a..b"), true},
    {"64 long", TEXT(FIFTY TEN "abcd"), true},
    {"65 long", TEXT(FIFTY TEN "abcde"), false},
    {"empty", TEXT(""), false},
    {"starts with a dot", TEXT(".a"), false},
    {"starts with a dash: an option", TEXT("-rf"), false},
    {"long option", TEXT("--json"), false},
    {"starts with underscore", TEXT("_a"), false},
    {"step upwards", TEXT(".."), false},
    {"slash", TEXT("a/b"), false},
    {"backslash", TEXT("a\\b"), false},
    {"blank", TEXT("a b"), false},
    {"line feed at the end", TEXT("abc\n"), false},
    {"line feed inside", TEXT("a\nb"), false},
    {"NUL at the end", TEXT("abc\0"), false},
    {"NUL inside", TEXT("a\0b"), false},
    {"shell", TEXT("a;id"), false},
    {"substitution", TEXT("$(id)"), false},
    {"back quote", TEXT("`id`"), false},
    {"pipe", TEXT("a|b"), false},
    {"percent", TEXT("a%2e"), false},
    {"colon", TEXT("a:b"), false},
    {"at sign", TEXT("a@b"), false},
    {"plus", TEXT("a+b"), false},
    {"not ASCII", TEXT("\xc3\xa4"), false},
    {"not ASCII inside", TEXT("a\xc3\xa4"), false},
    {"high byte", TEXT("a\xff"), false},
    {"full-width digit", TEXT("\xef\xbc\x91"), false},
    {"latest", TEXT("latest"), false},
    {"Latest", TEXT("LaTeSt"), false},
    {"latest and more", TEXT("latest2"), true},
    {"start of latest", TEXT("lates"), true},
};

static const struct name_case task_ids[] = {
    {"usual", TEXT("arvo-12345"), true},
    {"128 long", TEXT(FIFTY FIFTY TEN TEN "abcdefgh"), true},
    {"129 long", TEXT(FIFTY FIFTY TEN TEN "abcdefghi"), false},
    {"latest is a task like any", TEXT("latest"), true},
    {"empty", TEXT(""), false},
    {"option", TEXT("-o"), false},
    {"hidden", TEXT(".x"), false},
    {"slash", TEXT("a/b"), false},
    {"line feed", TEXT("a\n"), false},
    {"NUL", TEXT("a\0"), false},
};

static const struct name_case components[] = {
    {"usual", TEXT("archive"), true},
    {"hidden", TEXT(".x"), true},
    {"three dots", TEXT("..."), true},
    {"dots and more", TEXT("..a"), true},
    {"255 long", TEXT(FIFTY FIFTY FIFTY FIFTY FIFTY "abcde"), true},
    {"256 long", TEXT(FIFTY FIFTY FIFTY FIFTY FIFTY "abcdef"), false},
    {"empty", TEXT(""), false},
    {"here", TEXT("."), false},
    {"up", TEXT(".."), false},
    {"slash", TEXT("a/b"), false},
    {"only a slash", TEXT("/"), false},
    {"NUL", TEXT("a\0b"), false},
};

static const struct name_case models[] = {
    {"one", TEXT("gpt"), true},
    {"two", TEXT("openai/gpt-4"), true},
    {"three", TEXT("a/b/c"), true},
    {"empty", TEXT(""), false},
    {"absolute", TEXT("/a"), false},
    {"slash at the end", TEXT("a/"), false},
    {"double slash", TEXT("a//b"), false},
    {"only a slash", TEXT("/"), false},
    {"up inside", TEXT("a/../b"), false},
    {"up at the end", TEXT("a/.."), false},
    {"here inside", TEXT("a/./b"), false},
    {"NUL", TEXT("a/b\0"), false},
};

static void
check(const struct name_case *cases, size_t n, bool (*valid)(const char *, size_t))
{
    for (size_t i = 0; i < n; i++)
        if (valid(cases[i].text, cases[i].len) != cases[i].valid)
            fail_msg("%s", cases[i].label);
}

static void
test_run_id(void **state)
{
    check(run_ids, N(run_ids), policy_run_id_valid);
}

static void
test_task_id(void **state)
{
    check(task_ids, N(task_ids), policy_task_id_valid);
}

static void
test_component(void **state)
{
    check(components, N(components), policy_component_valid);
}

static void
test_model(void **state)
{
    check(models, N(models), policy_model_path_valid);
}

/* Every byte in every place: the alphabet is exactly the one written down. */
static void
test_alphabet(void **state)
{
    static const char first[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

    for (int c = 0; c < 256; c++) {
        char head[2] = {(char)c, 'a'}, tail[2] = {'a', (char)c};
        bool alnum = memchr(first, c, sizeof(first) - 1) != NULL;

        assert_int_equal(policy_run_id_valid(head, 2), alnum);
        assert_int_equal(policy_run_id_valid(tail, 2),
                         alnum || c == '.' || c == '_' || c == '-');
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_id),    cmocka_unit_test(test_task_id),
        cmocka_unit_test(test_component), cmocka_unit_test(test_model),
        cmocka_unit_test(test_alphabet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
