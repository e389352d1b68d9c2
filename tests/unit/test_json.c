/* JSON in and out: bounds, strictness, duplicate names, hostile text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_read.h"
#include "common/json_write.h"
#include "common/limits.h"

static const struct {
    const char *label;
    const char *text;
    bool lenient, strict; /* is it taken? */
} documents[] = {
    {"object", "{\"a\":1}", true, true},
    {"blanks around", " \n{\"a\":[1,2,{}]}\t", true, true},
    {"empty", "", false, false},
    {"blank", "  ", false, false},
    {"trailing rubbish", "{\"a\":1}x", false, false},
    {"two values", "{} {}", false, false},
    {"cut", "{\"a\":", false, false},
    {"comment", "{/*x*/}", false, false},
    {"duplicate name", "{\"a\":1,\"a\":2}", true, false},
    {"duplicate name deeper", "{\"b\":{\"a\":1,\"a\":2}}", true, false},
    {"same name in siblings", "[{\"a\":1},{\"a\":2}]", true, true},
    {"NUL in a name", "{\"a\\u0000b\":1}", true, false},
    {"invalid UTF-8", "{\"a\":\"\xff\"}", true, false},
    {"raw control in a string", "{\"a\":\"\x01\"}", false, false},
    {"single quotes", "{'a':1}", false, false},
    {"NaN", "[NaN]", false, false},
    {"leading zero", "[01]", false, false},
};

static void
test_documents(void **state)
{
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        const char *text = documents[i].text, *error = NULL;
        struct json_doc *lenient = json_parse(text, strlen(text), false, NULL);
        struct json_doc *strict = json_parse(text, strlen(text), true, &error);

        print_message("%s\n", documents[i].label);
        assert_int_equal(lenient != NULL, documents[i].lenient);
        assert_int_equal(strict != NULL, documents[i].strict);
        assert_int_equal(error == NULL, documents[i].strict);
        json_doc_free(lenient);
        json_doc_free(strict);
    }
}

static void
test_depth_is_bounded(void **state)
{
    char text[2 * LIMIT_JSON_DEPTH + 8];

    for (unsigned depth = LIMIT_JSON_DEPTH; depth <= LIMIT_JSON_DEPTH + 1; depth++) {
        struct json_doc *doc;

        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        doc = json_parse(text, 2 * depth, false, NULL);
        assert_int_equal(doc != NULL, depth <= LIMIT_JSON_DEPTH);
        json_doc_free(doc);
    }
}

static void
test_values(void **state)
{
    const char *text = "{\"i\":9007199254740993,\"f\":1.5,\"e\":1e3,\"big\":99999999999999999999,"
                       "\"s\":\"a\\u0000b\",\"t\":\"x\",\"t\":\"y\",\"l\":[true,null]}";
    struct json_doc *doc = json_parse(text, strlen(text), false, NULL);
    const struct json_value *root = json_root(doc);

    assert_non_null(doc);
    assert_true(json_get(root, "i")->is_integer);
    assert_int_equal(json_get(root, "i")->integer, 9007199254740993);
    assert_false(json_get(root, "f")->is_integer);
    assert_true(json_get(root, "e")->number == 1000.0);
    assert_false(json_get(root, "big")->is_integer);
    assert_null(json_text(json_get(root, "s")));
    assert_int_equal(json_get(root, "s")->len, 3);
    assert_string_equal(json_text(json_get(root, "t")), "y");
    assert_int_equal(json_get(root, "l")->len, 2);
    assert_true(json_get(root, "l")->first->boolean);
    assert_null(json_get(root, "none"));
    assert_null(json_get(NULL, "none"));
    json_doc_free(doc);
}

static const struct {
    const char *label;
    const char *text;
    size_t len;
    const char *json;
} strings[] = {
    {"plain", "abc", 3, "\"abc\""},
    {"quotes", "a\"b\\c", 5, "\"a\\\"b\\\\c\""},
    {"controls", "\x01\t\n\x0b\x7f", 5, "\"\\u0001\\t\\n\\u000b\\u007f\""},
    {"NUL", "a\0b", 3, "\"a\\u0000b\""},
    {"UTF-8", "\xc3\xa4\xf0\x9f\x98\x80", 6, "\"\xc3\xa4\xf0\x9f\x98\x80\""},
    {"invalid UTF-8", "a\xff" "b\xe2\x82", 5, "\"a\xef\xbf\xbd" "b\xef\xbf\xbd\""},
};

static void
test_strings(void **state)
{
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        struct buf out;
        struct json_writer w;

        buf_init(&out, 0);
        json_begin(&w, &out);
        json_string(&w, strings[i].text, strings[i].len);
        assert_string_equal(out.data, strings[i].json);
        buf_done(&out);
    }
}

static void
test_writer(void **state)
{
    struct buf out;
    struct json_writer w;

    buf_init(&out, 0);
    json_begin(&w, &out);
    json_object_open(&w);
    json_key(&w, "a");
    json_array_open(&w);
    json_int(&w, -1);
    json_double(&w, 0.1);
    json_double(&w, 1.0 / 0.0);
    json_object_open(&w);
    json_object_close(&w);
    json_array_close(&w);
    json_key(&w, "b");
    json_cstring(&w, NULL);
    json_key(&w, "c");
    json_bool(&w, true);
    json_object_close(&w);
    assert_string_equal(out.data, "{\"a\":[-1,0.1,null,{}],\"b\":null,\"c\":true}");
    buf_done(&out);
}

static void
test_a_value_is_written_as_it_was_read(void **state)
{
    static const char text[] = "{\"a\":[1,2.50,true,null,\"\xc3\xa4\\n\"],"
                               "\"b\\u0000c\":{},\"d\":[]}";
    struct json_doc *doc = json_parse(text, sizeof text - 1, false, NULL);
    struct json_writer w;
    struct buf out;

    buf_init(&out, 0);
    json_begin(&w, &out);
    json_value(&w, json_root(doc));
    assert_int_equal(out.len, sizeof text - 1);
    assert_memory_equal(out.data, text, out.len);
    buf_done(&out);
    json_doc_free(doc);
}

static void
test_buf_bound_sticks(void **state)
{
    struct buf b;
    size_t len;

    buf_init(&b, 10);
    buf_add(&b, "12345", 5);
    buf_add(&b, "678901", 6);
    assert_true(b.failed);
    buf_add(&b, "x", 1);
    assert_true(b.failed);
    assert_null(buf_take(&b, &len));
    assert_int_equal(len, 0);
    buf_add(&b, "ok", 2);
    assert_false(b.failed);
    buf_consume(&b, 1);
    assert_string_equal(b.data, "k");
    buf_done(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents),    cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_values),       cmocka_unit_test(test_strings),
        cmocka_unit_test(test_writer),       cmocka_unit_test(test_buf_bound_sticks),
        cmocka_unit_test(test_a_value_is_written_as_it_was_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
