/* Switches: every accepted word, blanks, and what looks like a word but is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/flag.h"

static const struct {
    const char *text;
    enum flag expected;
} cases[] = {
    {"1", FLAG_ON},           {"true", FLAG_ON},       {"yes", FLAG_ON},
    {"on", FLAG_ON},          {"TRUE", FLAG_ON},       {"Yes", FLAG_ON},
    {"oN", FLAG_ON},          {" on ", FLAG_ON},       {"\ttrue\n", FLAG_ON},
    {"0", FLAG_OFF},          {"false", FLAG_OFF},     {"no", FLAG_OFF},
    {"off", FLAG_OFF},        {"False", FLAG_OFF},     {"NO", FLAG_OFF},
    {"OFF", FLAG_OFF},        {"\r\v\foff", FLAG_OFF}, {"", FLAG_BLANK},
    {"   ", FLAG_BLANK},      {"\t\n", FLAG_BLANK},    {NULL, FLAG_BLANK},
    {"maybe", FLAG_BAD},      {"2", FLAG_BAD},         {"10", FLAG_BAD},
    {"00", FLAG_BAD},         {"-1", FLAG_BAD},        {"+1", FLAG_BAD},
    {"tru", FLAG_BAD},        {"true1", FLAG_BAD},     {"t", FLAG_BAD},
    {"y", FLAG_BAD},          {"on off", FLAG_BAD},    {"o", FLAG_BAD},
    {"enabled", FLAG_BAD},    {"\"on\"", FLAG_BAD},    {"on;", FLAG_BAD},
    {"\xc2\xa0on", FLAG_BAD},
};

static void
test_parse(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (policy_flag_parse(cases[i].text) != cases[i].expected)
            fail_msg("flag \"%s\"", cases[i].text != NULL ? cases[i].text : "(null)");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
