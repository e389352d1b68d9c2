/*
 * Reading JSON that somebody else wrote: a tree in one arena, parsed by yajl, bounded in
 * depth (LIMIT_JSON_DEPTH) and in memory. Invalid UTF-8 inside strings is replaced.
 */
#ifndef COMMON_JSON_READ_H
#define COMMON_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_type {
    JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT
};

struct json_value {
    enum json_type type;
    bool boolean;
    bool is_integer;          /* number written without fraction or exponent, fits int64 */
    int64_t integer;
    double number;
    const char *text;         /* string: NUL-terminated, may hold NULs inside; number: as written */
    size_t len;               /* string: bytes; array, object: members */
    struct json_value *first; /* array, object: first member */
    struct json_value *next;  /* next member of the same parent */
    const char *key;          /* object member's name */
    size_t key_len;
};

struct json_doc; /* owns every value */

/* Parse exactly one value (blanks around it allowed). `strict` refuses duplicate keys and
 * NUL in names (client bodies); otherwise the last duplicate wins, as in JavaScript. Returns
 * the document, or NULL: `ret_error` (may be NULL) gets a constant reason, errno is EBADMSG or, when
 * it is our memory that failed and not the text, ENOMEM. */
struct json_doc *
json_parse(const char *bytes, size_t len, bool strict, const char **ret_error);

const struct json_value *
json_root(const struct json_doc *doc);

void
json_doc_free(struct json_doc *doc);

/* Member of an object, or NULL (also when `v` is NULL or no object). */
const struct json_value *
json_get(const struct json_value *v, const char *name);

/* Text of a string value, or NULL if `v` is NULL or no string, or holds a NUL. */
const char *
json_text(const struct json_value *v);

#endif
