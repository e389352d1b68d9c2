/* Following the parser's events: no tree is built and no alias is expanded. */
#include "worker/task_yaml.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "common/limits.h"

struct place {
    unsigned depth;    /* open mappings and sequences */
    bool is_key;       /* at depth 1 or 2 of mappings: the next scalar is a key */
    bool in_files;     /* inside the top mapping's `files` */
    bool key_is_files, key_is_patch;
};

static bool
is_text(const yaml_event_t *e, const char *text)
{
    return e->type == YAML_SCALAR_EVENT && e->data.scalar.length == strlen(text) &&
           memcmp(e->data.scalar.value, text, e->data.scalar.length) == 0;
}

static int
take_path(const yaml_event_t *e, char *ret_path, size_t size)
{
    size_t len = e->data.scalar.length;

    if (len == 0 || memchr(e->data.scalar.value, '\0', len) != NULL)
        return -ENOENT;
    if (len >= size)
        return -ENAMETOOLONG;
    memcpy(ret_path, e->data.scalar.value, len);
    ret_path[len] = '\0';
    return 0;
}

/* A key or a value of the top mapping (depth 1) or of `files` (depth 2). 1: go on. */
static int
take_node(struct place *p, const yaml_event_t *e, char *ret_path, size_t size)
{
    bool here = p->depth == 1 || (p->depth == 2 && p->in_files);

    if (!here)
        return 1;
    if (p->is_key) {
        p->key_is_files = p->depth == 1 && is_text(e, "files");
        p->key_is_patch = p->depth == 2 && is_text(e, "patch");
    } else if (p->key_is_patch && p->depth == 2) {
        return e->type == YAML_SCALAR_EVENT ? take_path(e, ret_path, size) : -ENOENT;
    }
    p->is_key = !p->is_key;
    return 1;
}

static int
take_event(struct place *p, const yaml_event_t *e, char *ret_path, size_t size)
{
    int r;

    switch (e->type) {
    case YAML_SCALAR_EVENT:
    case YAML_ALIAS_EVENT:
        return take_node(p, e, ret_path, size);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        r = take_node(p, e, ret_path, size);
        if (r != 1)
            return r;
        if (p->depth == 0 && e->type != YAML_MAPPING_START_EVENT)
            return -ENOENT;
        if (p->depth == 1 && p->key_is_files && p->is_key &&
            e->type == YAML_MAPPING_START_EVENT)
            p->in_files = true;
        if (++p->depth > LIMIT_JSON_DEPTH)
            return -EBADMSG;
        p->is_key = p->depth == 1 || (p->depth == 2 && p->in_files);
        return 1;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        p->depth--;
        if (p->depth == 1)
            p->in_files = false;
        if (p->depth <= 2)
            p->is_key = true; /* a value is over */
        return 1;
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return -ENOENT;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_START_EVENT:
        break;
    }
    return 1;
}

int
task_yaml_patch(const char *bytes, size_t len, char *ret_path, size_t size)
{
    struct place p = {0};
    yaml_parser_t parser;
    yaml_event_t event;
    int r = 1;

    if (!yaml_parser_initialize(&parser))
        return -ENOMEM;
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, len);
    while (r == 1) {
        if (!yaml_parser_parse(&parser, &event)) {
            r = -EBADMSG;
            break;
        }
        r = take_event(&p, &event, ret_path, size);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return r;
}
