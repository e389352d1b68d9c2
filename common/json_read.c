/* A JSON tree in one arena: yajl reads the bytes, this file bounds and keeps them. */
#include "common/json_read.h"

#include <errno.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "common/limits.h"
#include "common/utf8.h"

#define ARENA_CHUNK (16u * 1024u)
#define STRICT_MEMBERS 256u /* of one object in a client's body: the check is quadratic */

static const char out_of_memory[] = "out of memory";

struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

struct json_doc {
    struct chunk *chunks;
    struct json_value *root;
};

/* What yajl allocated and has not freed. */
struct block {
    struct block *next, **link;
    _Alignas(16) char bytes[];
};

/* State while yajl calls back. The first error stays. */
struct reader {
    jmp_buf no_memory; /* out of yajl */
    struct block *blocks;
    struct json_doc *doc;
    struct json_value *open[LIMIT_JSON_DEPTH]; /* containers we are inside of */
    struct json_value *last[LIMIT_JSON_DEPTH]; /* their newest member */
    unsigned depth;
    const char *key; /* of the member to come */
    size_t key_len;
    bool strict;
    const char *error;
};

static void *
arena_get(struct json_doc *doc, size_t size)
{
    struct chunk *c = doc->chunks;

    size = (size + 15u) & ~(size_t)15u;
    if (c == NULL || c->size - c->used < size) {
        size_t room = size > ARENA_CHUNK ? size : ARENA_CHUNK;

        c = malloc(sizeof *c + room);
        if (c == NULL)
            return NULL;
        c->next = doc->chunks;
        c->used = 0;
        c->size = room;
        doc->chunks = c;
    }
    c->used += size;
    return c->bytes + c->used - size;
}

static int
fail(struct reader *r, const char *error)
{
    if (r->error == NULL)
        r->error = error;
    return 0; /* yajl: cancel */
}

/* Copy text into the arena with ill-formed UTF-8 replaced: at most three bytes for one. */
static char *
keep_text(struct reader *r, const char *text, size_t len, size_t *ret_len)
{
    bool valid = utf8_valid(text, len);
    char *copy = arena_get(r->doc, (valid ? len : 3 * len) + 1);
    size_t n = 0;

    if (copy == NULL)
        return NULL;
    if (valid) {
        memcpy(copy, text, len);
        n = len;
    }
    for (size_t i = 0; !valid && i < len;) {
        size_t seq = utf8_sequence(text + i, len - i);

        if (seq > 0) {
            memcpy(copy + n, text + i, seq);
            n += seq;
            i += seq;
        } else {
            memcpy(copy + n, UTF8_REPLACEMENT, 3);
            n += 3;
            i += utf8_bad_prefix(text + i, len - i);
        }
    }
    copy[n] = '\0';
    *ret_len = n;
    return copy;
}

/* Hang a new value under the container that is open, or make it the root. */
static struct json_value *
add_value(struct reader *r, enum json_type type)
{
    struct json_value *v = arena_get(r->doc, sizeof *v);

    if (v == NULL) {
        fail(r, out_of_memory);
        return NULL;
    }
    *v = (struct json_value){.type = type};
    if (r->depth == 0) {
        r->doc->root = v;
        return v;
    }
    v->key = r->key;
    v->key_len = r->key_len;
    r->key = NULL;
    r->key_len = 0;
    if (r->last[r->depth - 1] == NULL)
        r->open[r->depth - 1]->first = v;
    else
        r->last[r->depth - 1]->next = v;
    r->last[r->depth - 1] = v;
    r->open[r->depth - 1]->len++;
    return v;
}

static int
on_null(void *ctx)
{
    return add_value(ctx, JSON_NULL) != NULL;
}

static int
on_boolean(void *ctx, int value)
{
    struct json_value *v = add_value(ctx, JSON_BOOL);

    if (v == NULL)
        return 0;
    v->boolean = value != 0;
    return 1;
}

static int
on_number(void *ctx, const char *text, size_t len)
{
    struct reader *r = ctx;
    struct json_value *v = add_value(r, JSON_NUMBER);
    char *copy;

    if (v == NULL)
        return 0;
    copy = keep_text(r, text, len, &v->len);
    if (copy == NULL)
        return fail(r, out_of_memory);
    v->text = copy;
    v->number = strtod(copy, NULL);
    if (strpbrk(copy, ".eE") == NULL) {
        errno = 0;
        v->integer = strtoll(copy, NULL, 10);
        v->is_integer = errno == 0;
    }
    return 1;
}

static int
on_string(void *ctx, const unsigned char *text, size_t len)
{
    struct reader *r = ctx;
    struct json_value *v = add_value(r, JSON_STRING);

    if (v == NULL)
        return 0;
    v->text = keep_text(r, (const char *)text, len, &v->len);
    return v->text != NULL ? 1 : fail(r, out_of_memory);
}

static int
open_container(struct reader *r, enum json_type type)
{
    struct json_value *v;

    if (r->depth == LIMIT_JSON_DEPTH)
        return fail(r, "nested too deeply");
    v = add_value(r, type);
    if (v == NULL)
        return 0;
    r->open[r->depth] = v;
    r->last[r->depth] = NULL;
    r->depth++;
    return 1;
}

static int
on_object(void *ctx)
{
    return open_container(ctx, JSON_OBJECT);
}

static int
on_array(void *ctx)
{
    return open_container(ctx, JSON_ARRAY);
}

static int
on_close(void *ctx)
{
    struct reader *r = ctx;

    r->depth--;
    return 1;
}

static bool
has_key(const struct json_value *object, const char *key, size_t len)
{
    for (const struct json_value *m = object->first; m != NULL; m = m->next)
        if (m->key_len == len && memcmp(m->key, key, len) == 0)
            return true;
    return false;
}

static int
on_key(void *ctx, const unsigned char *text, size_t len)
{
    struct reader *r = ctx;
    const struct json_value *object = r->open[r->depth - 1];

    r->key = keep_text(r, (const char *)text, len, &r->key_len);
    if (r->key == NULL)
        return fail(r, out_of_memory);
    if (!r->strict)
        return 1;
    if (memchr(r->key, '\0', r->key_len) != NULL)
        return fail(r, "a name holds a NUL");
    if (object->len >= STRICT_MEMBERS)
        return fail(r, "too many members");
    if (has_key(object, r->key, r->key_len))
        return fail(r, "a name stands twice");
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_close,
    .yajl_start_array = on_array,
    .yajl_end_array = on_close,
};

/* --- yajl looks at none of the addresses that it is given, so it is never given NULL ---------- */

static void
block_insert(struct reader *r, struct block *b)
{
    b->next = r->blocks;
    b->link = &r->blocks;
    if (b->next != NULL)
        b->next->link = &b->next;
    r->blocks = b;
}

static void
block_remove(struct block *b)
{
    *b->link = b->next;
    if (b->next != NULL)
        b->next->link = b->link;
}

static void
yajl_gives_back(void *ctx, void *old)
{
    struct block *b = old != NULL ? (struct block *)((char *)old - offsetof(struct block, bytes))
                                  : NULL;

    if (b == NULL)
        return;
    block_remove(b);
    free(b);
}

/* A failure leaves the block where it was, to be freed with all others. */
static void *
yajl_resizes(void *ctx, void *old, size_t size)
{
    struct reader *r = ctx;
    struct block *b = old != NULL ? (struct block *)((char *)old - offsetof(struct block, bytes))
                                  : NULL;
    struct block *grown;

    if (b != NULL)
        block_remove(b);
    grown = realloc(b, sizeof *b + size);
    if (grown == NULL && b != NULL)
        block_insert(r, b);
    if (grown == NULL)
        longjmp(r->no_memory, 1);
    block_insert(r, grown);
    return grown->bytes;
}

static void *
yajl_takes(void *ctx, size_t size)
{
    return yajl_resizes(ctx, NULL, size);
}

static void
read_all(struct reader *r, const char *bytes, size_t len)
{
    yajl_alloc_funcs memory = {yajl_takes, yajl_resizes, yajl_gives_back, r};
    yajl_handle yajl;

    if (setjmp(r->no_memory) != 0) {
        fail(r, out_of_memory);
        return;
    }
    yajl = yajl_alloc(&callbacks, &memory, r);
    yajl_config(yajl, yajl_dont_validate_strings, r->strict ? 0 : 1);
    if (yajl_parse(yajl, (const unsigned char *)bytes, len) != yajl_status_ok ||
        yajl_complete_parse(yajl) != yajl_status_ok || r->doc->root == NULL)
        fail(r, "not JSON");
}

struct json_doc *
json_parse(const char *bytes, size_t len, bool strict, const char **ret_error)
{
    struct json_doc *doc = calloc(1, sizeof *doc);
    struct reader r = {.doc = doc, .strict = strict};

    if (doc == NULL)
        r.error = out_of_memory;
    else
        read_all(&r, bytes, len);
    while (r.blocks != NULL)
        yajl_gives_back(NULL, r.blocks->bytes);
    if (r.error != NULL) {
        json_doc_free(doc);
        doc = NULL;
        if (ret_error != NULL)
            *ret_error = r.error;
        errno = r.error == out_of_memory ? ENOMEM : EBADMSG;
    }
    return doc;
}

const struct json_value *
json_root(const struct json_doc *doc)
{
    return doc != NULL ? doc->root : NULL;
}

void
json_doc_free(struct json_doc *doc)
{
    if (doc == NULL)
        return;
    while (doc->chunks != NULL) {
        struct chunk *c = doc->chunks;

        doc->chunks = c->next;
        free(c);
    }
    free(doc);
}

const struct json_value *
json_get(const struct json_value *v, const char *name)
{
    const struct json_value *found = NULL;
    size_t len = strlen(name);

    if (v == NULL || v->type != JSON_OBJECT)
        return NULL;
    for (const struct json_value *m = v->first; m != NULL; m = m->next)
        if (m->key_len == len && memcmp(m->key, name, len) == 0)
            found = m; /* the last one wins, as in JavaScript */
    return found;
}

const char *
json_text(const struct json_value *v)
{
    if (v == NULL || v->type != JSON_STRING || strlen(v->text) != v->len)
        return NULL;
    return v->text;
}
