/* A document made in slices is the one that is made at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "drop_newlines.h"
#include "worker/doc_render.h"
#include "worker/doc_slices.h"

static int
in_slices(const char *text, size_t len, enum doc_slices_kind kind, struct buf *out)
{
    int fd = memfd_create("doc", MFD_CLOEXEC), more = 1;
    struct doc_slices *d;

    assert_int_equal(write(fd, text, len), (ssize_t)len);
    d = doc_slices_new(fd, len, kind);
    assert_non_null(d);
    while (more == 1)
        more = doc_slices_look(d);
    if (more == 0) {
        while (doc_slices_fill(d, out) == 1)
            assert_true(out->len > 0);
        drop_newlines(out);
    }
    doc_slices_free(d);
    return more;
}

static void
check(const char *text, size_t len, enum doc_slices_kind kind)
{
    struct buf slices, whole;
    int result;

    buf_init(&slices, 0);
    buf_init(&whole, 0);
    result = kind == DOC_PROJECT ? doc_render_project(text, len, &whole)
                                 : doc_render_result(text, len, &whole);
    assert_int_equal(in_slices(text, len, kind, &slices) == 0, result == 0);
    if (result == 0 && (slices.len != whole.len || memcmp(slices.data, whole.data, whole.len)))
        fail_msg("%.200s: %.200s, at once %.200s", text, slices.data, whole.data);
    buf_done(&slices);
    buf_done(&whole);
}

static const char *const results[] = {
    "{\"patch_result\":{},\"runtime_result\":{}}",
    "{\"config\":{\"patch_result\":1},\"runtime_result\":{\"a\":[1,{\"b\":null}]},"
    "\"patch_result\":{\"error_log\":\"x\\\"}\",\"ok\":true}}",
    "{\"patch_result\":[],\"runtime_result\":{}}",
    "{\"patch_result\":{}}",
    "{\"patch_result\":{},\"patch_result\":{\"n\":2},\"runtime_result\":{}}",
    "{\"patch_result\":{},\"runtime_result\":{}",
    "{\"patch_result\":{},\"runtime_result\":{}} x",
    "[{}]",
    "",
};

static const char *const summaries[] = {
    "{\"task\":{\"id\":\"a\"}}",
    "{\"run_id\":\"x\",\"task\":{\"id\":\"a\",\"project\":\"p\",\"language\":\"c\","
    "\"source\":\"/src\",\"task_description\":{\"issue\":\"i\"},"
    "\"files\":{\"poc\":[\"one\",\"two\"],\"patch\":\"p\"}},\"spend\":1}",
    "{\"task\":{\"id\":\"a\",\"project\":null,\"language\":1,\"source\":[],"
    "\"task_description\":\"text\",\"files\":{}}}",
    "{\"task\":{\"id\":\"a\",\"files\":{\"poc\":{\"a\":\"b\"}}}}",
    "{\"task\":{\"id\":\"a\",\"files\":{\"poc\":[]}}}",
    "{\"task\":{\"id\":\"a\",\"files\":{\"poc\":[1,\"x\",[\"y\",[\"z\"]],{\"w\":\"v\"},"
    "\"q\\\"],{\",null,\"r\"]}}}",
    "{\"task\":{\"id\":1}}",
    "{\"task\":[]}",
    "{\"id\":\"a\"}",
    "{\"task\":{\"id\":\"a\"}",
};

static void
small_ones(void **state)
{
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        check(results[i], strlen(results[i]), DOC_RESULT);
    for (size_t i = 0; i < sizeof summaries / sizeof summaries[0]; i++)
        check(summaries[i], strlen(summaries[i]), DOC_PROJECT);
}

/* Several slices, with a character on each border and bytes that are none. */
static void
long_ones(void **state)
{
    for (size_t shift = 0; shift < 4; shift++) {
        struct buf b;

        buf_init(&b, 0);
        buf_add_str(&b, "{\"patch_result\":{\"log\":\"");
        buf_add(&b, "xxxx", shift);
        for (size_t i = 0; i < 80000; i++)
            buf_add_str(&b, i % 1000 == 0 ? "\xff\xe2\x82" : "\xe2\x82\xac");
        buf_add_str(&b, "\"},\"runtime_result\":{\"a\":1}}");
        check(b.data, b.len, DOC_RESULT);
        buf_reset(&b);
        buf_add_str(&b, "{\"task\":{\"files\":{\"poc\":[");
        buf_add(&b, "1111", shift + 1);
        for (size_t i = 0; i < 30000; i++)
            buf_add_str(&b, i % 3 == 0 ? ",12" : ",\"a \xf0\x9f\x98\x80 name\"");
        buf_add_str(&b, "]},\"id\":\"t\"}}");
        check(b.data, b.len, DOC_PROJECT);
        buf_done(&b);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ones),
        cmocka_unit_test(long_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
