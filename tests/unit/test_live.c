/* What is read of live runs: HTTP answers, members of a document, a task's configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/body_scan.h"
#include "worker/task_yaml.h"
#include "worker/upstream_parse.h"

/* --- answers ------------------------------------------------------------------------------ */

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *label, *bytes;
    int result; /* 0: it needs more */
    int at_end; /* then: what the end of the connection makes of it */
    const char *body;
    bool keeps;
} answers[] = {
    {"length", OK "Content-Length: 2\r\n\r\n{}", 1, 0, "{}", true},
    {"length 0", OK "Content-Length: 0\r\n\r\n", 1, 0, "", true},
    {"chunks", OK "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", 1, 0, "{}",
     true},
    {"close", OK "Connection: close\r\nContent-Length: 2\r\n\r\n{}", 1, 0, "{}", false},
    {"until close", "HTTP/1.0 200 OK\r\n\r\n{}", 0, 1, "{}", false},
    {"more than asked", OK "Content-Length: 2\r\n\r\n{}{}", 1, 0, "{}", false},
    {"cut in the head", OK "Content-Le", 0, -EPIPE, "", false},
    {"cut in the body", OK "Content-Length: 3\r\n\r\n{}", 0, -EPIPE, "{}", false},
    {"cut in a chunk", OK "Transfer-Encoding: chunked\r\n\r\n5\r\n{}", 0, -EPIPE, "{}", false},
    {"over the limit", OK "Content-Length: 17\r\n\r\n", -EMSGSIZE, 0, "", false},
    {"chunk over it", OK "Transfer-Encoding: chunked\r\n\r\n11\r\n12345678901234567\r\n",
     -EMSGSIZE, 0, "", false},
    {"two lengths", OK "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", -EBADMSG, 0, "",
     false},
    {"length and chunks", OK "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     -EBADMSG, 0, "", false},
    {"bad length", OK "Content-Length: x\r\n\r\n", -EBADMSG, 0, "", false},
    {"bad chunk", OK "Transfer-Encoding: chunked\r\n\r\nx\r\n", -EBADMSG, 0, "", false},
    {"upgrade", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
     -EBADMSG, 0, "", false},
    {"continue", "HTTP/1.1 100 Continue\r\n\r\n", -EBADMSG, 0, "", false},
    {"status 999", "HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n", -EBADMSG, 0, "", false},
    {"another protocol", "SSH-2.0-x\r\n", -EBADMSG, 0, "", false},
    {"a request", "GET / HTTP/1.1\r\n\r\n", -EBADMSG, 0, "", false},
};

static char body[64];

static bool
sink_head(void *ctx, int status, const char *type)
{
    return true;
}

static bool
sink_data(void *ctx, const char *bytes, size_t len)
{
    strncat(body, bytes, len);
    return true;
}

/* `piece`: bytes in one feeding. */
static void
check_answer(size_t i, size_t piece)
{
    const char *at = answers[i].bytes;
    size_t left = strlen(at);
    struct upstream_parser *p =
        upstream_parser_new((struct upstream_sink){sink_head, sink_data, NULL}, 16, false);
    int r = 0;

    body[0] = '\0';
    while (left > 0 && r == 0) {
        size_t n = left < piece ? left : piece;

        r = upstream_parser_feed(p, at, n);
        at += n;
        left -= n;
    }
    if (r == 0 && answers[i].result == 0)
        assert_int_equal(upstream_parser_end(p), answers[i].at_end);
    else if (r != answers[i].result)
        fail_msg("%s, %zu at a time: %d", answers[i].label, piece, r);
    if (answers[i].result >= 0)
        assert_string_equal(body, answers[i].body);
    if (r == 1 && left == 0)
        assert_int_equal(upstream_parser_keeps(p), answers[i].keeps);
    upstream_parser_free(p);
}

static void
answers_are_read_within_limits(void **state)
{
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        check_answer(i, 1000);
        check_answer(i, 1);
    }
}

static void
a_head_without_end_is_too_large(void **state)
{
    struct upstream_parser *p =
        upstream_parser_new((struct upstream_sink){sink_head, sink_data, NULL}, 16, false);
    int r = upstream_parser_feed(p, OK "X: ", strlen(OK "X: "));

    for (int i = 0; r == 0 && i < 100000; i++)
        r = upstream_parser_feed(p, "xxxxxxxxxx", 10);
    assert_int_equal(r, -EMSGSIZE);
    upstream_parser_free(p);
}

/* --- members --------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    bool valid;
    const char *value; /* of "m"; NULL: not there */
    const char *other; /* of "b" */
} members[] = {
    {"{\"m\":\"x\"}", true, "\"x\"", NULL},
    {"{\"a\":1,\"m\":[1,{\"m\":2}],\"b\":3}", true, "[1,{\"m\":2}]", "3"},
    {"{\"a\":{\"m\":1}}", true, NULL, NULL},
    {"{\"a\":[\"m\",\"m\"],\"b\":\"m\"}", true, NULL, "\"m\""},
    {"{\"m\":true}", true, "true", NULL},
    {"{\"m\":12}", true, "12", NULL},
    {"{\"m\":1,\"m\":{}}", true, "{}", NULL},
    {"{\"m\":\"a\\\"}\\\\\"}", true, "\"a\\\"}\\\\\"", NULL},
    {"{\"mm\":1}", true, NULL, NULL},
    {"{\n \"m\" : [ ] \n}\n", true, "[ ]", NULL},
    {"{}", true, NULL, NULL},
    {"[]", false, NULL, NULL},
    {"{\"m\":}", false, NULL, NULL},
    {"{\"m\":1", false, NULL, NULL},
    {"{\"m\":1}}", false, NULL, NULL},
    {"", false, NULL, NULL},
};

static void
check_value(const struct body_value *v, const char *text, const char *expected)
{
    assert_int_equal(v->kind != '\0', expected != NULL);
    if (expected == NULL)
        return;
    assert_int_equal(v->end - v->start, strlen(expected));
    assert_memory_equal(text + v->start, expected, v->end - v->start);
}

static void
members_are_found(void **state)
{
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        struct body_scan whole, pieces;
        static const char *const names[] = {"m", "b"};
        const char *text = members[i].text;

        body_scan_begin(&whole, names, 2);
        body_scan_begin(&pieces, names, 2);
        body_scan_feed(&whole, text, strlen(text));
        for (const char *at = text; *at != '\0'; at++)
            body_scan_feed(&pieces, at, 1);
        if (body_scan_end(&whole) != members[i].valid ||
            body_scan_end(&pieces) != members[i].valid)
            fail_msg("%s", text);
        if (!members[i].valid)
            continue;
        assert_memory_equal(whole.value, pieces.value, sizeof whole.value);
        check_value(&whole.value[0], text, members[i].value);
        check_value(&whole.value[1], text, members[i].other);
    }
}

/* Up to where an array that arrives in pieces has whole objects. */
static void
whole_elements_are_known(void **state)
{
    static const char *const names[] = {"m"};
    static const char text[] = "{\"x\":[{}],\"m\":[{\"a\":[{}]},[1],2,{";
    struct body_scan s;

    body_scan_begin(&s, names, 1);
    body_scan_feed(&s, text, sizeof text - 1);
    assert_true(body_scan_good(&s));
    assert_false(body_scan_end(&s));
    assert_string_equal(text + s.elements_end, ",2,{");
    body_scan_feed(&s, "]", 1);
    assert_false(body_scan_good(&s));
}

static void
elements_are_cut_out(void **state)
{
    static const char text[] = " {\"a\":[1,2]} ,\"x,]\\\"\", 3,[4,[5]],{}";
    static const char *const expected[] = {"{\"a\":[1,2]} ", "\"x,]\\\"\"", "3", "[4,[5]]", "{}"};

    for (size_t most = 1; most < sizeof text; most++) {
        struct body_element e = {0};
        size_t n = 0;
        int r;

        while ((r = body_element_next(&e, text, sizeof text - 1, most)) >= 0) {
            if (r == 0)
                continue;
            assert_true(n < 5);
            assert_int_equal(e.end - e.start, strlen(expected[n]));
            assert_memory_equal(text + e.start, expected[n++], e.end - e.start);
        }
        assert_int_equal(n, 5);
    }
}

/* --- a task ------------------------------------------------------------------------------------ */

static const struct {
    const char *text;
    int result;
    const char *path;
} tasks[] = {
    {"id: x\nfiles:\n  patch: diffs/patch.diff\n  poc:\n  - a\n", 0, "diffs/patch.diff"},
    {"files:\n  poc:\n  - patch\n  - b\n  patch: p\nid: x\n", 0, "p"},
    {"files: {poc: [a], patch: \"q\"}\n", 0, "q"},
    {"patch: no\nfiles:\n  poc: []\n", -ENOENT, NULL},
    {"scripts:\n  patch: no\nother:\n  files:\n    patch: no\n", -ENOENT, NULL},
    {"files:\n  patch:\n", -ENOENT, NULL},
    {"files:\n  patch: [a]\n", -ENOENT, NULL},
    {"files: text\n", -ENOENT, NULL},
    {"- files\n- patch\n", -ENOENT, NULL},
    {"files:\n  patch: 012345678901234567890123456789\n", -ENAMETOOLONG, NULL},
    {"files: [\n", -EBADMSG, NULL},
    {"\t- x: [", -EBADMSG, NULL},
    {"a: &a [x]\nb: [*a,*a,*a]\nfiles:\n  patch: p\n", 0, "p"},
    {"", -ENOENT, NULL},
};

static void
a_task_names_its_patch(void **state)
{
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        char path[24] = "untouched";
        int r = task_yaml_patch(tasks[i].text, strlen(tasks[i].text), path, sizeof path);

        if (r != tasks[i].result)
            fail_msg("%s: %d", tasks[i].text, r);
        assert_string_equal(path, r == 0 ? tasks[i].path : "untouched");
    }
}

static void
a_deep_task_is_refused(void **state)
{
    char path[24], text[4000];

    memset(text, '[', sizeof text);
    assert_int_equal(task_yaml_patch(text, sizeof text, path, sizeof path), -ENOENT);
    memcpy(text, "files: ", 7);
    assert_int_equal(task_yaml_patch(text, sizeof text, path, sizeof path), -EBADMSG);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_read_within_limits),
        cmocka_unit_test(a_head_without_end_is_too_large),
        cmocka_unit_test(members_are_found),
        cmocka_unit_test(whole_elements_are_known),
        cmocka_unit_test(elements_are_cut_out),
        cmocka_unit_test(a_task_names_its_patch),
        cmocka_unit_test(a_deep_task_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
