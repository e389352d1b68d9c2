/* Project and grade of a finished run, from the files the CLI and the evaluator wrote. */
#include "worker/doc_render.h"

#include <errno.h>
#include <stdbool.h>

#include "common/json_read.h"
#include "common/json_write.h"

static bool
is_type(const struct json_value *v, enum json_type type)
{
    return v != NULL && v->type == type;
}

/* A string member, or what stands in for it. */
static void
write_text_or(struct json_writer *w, const char *key, const struct json_value *v,
              const char *fallback, size_t fallback_len)
{
    json_key(w, key);
    if (is_type(v, JSON_STRING))
        json_string(w, v->text, v->len);
    else
        json_string(w, fallback, fallback_len);
}

static void
write_poc(struct json_writer *w, const struct json_value *poc)
{
    json_array_open(w);
    if (is_type(poc, JSON_ARRAY))
        for (const struct json_value *m = poc->first; m != NULL; m = m->next)
            if (m->type == JSON_STRING)
                json_string(w, m->text, m->len);
    json_array_close(w);
}

int
doc_render_project(const char *bytes, size_t len, struct buf *out)
{
    struct json_doc *doc = json_parse(bytes, len, false, NULL);
    const struct json_value *task = json_get(json_root(doc), "task");
    const struct json_value *id = json_get(task, "id");
    const struct json_value *description = json_get(task, "task_description");
    struct json_writer w;
    int result = -EBADMSG;

    if (is_type(id, JSON_STRING)) {
        json_begin(&w, out);
        json_object_open(&w);
        write_text_or(&w, "id", id, "", 0);
        write_text_or(&w, "project", json_get(task, "project"), id->text, id->len);
        write_text_or(&w, "language", json_get(task, "language"), "", 0);
        write_text_or(&w, "source", json_get(task, "source"), "", 0);
        json_key(&w, "task_description");
        if (is_type(description, JSON_OBJECT))
            json_value(&w, description);
        else
            json_raw(&w, "{}", 2);
        json_key(&w, "poc");
        write_poc(&w, json_get(json_get(task, "files"), "poc"));
        json_object_close(&w);
        result = 0;
    }
    json_doc_free(doc);
    return result;
}

int
doc_render_result(const char *bytes, size_t len, struct buf *out)
{
    struct json_doc *doc = json_parse(bytes, len, false, NULL);
    const struct json_value *patch = json_get(json_root(doc), "patch_result");
    const struct json_value *runtime = json_get(json_root(doc), "runtime_result");
    struct json_writer w;
    int result = -EBADMSG;

    if (is_type(patch, JSON_OBJECT) && is_type(runtime, JSON_OBJECT)) {
        json_begin(&w, out);
        json_object_open(&w);
        json_key(&w, "available");
        json_bool(&w, true);
        json_key(&w, "patch_result");
        json_value(&w, patch);
        json_key(&w, "runtime_result");
        json_value(&w, runtime);
        json_object_close(&w);
        result = 0;
    }
    json_doc_free(doc);
    return result;
}
