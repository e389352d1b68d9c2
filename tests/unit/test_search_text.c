/* Searching dialogs: what a line may hold, what an entry does hold, excerpts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "worker/search_text.h"

static const struct {
    const char *label, *text, *line;
    const char *found; /* members, or NULL */
} entries[] = {
    {"a word", "overflow", "{\"seq\":3,\"type\":\"message\",\"content\":\"heap overflow here\"}",
     "\"seq\":3,\"type\":\"message\",\"excerpt\":\"heap overflow here\""},
    {"any case", "OVERflow", "{\"seq\":3,\"type\":\"message\",\"content\":\"Overflow\"}",
     "\"seq\":3,\"type\":\"message\",\"excerpt\":\"Overflow\""},
    {"deep inside", "ls -la", "{\"seq\":1.5,\"type\":\"tool\",\"args\":{\"a\":[{\"c\":\"ls -la\"}]}}",
     "\"seq\":1.5,\"type\":\"tool\",\"excerpt\":\"ls -la\""},
    {"not in names", "content", "{\"seq\":3,\"type\":\"message\",\"content\":\"x\"}", NULL},
    {"escaped quotes", "a\"b", "{\"seq\":1,\"content\":\"xa\\\"bx\"}",
     "\"seq\":1,\"type\":\"unknown\",\"excerpt\":\"xa\\\"bx\""},
    {"UTF-8 as it is", "\xc3\xa4rger", "{\"seq\":1,\"content\":\"\xc3\xa4rger\"}",
     "\"seq\":1,\"type\":\"unknown\",\"excerpt\":\"\xc3\xa4rger\""},
    {"UTF-8 as \\u", "\xc3\xa4rger", "{\"seq\":1,\"content\":\"\\u00E4rger\"}",
     "\"seq\":1,\"type\":\"unknown\",\"excerpt\":\"\xc3\xa4rger\""},
    {"surrogate pair", "\xf0\x9f\x98\x80", "{\"seq\":1,\"content\":\"\\ud83d\\ude00\"}",
     "\"seq\":1,\"type\":\"unknown\",\"excerpt\":\"\xf0\x9f\x98\x80\""},
    {"no seq", "x", "{\"content\":\"x\"}", NULL},
    {"seq is text", "x", "{\"seq\":\"1\",\"content\":\"x\"}", NULL},
    {"not JSON", "x", "{\"seq\":1,\"content\":\"x\"", NULL},
    {"absent", "y", "{\"seq\":1,\"content\":\"x\"}", NULL},
};

static void
test_entries(void **state)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const char *line = entries[i].line;
        struct search_text t;
        struct buf out;
        bool found;

        print_message("%s\n", entries[i].label);
        buf_init(&out, 0);
        assert_true(search_text_init(&t, entries[i].text));
        found = search_text_line(&t, line, strlen(line)) &&
                search_text_entry(&t, line, strlen(line), &out);
        assert_int_equal(found, entries[i].found != NULL);
        if (found)
            assert_string_equal(out.data, entries[i].found);
        search_text_done(&t);
        buf_done(&out);
    }
}

static void
test_excerpt_is_cut_between_characters(void **state)
{
    char line[2000] = "{\"seq\":1,\"type\":\"t\",\"content\":\"";
    struct search_text t;
    struct buf out;

    for (int i = 0; i < 200; i++)
        strcat(line, "\xe2\x82\xac");
    strcat(line, "needle");
    for (int i = 0; i < 200; i++)
        strcat(line, "\xe2\x82\xac");
    strcat(line, "\"}");
    buf_init(&out, 0);
    assert_true(search_text_init(&t, "needle"));
    assert_true(search_text_entry(&t, line, strlen(line), &out));
    assert_null(strstr(out.data, "\xef\xbf\xbd"));
    assert_non_null(strstr(out.data, "needle"));
    assert_true(out.len < 300);
    search_text_done(&t);
    buf_done(&out);
}

static void
test_bounds(void **state)
{
    char text[SEARCH_TEXT_MAX + 2];
    struct search_text t;

    assert_false(search_text_init(&t, ""));
    search_text_done(&t);
    memset(text, 'a', sizeof text);
    text[SEARCH_TEXT_MAX + 1] = '\0';
    assert_false(search_text_init(&t, text));
    search_text_done(&t);
    text[SEARCH_TEXT_MAX] = '\0';
    assert_true(search_text_init(&t, text));
    assert_false(search_text_line(&t, "aaa", 3));
    search_text_done(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_excerpt_is_cut_between_characters),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
