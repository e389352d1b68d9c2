/* The table of finished runs: summaries read as `ssebench runs results` reads them, applied
 * record by record, ordered and merged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/messages.h"
#include "worker/runs_results.h"
#include "worker/summary_read.h"

/* --- one summary ------------------------------------------------------------------------ */

static const struct {
    const char *label;
    const char *dir;
    const char *summary;
    const char *id; /* NULL: dropped */
} summaries[] = {
    {"plain", "t/m/a/r1", "{\"run_id\":\"r1\",\"task\":{\"id\":\"t\"}}", "r1"},
    {"the summary's ID leads", "t/m/a/dir", "{\"run_id\":\"r1\",\"task\":{\"id\":\"t\"}}", "r1"},
    {"null ID", "t/org/m/a/r2", "{\"run_id\":null,\"task\":{\"id\":\"t\"}}", "r2"},
    {"no ID", "r3", "{\"task\":{\"id\":\"t\"}}", "r3"},
    {"empty ID", "a/r4", "{\"run_id\":\"\",\"task\":{\"id\":\"t\"}}", "r4"},
    {"invalid ID", "a/r5", "{\"run_id\":\"../x\",\"task\":{\"id\":\"t\"}}", NULL},
    {"ID of another type", "a/r6", "{\"run_id\":{\"a\":1},\"task\":{\"id\":\"t\"}}", "r6"},
    {"ID is a number", "a/r8", "{\"run_id\":8,\"task\":{\"id\":\"t\"}}", "r8"},
    {"ID with a NUL", "a/r7", "{\"run_id\":\"a\\u0000\",\"task\":{\"id\":\"t\"}}", NULL},
    {"latest", "a/Latest", "{\"task\":{\"id\":\"t\"}}", NULL},
    {"invalid directory name", "a/-x", "{\"task\":{\"id\":\"t\"}}", NULL},
    {"no task", "a/r", "{\"run_id\":\"r\"}", NULL},
    {"task without ID", "a/r", "{\"task\":{}}", NULL},
    {"task is text", "a/r", "{\"task\":\"t\"}", NULL},
    {"task ID is a number", "a/r", "{\"task\":{\"id\":7}}", NULL},
    {"task ID is empty", "a/r", "{\"task\":{\"id\":\"\"}}", NULL},
    {"no object", "a/r", "[]", NULL},
    {"no JSON", "a/r", "{\"task\":", NULL},
    {"empty file", "a/r", "", NULL},
    {"NaN", "a/r", "{\"a\":[NaN,-Infinity, Infinity],\"task\":{\"id\":\"t\"}}", "r"},
    {"NaN as ID", "a/r9", "{\"run_id\":NaN,\"task\":{\"id\":\"t\"}}", "r9"},
    {"NaN in a text", "a/r", "{\"task\":{\"id\":\"t\"},\"b\":NaN,\"run_id\":\"a\\\"NaN\"}", NULL},
    {"NaN in an ID", "a/r", "{\"task\":{\"id\":\"t\"},\"b\":NaN,\"run_id\":\"NaN-1\"}", "NaN-1"},
    {"NaN as a name", "a/r", "{NaN:1,\"task\":{\"id\":\"t\"}}", NULL},
    {"negative NaN", "a/r", "{\"x\":-NaN,\"task\":{\"id\":\"t\"}}", NULL},
    {"NaN beside a number", "a/r", "{\"x\":1NaN,\"task\":{\"id\":\"t\"}}", NULL},
    {"byte order mark", "a/r", "\xef\xbb\xbf{\"task\":{\"id\":\"t\"}}", NULL},
    {"ill-formed UTF-8", "a/r", "{\"task\":{\"id\":\"t\"},\"x\":\"\xff\"}", NULL},
};

static void
test_summaries(void **state)
{
    for (size_t i = 0; i < sizeof summaries / sizeof *summaries; i++) {
        struct finished_run *r =
            summary_read(summaries[i].summary, strlen(summaries[i].summary),
                         summaries[i].dir, strlen(summaries[i].dir));
        const char *want = summaries[i].id;

        if ((r == NULL) != (want == NULL) || (r != NULL && strcmp(r->run_id, want) != 0))
            fail_msg("%s: %s", summaries[i].label, r != NULL ? r->run_id : "dropped");
        free(r);
    }
}

static struct finished_run *
read_with(const char *members)
{
    char text[2048];

    snprintf(text, sizeof text, "{\"task\":{\"id\":\"t\",\"language\":\"go\"}%s}", members);
    return summary_read(text, strlen(text), "t/m/a/r", 7);
}

static const struct {
    const char *patch_result;
    enum grade grade;
} grades[] = {
    {"{\"status\":\"passed\"}", GRADE_PASSED},
    {"{\"status\":\"failed\"}", GRADE_FAILED},
    {"{\"status\":\"error\"}", GRADE_ERROR},
    {"{\"status\":\"weird\"}", GRADE_NONE},
    {"null", GRADE_NONE},
    {"\"passed\"", GRADE_NONE},
    {"{}", GRADE_ERROR},
    {"{\"build_success\":null,\"pov_total\":null,\"func_test_success\":null}", GRADE_ERROR},
    {"{\"build_success\":true}", GRADE_PASSED},
    {"{\"build_success\":false}", GRADE_FAILED},
    {"{\"build_success\":true,\"pov_passed\":1,\"pov_total\":1}", GRADE_PASSED},
    {"{\"build_success\":true,\"pov_passed\":0,\"pov_total\":1}", GRADE_FAILED},
    {"{\"build_success\":true,\"func_test_success\":false}", GRADE_FAILED},
    {"{\"intent_test_success\":false}", GRADE_FAILED},
    {"{\"intent_test_success\":true,\"status\":null}", GRADE_PASSED},
};

static void
test_grades(void **state)
{
    for (size_t i = 0; i < sizeof grades / sizeof *grades; i++) {
        char members[256];
        struct finished_run *r;

        snprintf(members, sizeof members, ",\"patch_result\":%s", grades[i].patch_result);
        r = read_with(members);
        assert_non_null(r);
        if (r->grade != grades[i].grade)
            fail_msg("%s: %d", grades[i].patch_result, r->grade);
        free(r);
    }
}

static void
test_fields(void **state)
{
    struct finished_run *r = read_with(
        ",\"config\":{\"model\":\"org/m\",\"agent\":\"a\",\"mode\":\"sandbox\",\"timeout\":3600,"
        "\"difficulty\":2,\"egress\":\"open\",\"reference_run\":true},\"spend\":1.25,"
        "\"started_at\":\"2026-01-01T00:00:00.000001Z\",\"runtime_result\":{\"agent_duration\":77,"
        "\"agent_timeout\":true}");

    assert_string_equal(r->model, "org/m");
    assert_string_equal(r->mode, "sandbox");
    assert_string_equal(r->egress, "open");
    assert_string_equal(r->language, "go");
    assert_true(r->spend == 1.25);
    assert_int_equal(r->timeout, 3600);
    assert_int_equal(r->difficulty, 2);
    assert_int_equal(r->duration, 77);
    assert_int_equal(r->agent_timeout, TRI_TRUE);
    assert_int_equal(r->evaluator_timeout, TRI_NULL);
    assert_true(r->reference_run);
    free(r);
    r = read_with(",\"config\":{\"model\":7,\"agent\":null,\"timeout\":\"x\",\"difficulty\":9,"
                  "\"reference_run\":\"true\"},\"spend\":-1,\"started_at\":5");
    assert_null(r->model);
    assert_null(r->agent);
    assert_null(r->started_at);
    assert_int_equal(r->timeout, -1);
    assert_int_equal(r->difficulty, -1);
    assert_true(r->spend == -1);
    assert_false(r->reference_run);
    free(r);
}

static void
test_too_large(void **state)
{
    static const char text[] = "{\"task\":{\"id\":\"t\"}}";
    size_t len = LIMIT_SUMMARY + 1;
    char *big = malloc(len);

    memset(big, ' ', len);
    memcpy(big, text, sizeof text - 1);
    assert_null(summary_read(big, len, "r", 1));
    free(summary_read(big, len - 1, "r", 1));
    free(big);
}

/* --- the table -------------------------------------------------------------------------- */

static const uint64_t key[2] = {1, 2};

static void
add_record(struct buf *b, uint64_t ref, const char *dir, const char *summary)
{
    struct scan_record record = {
        .gone = dir == NULL,
        .ref = ref,
        .dir_len = dir != NULL ? (uint32_t)strlen(dir) : 0,
        .summary_len = dir != NULL ? (uint32_t)strlen(summary) : 0,
    };

    buf_add(b, &record, sizeof record);
    if (dir != NULL) {
        buf_add_str(b, dir);
        buf_add_str(b, summary);
    }
    while (b->len % 8 != 0)
        buf_add(b, "\0", 1);
}

static void
add_run(struct buf *b, uint64_t ref, const char *id, const char *task, const char *started)
{
    char text[256];

    snprintf(text, sizeof text,
             "{\"run_id\":\"%s\",\"task\":{\"id\":\"%s\"},\"started_at\":%s}", id, task, started);
    add_record(b, ref, "t/m/a/x", text);
}

static void
apply(struct results_table *t, struct buf *b)
{
    int64_t used = 0;

    while (used < (int64_t)b->len) { /* one record a time: the smallest budget */
        int64_t n = results_table_apply(t, (unsigned char *)b->data + used,
                                        b->len - (size_t)used, 1);

        assert_true(n > 0);
        used += n;
    }
    buf_reset(b);
}

/* "id:task " of all shown runs. */
static const char *
shown(struct results_table *t)
{
    static char text[4096];
    size_t n;
    const struct finished_run *const *runs = results_table_sorted(t, &n);

    *text = '\0';
    for (size_t i = 0; i < n; i++) {
        char one[200];

        snprintf(one, sizeof one, "%s:%s ", runs[i]->run_id, runs[i]->task);
        strcat(text, one);
        assert_ptr_equal(results_table_find(t, runs[i]->run_id), runs[i]);
    }
    return text;
}

static void
test_order_and_changes(void **state)
{
    struct results_table *t = results_table_new(key);
    struct buf b;
    uint64_t version;

    buf_init(&b, 0);
    assert_string_equal(shown(t), "");
    add_run(&b, 1, "a", "1", "\"2026-01-01\"");
    add_run(&b, 2, "b", "2", "\"2026-01-03\"");
    add_run(&b, 3, "c", "3", "null");
    add_run(&b, 4, "d", "4", "\"2026-01-03\"");
    add_run(&b, 5, "e", "5", "null");
    apply(t, &b);
    assert_string_equal(shown(t), "d:4 b:2 a:1 e:5 c:3 ");
    version = results_table_version(t);
    assert_string_equal(shown(t), "d:4 b:2 a:1 e:5 c:3 ");
    assert_int_equal(results_table_version(t), version);
    add_run(&b, 1, "a", "changed", "\"2026-01-04\"");
    add_record(&b, 4, NULL, NULL);
    add_record(&b, 99, NULL, NULL);
    apply(t, &b);
    assert_string_equal(shown(t), "a:changed b:2 e:5 c:3 ");
    assert_true(results_table_version(t) != version);
    add_record(&b, 2, "t/m/a/b", "not JSON any more");
    apply(t, &b);
    assert_string_equal(shown(t), "a:changed e:5 c:3 ");
    assert_null(results_table_find(t, "b"));
    results_table_clear(t);
    assert_string_equal(shown(t), "");
    results_table_free(t);
    buf_done(&b);
}

/* Contract 4.4: of two runs with one ID the later start wins; when it goes, the other is back. */
static void
test_duplicates(void **state)
{
    struct results_table *t = results_table_new(key);
    struct buf b;

    buf_init(&b, 0);
    add_run(&b, 1, "same", "old", "\"2026-01-01\"");
    add_run(&b, 2, "same", "new", "\"2026-01-02\"");
    add_run(&b, 3, "same", "none", "null");
    apply(t, &b);
    assert_string_equal(shown(t), "same:new ");
    add_record(&b, 2, NULL, NULL);
    apply(t, &b);
    assert_string_equal(shown(t), "same:old ");
    add_record(&b, 1, NULL, NULL);
    apply(t, &b);
    assert_string_equal(shown(t), "same:none ");
    results_table_free(t);
    buf_done(&b);
}

/* A folder named by the ID comes before any other, whatever start that tells. */
static void
test_named(void **state)
{
    struct results_table *t = results_table_new(key);
    struct buf b;

    buf_init(&b, 0);
    add_record(&b, 1, "t/m/a/same",
               "{\"run_id\":\"same\",\"task\":{\"id\":\"own\"},\"started_at\":\"2026\"}");
    add_run(&b, 2, "same", "forged", "\"9999\"");
    add_record(&b, 3, "t/m/a/not-same",
               "{\"run_id\":\"same\",\"task\":{\"id\":\"copy\"},\"started_at\":\"9998\"}");
    apply(t, &b);
    assert_string_equal(shown(t), "same:own ");
    add_record(&b, 4, "t/m/b/same", "{\"task\":{\"id\":\"again\"},\"started_at\":\"2027\"}");
    apply(t, &b);
    assert_string_equal(shown(t), "same:again ");
    add_record(&b, 4, NULL, NULL);
    add_record(&b, 1, NULL, NULL);
    apply(t, &b);
    assert_string_equal(shown(t), "same:forged ");
    results_table_free(t);
    buf_done(&b);
}

/* Of runs that share a few IDs and starts, coming and going in no order: who wins is who does
 * when all are looked at. */
static void
test_duplicates_come_and_go(void **state)
{
    enum { REFS = 60, IDS = 4 };
    struct results_table *t = results_table_new(key);
    int starts[REFS];
    uint32_t random = 1;
    struct buf b;

    buf_init(&b, 0);
    memset(starts, -1, sizeof starts); /* gone */
    for (unsigned step = 0; step < 4000; step++) {
        unsigned ref = (random = random * 1103515245u + 12345u) / 65536u % REFS, id = ref % IDS;
        int best = -1;
        char name[8], text[16];

        starts[ref] = step % 3 == 0 ? -1 : (int)(random / 65536u % 10);
        snprintf(name, sizeof name, "id%u", id);
        snprintf(text, sizeof text, "\"%d\"", starts[ref]);
        if (starts[ref] < 0)
            add_record(&b, ref, NULL, NULL);
        else
            add_run(&b, ref, name, "t", text);
        apply(t, &b);
        if (step % 50 == 0)
            shown(t); /* what is removed leaves the order only then */
        for (int i = (int)id; i < REFS; i += IDS)
            if (starts[i] >= 0 && (best < 0 || starts[i] > starts[best]))
                best = i;
        assert_true((results_table_find(t, name) == NULL) == (best < 0));
        if (best >= 0)
            assert_int_equal(results_table_find(t, name)->ref, best);
    }
    shown(t); /* checks each against find */
    results_table_free(t);
    buf_done(&b);
}

/* A hundred thousand summaries of one ID: within the time of a test only if each is compared
 * with few others, coming as well as going. One slice takes few of them. */
static void
test_many_duplicates(void **state)
{
    enum { MANY = 100000 };
    struct results_table *t = results_table_new(key);
    struct buf b;
    unsigned n_slices = 0;
    size_t n;

    buf_init(&b, 0);
    for (unsigned gone = 0; gone < 2; gone++) {
        for (unsigned i = 1; i <= MANY; i++)
            if (gone)
                add_record(&b, i, NULL, NULL); /* always the one that is shown */
            else
                add_run(&b, i, "same", "t", "null");
        for (size_t used = 0; used < b.len; n_slices++)
            used += (size_t)results_table_apply(t, (unsigned char *)b.data + used,
                                                b.len - used, 128 * 1024);
        buf_reset(&b);
        results_table_sorted(t, &n);
        assert_int_equal(n, gone ? 0 : 1);
    }
    assert_true(results_table_is_empty(t));
    assert_true(n_slices >= 2 * MANY / 128);
    results_table_free(t);
    buf_done(&b);
}

/* Thousands of runs in one go (sorted at once), then single changes (put in place): the order
 * is the same as if all had been sorted. */
static void
test_many(void **state)
{
    struct results_table *t = results_table_new(key);
    struct buf b;
    size_t n;
    const struct finished_run *const *runs;

    buf_init(&b, 0);
    for (unsigned i = 0; i < 5000; i++) {
        char id[32], started[32];

        snprintf(id, sizeof id, "r%u", i);
        snprintf(started, sizeof started, "\"%05u\"", i * 7919 % 5000);
        add_run(&b, i, id, "t", started);
    }
    apply(t, &b);
    results_table_sorted(t, &n);
    assert_int_equal(n, 5000);
    for (unsigned i = 0; i < 5000; i += 37) {
        if (i % 2)
            add_record(&b, i, NULL, NULL);
        else
            add_run(&b, 10000 + i, "late", "t", "\"02500\"");
        apply(t, &b);
        if (i % 3 == 0)
            results_table_sorted(t, &n);
    }
    runs = results_table_sorted(t, &n);
    assert_int_equal(n, 5000 - 68 + 1);
    for (size_t i = 1; i < n; i++)
        assert_true(strcmp(runs[i - 1]->started_at, runs[i]->started_at) >= 0);
    results_table_free(t);
    buf_done(&b);
}

static void
test_layout(void **state)
{
    struct results_table *t = results_table_new(key);
    struct buf b;

    buf_init(&b, 0);
    add_run(&b, 1, "a", "1", "null");
    for (size_t len = 1; len < b.len; len++)
        assert_int_equal(results_table_apply(t, (unsigned char *)b.data, len, SIZE_MAX),
                         -EBADMSG);
    assert_int_equal(results_table_apply(t, (unsigned char *)b.data, b.len, SIZE_MAX),
                     b.len);
    memset(b.data + offsetof(struct scan_record, dir_len), 0xff, 8); /* both lengths */
    assert_int_equal(results_table_apply(t, (unsigned char *)b.data, b.len, SIZE_MAX),
                     -EBADMSG);
    results_table_free(t);
    buf_done(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summaries),         cmocka_unit_test(test_grades),
        cmocka_unit_test(test_fields),            cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_order_and_changes), cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_duplicates_come_and_go), cmocka_unit_test(test_many_duplicates),
        cmocka_unit_test(test_named),             cmocka_unit_test(test_many),
        cmocka_unit_test(test_layout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
