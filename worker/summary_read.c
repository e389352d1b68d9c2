/* From a hostile summary to a compact record. */
#include "worker/summary_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_read.h"
#include "common/limits.h"
#include "common/utf8.h"
#include "policy/run_id.h"

/* A text worth keeping, or NULL. */
static const char *
short_text(const struct json_value *v)
{
    const char *text = json_text(v);

    return text != NULL && v->len <= SUMMARY_TEXT ? text : NULL;
}

static uint8_t
tristate(const struct json_value *v)
{
    if (v == NULL || v->type != JSON_BOOL)
        return TRI_NULL;
    return v->boolean ? TRI_TRUE : TRI_FALSE;
}

/* A whole number in [0, most], or -1. */
static int32_t
count(const struct json_value *v, int32_t most)
{
    if (v == NULL || v->type != JSON_NUMBER || !v->is_integer)
        return -1;
    return v->integer >= 0 && v->integer <= most ? (int32_t)v->integer : -1;
}

static double
dollars(const struct json_value *v)
{
    if (v == NULL || v->type != JSON_NUMBER || !isfinite(v->number) || v->number < 0)
        return -1;
    return v->number;
}

/* Contract 4.2: what the checks say where an old file has no status. */
static enum grade
grade_of_checks(const struct finished_run *r)
{
    if (r->build == TRI_NULL && r->func == TRI_NULL && r->intent == TRI_NULL &&
        r->pov_total < 0)
        return GRADE_ERROR;
    if (r->build == TRI_FALSE || r->func == TRI_FALSE || r->intent == TRI_FALSE ||
        r->pov_passed != r->pov_total)
        return GRADE_FAILED;
    return GRADE_PASSED;
}

static enum grade
grade_of(const struct finished_run *r, const struct json_value *patch_result)
{
    if (patch_result == NULL || patch_result->type != JSON_OBJECT)
        return GRADE_NONE;
    if (r->status == NULL)
        return grade_of_checks(r);
    for (enum grade g = GRADE_PASSED; g <= GRADE_ERROR; g++)
        if (strcmp(r->status, grade_name(g)) == 0)
            return g;
    return GRADE_NONE;
}

static void
read_config(struct finished_run *r, const struct json_value *config)
{
    r->model = short_text(json_get(config, "model"));
    r->agent = short_text(json_get(config, "agent"));
    r->mode = short_text(json_get(config, "mode"));
    r->egress = short_text(json_get(config, "egress"));
    r->timeout = count(json_get(config, "timeout"), INT32_MAX);
    r->difficulty = (int8_t)count(json_get(config, "difficulty"), 4);
    r->reference_run = tristate(json_get(config, "reference_run")) == TRI_TRUE;
}

static void
read_outcome(struct finished_run *r, const struct json_value *root)
{
    const struct json_value *patch = json_get(root, "patch_result");
    const struct json_value *runtime = json_get(root, "runtime_result");

    r->status = short_text(json_get(patch, "status"));
    r->build = tristate(json_get(patch, "build_success"));
    r->func = tristate(json_get(patch, "func_test_success"));
    r->intent = tristate(json_get(patch, "intent_test_success"));
    r->pov_passed = count(json_get(patch, "pov_passed"), INT32_MAX);
    r->pov_total = count(json_get(patch, "pov_total"), INT32_MAX);
    r->duration = count(json_get(runtime, "agent_duration"), INT32_MAX);
    r->agent_timeout = tristate(json_get(runtime, "agent_timeout"));
    r->evaluator_timeout = tristate(json_get(runtime, "evaluator_timeout"));
    r->grade = (uint8_t)grade_of(r, patch);
}

/* The run's ID: the summary's, else (absent, empty, no text) the directory's name, into `id`;
 * and whether it is that name. */
static bool
read_id(const struct json_value *root, const char *dir, size_t dir_len,
        char id[POLICY_RUN_ID_MAX + 1], bool *ret_named)
{
    const struct json_value *given = json_get(root, "run_id");
    const char *text = json_text(given);
    const char *slash = memrchr(dir, '/', dir_len);
    const char *name = slash != NULL ? slash + 1 : dir;
    size_t name_len = dir_len - (size_t)(name - dir);
    size_t len = text != NULL ? strlen(text) : 0;

    if (given != NULL && given->type == JSON_STRING && text == NULL)
        return false; /* a NUL in it */
    if (len == 0) {
        text = name;
        len = name_len;
    }
    if (!policy_run_id_valid(text, len))
        return false;
    memcpy(id, text, len);
    id[len] = '\0';
    *ret_named = len == name_len && memcmp(text, name, len) == 0;
    return true;
}

/* One block: the record, then its texts. */
static struct finished_run *
pack(const struct finished_run *from)
{
    const char *const *texts[] = {&from->run_id, &from->task,     &from->model,
                                  &from->agent,  &from->mode,     &from->status,
                                  &from->egress, &from->language, &from->project,
                                  &from->started_at};
    size_t size = sizeof *from;
    struct finished_run *r;
    char *at;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        size += *texts[i] != NULL ? strlen(*texts[i]) + 1 : 0;
    r = malloc(size);
    if (r == NULL)
        return NULL;
    *r = *from;
    at = (char *)(r + 1);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t offset = (size_t)((const char *)texts[i] - (const char *)from);

        if (*texts[i] == NULL)
            continue;
        *(const char **)((char *)r + offset) = at;
        at = stpcpy(at, *texts[i]) + 1;
    }
    return r;
}

/* Blank `word` at `at` into an empty array, which no field takes for a value. */
static size_t
blank_word(char *at, size_t left, const char *word)
{
    size_t n = strlen(word);

    if (left < n || memcmp(at, word, n) != 0)
        return 0;
    memset(at, ' ', n);
    memcpy(at, "[]", 2);
    return n;
}

/* Python's json writes and reads NaN, Infinity and -Infinity, so a summary may hold them. */
static void
blank_python_numbers(char *bytes, size_t len)
{
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\\' && in_string)
            i++;
        else if (bytes[i] == '"')
            in_string = !in_string;
        else if (!in_string && blank_word(bytes + i, len - i, "NaN") == 0 &&
                 blank_word(bytes + i, len - i, "-Infinity") == 0)
            blank_word(bytes + i, len - i, "Infinity");
    }
}

/* A summary as the command reads it (contract 2.10), or NULL. */
static struct json_doc *
parse_summary(const char *bytes, size_t len)
{
    struct json_doc *doc;
    char *copy;

    /* Ill-formed UTF-8 is replaced elsewhere; the command drops such a summary as a whole. */
    if (len > LIMIT_SUMMARY || !utf8_valid(bytes, len))
        return NULL;
    doc = json_parse(bytes, len, false, NULL);
    if (doc != NULL || len == 0)
        return doc;
    copy = malloc(len);
    if (copy == NULL)
        return NULL;
    memcpy(copy, bytes, len);
    blank_python_numbers(copy, len);
    doc = json_parse(copy, len, false, NULL);
    free(copy);
    return doc;
}

struct finished_run *
summary_read(const char *bytes, size_t len, const char *dir, size_t dir_len)
{
    struct json_doc *doc = parse_summary(bytes, len);
    const struct json_value *root = json_root(doc);
    const struct json_value *task = json_get(root, "task");
    struct finished_run run = {0}, *result = NULL;
    char id[POLICY_RUN_ID_MAX + 1];

    run.task = short_text(json_get(task, "id"));
    if (run.task != NULL && *run.task != '\0' &&
        read_id(root, dir, dir_len, id, &run.named)) {
        run.run_id = id;
        run.language = short_text(json_get(task, "language"));
        run.project = short_text(json_get(task, "project"));
        run.started_at = short_text(json_get(root, "started_at"));
        run.spend = dollars(json_get(root, "spend"));
        read_config(&run, json_get(root, "config"));
        read_outcome(&run, root);
        result = pack(&run);
    }
    json_doc_free(doc);
    return result;
}

enum grade
summary_read_result(const char *bytes, size_t len, int32_t *ret_duration)
{
    struct json_doc *doc = parse_summary(bytes, len);
    struct finished_run run = {0};

    read_outcome(&run, json_root(doc));
    json_doc_free(doc);
    *ret_duration = run.duration;
    return (enum grade)run.grade;
}
