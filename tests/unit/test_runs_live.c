/* The CLI's listing: what is taken, what is skipped, what is no listing at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "worker/runs_live.h"

static const struct {
    const char *label;
    const char *text;
} rubbish[] = {
    {"empty", ""},
    {"blank", " \n"},
    {"words", "Traceback (most recent call last):"},
    {"half", "{\"runs\": ["},
    {"array", "[]"},
    {"null", "null"},
    {"no runs", "{\"backend\": \"docker\"}"},
    {"runs is null", "{\"runs\": null}"},
    {"runs is an object", "{\"runs\": {}}"},
    {"two documents", "{\"runs\": []} {\"runs\": []}"},
};

static void
test_rubbish(void **state)
{
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
        struct live_list list = {0};
        const char *reason = NULL;
        int r = live_list_parse(rubbish[i].text, strlen(rubbish[i].text), &list, &reason);

        if (r != -EBADMSG || reason == NULL)
            fail_msg("%s: %d", rubbish[i].label, r);
    }
}

static const struct {
    const char *label;
    const char *runs;
    const char *ids; /* each followed by a blank */
} lists[] = {
    {"none", "", ""},
    {"order kept", "{\"run_id\":\"b\"},{\"run_id\":\"a\"}", "b a "},
    {"the first of a duplicate",
     "{\"run_id\":\"a\",\"task\":\"1\"},{\"run_id\":\"b\"},{\"run_id\":\"a\",\"task\":\"2\"}",
     "a b "},
    {"no ID", "{\"name\":\"x\"},{\"run_id\":null},{\"run_id\":7},{\"run_id\":\"\"}", ""},
    {"bad IDs",
     "{\"run_id\":\"../x\"},{\"run_id\":\"a b\"},{\"run_id\":\"latest\"},{\"run_id\":\"-a\"},"
     "{\"run_id\":\"a\\u0000\"},{\"run_id\":\"ok\"}",
     "ok "},
    {"not objects", "1,null,\"a\",[],{\"run_id\":\"a\"}", "a "},
};

static void
test_lists(void **state)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char text[1024], ids[256] = "";
        struct live_list list;
        const char *reason = NULL;

        snprintf(text, sizeof text, "{\"runs\":[%s]}\n", lists[i].runs);
        assert_int_equal(live_list_parse(text, strlen(text), &list, &reason), 0);
        for (size_t n = 0; n < list.n_runs; n++) {
            strcat(strcat(ids, list.runs[n].id), " ");
            assert_ptr_equal(live_list_find(&list, list.runs[n].id), &list.runs[n]);
        }
        if (strcmp(ids, lists[i].ids) != 0)
            fail_msg("%s: %s", lists[i].label, ids);
        assert_null(live_list_find(&list, "nobody"));
        live_list_done(&list);
    }
}

static void
test_fields(void **state)
{
    static const char text[] =
        "{\"backend\":\"docker\",\"supports_exec\":false,\"runs\":[{\"run_id\":\"r1\","
        "\"name\":\"n\",\"state\":\"exited\",\"exit_code\":0,\"image\":\"\",\"created_at\":null,"
        "\"task\":\"t\",\"model\":\"org/m\",\"agent\":5,\"reference_run\":true,"
        "\"results_dir\":\"/r\",\"labels\":{}},{\"run_id\":\"r2\",\"state\":\"paused\","
        "\"reference_run\":\"true\"}]}";
    struct live_list list;
    const char *reason = NULL;

    assert_int_equal(live_list_parse(text, sizeof text - 1, &list, &reason), 0);
    assert_string_equal(list.backend, "docker");
    assert_false(list.supports_exec);
    assert_int_equal(list.n_runs, 2);
    assert_string_equal(list.runs[0].name, "n");
    assert_int_equal(list.runs[0].state, LIVE_EXITED);
    assert_string_equal(list.runs[0].image, "");
    assert_null(list.runs[0].created_at);
    assert_string_equal(list.runs[0].model, "org/m");
    assert_null(list.runs[0].agent);
    assert_true(list.runs[0].reference_run);
    assert_string_equal(list.runs[0].results_dir, "/r");
    assert_int_equal(list.runs[1].state, LIVE_UNKNOWN);
    assert_null(list.runs[1].name);
    assert_false(list.runs[1].reference_run);
    live_list_done(&list);
}

/* Many runs: every one is found, and finding does not get slower with their number. */
static void
test_many(void **state)
{
    struct live_list list;
    const char *reason = NULL;
    struct buf text;

    buf_init(&text, 0);
    buf_add_str(&text, "{\"runs\":[{\"run_id\":\"r\"}");
    for (unsigned i = 0; i < 20000; i++)
        buf_add_format(&text, ",{\"run_id\":\"r%u\",\"state\":\"running\"}", i % 10000);
    buf_add_str(&text, "]}");
    assert_int_equal(live_list_parse(text.data, text.len, &list, &reason), 0);
    assert_int_equal(list.n_runs, 10001);
    assert_ptr_equal(live_list_find(&list, "r9999"), &list.runs[10000]);
    live_list_done(&list);
    buf_done(&text);
}

static void
parse(const char *text, struct live_list *ret)
{
    const char *reason = NULL;

    assert_int_equal(live_list_parse(text, strlen(text), ret, &reason), 0);
}

/* What was learnt of a grade stays with its run; another directory is another run. */
static void
test_carry(void **state)
{
    struct live_list old, new;

    parse("{\"runs\":[{\"run_id\":\"a\",\"results_dir\":\"r/a\"},"
          "{\"run_id\":\"b\",\"results_dir\":\"r/b\"},{\"run_id\":\"c\"}]}", &old);
    for (size_t i = 0; i < old.n_runs; i++) {
        assert_int_equal(old.runs[i].duration, -1);
        old.runs[i].grade = 1;
        old.runs[i].duration = 7;
        old.runs[i].looked_ms = 5;
    }
    parse("{\"runs\":[{\"run_id\":\"n\",\"results_dir\":\"r/a\"},{\"run_id\":\"c\"},"
          "{\"run_id\":\"b\",\"results_dir\":\"other\"},"
          "{\"run_id\":\"a\",\"results_dir\":\"r/a\"}]}", &new);
    live_list_carry(&new, &old);
    for (size_t i = 0; i < new.n_runs; i++) {
        bool same = strcmp(new.runs[i].id, "a") == 0;

        assert_int_equal(new.runs[i].grade, same ? 1 : 0);
        assert_int_equal(new.runs[i].duration, same ? 7 : -1);
        assert_int_equal(new.runs[i].looked_ms, same ? 5 : 0);
    }
    live_list_done(&old);
    live_list_done(&new);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_carry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
