/* Searching dialogs: what a line may hold, what an entry does hold, excerpts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
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
    buf_done(&out);
}

static void
test_bounds(void **state)
{
    char text[SEARCH_TEXT_MAX + 2];
    struct search_text t;

    assert_false(search_text_init(&t, ""));
    memset(text, 'a', sizeof text);
    text[SEARCH_TEXT_MAX + 1] = '\0';
    assert_false(search_text_init(&t, text));
    text[SEARCH_TEXT_MAX] = '\0';
    assert_true(search_text_init(&t, text));
    assert_false(search_text_line(&t, "aaa", 3));
}

/* Every text of up to six letters out of three, in lines of many almost-hits. */
static void
test_where_it_is_found(void **state)
{
    static const char letters[] = "aAb";
    char line[] = "{\"seq\":1,\"c\":\"                         \"}";
    char *hay = strchr(line, ' ');
    size_t hay_len = strspn(hay, " ");
    uint32_t random = 1;

    for (unsigned round = 0; round < 20000; round++) {
        char text[7] = "", expected[80];
        const char *at;
        struct search_text t;
        struct buf out;

        for (size_t i = 0; i < 1 + round % 6; i++)
            text[i] = letters[(random = random * 1664525u + 1013904223u) >> 24 & 1 ? 2 : i % 2];
        for (size_t i = 0; i < hay_len; i++)
            hay[i] = letters[(random = random * 1664525u + 1013904223u) % 97 % 3];
        at = strcasestr(hay, text);
        buf_init(&out, 0);
        assert_true(search_text_init(&t, text));
        assert_int_equal(search_text_line(&t, line, strlen(line)), at != NULL);
        assert_int_equal(search_text_entry(&t, line, strlen(line), &out), at != NULL);
        snprintf(expected, sizeof expected, "\"excerpt\":\"%.*s\"", (int)hay_len, hay);
        if (at != NULL)
            assert_non_null(strstr(out.data, expected));
        buf_done(&out);
    }
}

/* 256 lines of 1 MiB that hold all but the last letter at every place: a search that begins
 * anew at each would take minutes. */
static void
test_almost_everywhere(void **state)
{
    enum { LINE = 1024 * 1024 };
    char text[SEARCH_TEXT_MAX + 1], *line = malloc(LINE);
    struct search_text t;

    assert_non_null(line);
    memset(line, 'a', LINE);
    memset(text, 'a', SEARCH_TEXT_MAX);
    text[SEARCH_TEXT_MAX - 1] = 'b';
    text[SEARCH_TEXT_MAX] = '\0';
    assert_true(search_text_init(&t, text));
    for (unsigned i = 0; i < 256; i++)
        assert_false(search_text_line(&t, line, LINE));
    line[LINE - 1] = 'B';
    assert_true(search_text_line(&t, line, LINE));
    free(line);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_excerpt_is_cut_between_characters),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_where_it_is_found),
        cmocka_unit_test(test_almost_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
