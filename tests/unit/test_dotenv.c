/* .env by the contract's rule (9.1): one row a line of the file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "broker/dotenv.h"

static const struct {
    const char *label, *text, *value; /* NULL: not there */
} cases[] = {
    {"plain", "KEY=sk-1\n", "sk-1"},
    {"no end of line", "KEY=sk-1", "sk-1"},
    {"carriage return", "KEY=sk-1\r\nOTHER=2\r\n", "sk-1"},
    {"blanks around", "  KEY = \t sk 1 \t\n", "sk 1"},
    {"export", "export KEY=sk-1\n", "sk-1"},
    {"blanks before export", " \texport  KEY=sk-1\n", "sk-1"},
    {"export of another", "exportKEY=1\n", NULL},
    {"double quotes", "KEY=\"sk-1\"\n", "sk-1"},
    {"single quotes", "KEY='sk-1'\n", "sk-1"},
    {"blanks inside quotes stay", "KEY=' sk-1 '\n", " sk-1 "},
    {"unequal quotes stay", "KEY=\"sk-1'\n", "\"sk-1'"},
    {"one quote stays", "KEY='\n", "'"},
    {"no escapes", "KEY=\"a\\nb\"\n", "a\\nb"},
    {"no comment behind", "KEY=sk-1 # mine\n", "sk-1 # mine"},
    {"no expansion", "KEY=$HOME\n", "$HOME"},
    {"no continuation", "KEY=a\\\nb\n", "a\\"},
    {"equals sign inside", "KEY=a=b\n", "a=b"},
    {"comment", "#KEY=no\nKEY=yes\n", "yes"},
    {"comment with blanks", "  # KEY=no\n", NULL},
    {"first wins", "KEY=1\nKEY=2\n", "1"},
    {"longer name", "KEYS=1\n", NULL},
    {"name behind another", "MY_KEY=1\n", NULL},
    {"empty", "KEY=\n", NULL},
    {"empty quotes", "KEY=''\n", NULL},
    {"no equals sign", "KEY\n", NULL},
    {"nothing", "", NULL},
    {"name only at the end", "KE", NULL},
};

static void
test_find(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char value[64] = "untouched";
        int r = dotenv_find(cases[i].text, strlen(cases[i].text), "KEY", value, sizeof value);

        if (cases[i].value == NULL) {
            if (r != -ENOENT)
                fail_msg("%s: found %s", cases[i].label, value);
        } else if (r != 0 || strcmp(value, cases[i].value) != 0) {
            fail_msg("%s: %d, %s", cases[i].label, r, value);
        }
    }
}

static void
test_too_long(void **state)
{
    char value[4];

    assert_int_equal(dotenv_find("K=abcd\n", 7, "K", value, sizeof value), -EMSGSIZE);
    assert_int_equal(dotenv_find("K=abc\n", 6, "K", value, sizeof value), 0);
    assert_string_equal(value, "abc");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
