/* Rendering JSON into a buf: commas and escapes are ours, nesting is the caller's. */
#ifndef COMMON_JSON_WRITE_H
#define COMMON_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

struct json_value;

struct json_writer {
    struct buf *out; /* borrowed */
    bool comma;      /* the next value needs one before it */
};

void
json_begin(struct json_writer *w, struct buf *out);

void
json_object_open(struct json_writer *w);
void
json_object_close(struct json_writer *w);
void
json_array_open(struct json_writer *w);
void
json_array_close(struct json_writer *w);

/* A member's name; the next call writes its value. */
void
json_key(struct json_writer *w, const char *name);

/* Text of any bytes: invalid UTF-8 becomes U+FFFD, as a decoder with replacement does. */
void
json_string(struct json_writer *w, const char *text, size_t len);
void
json_cstring(struct json_writer *w, const char *text); /* NULL: null */
void
json_int(struct json_writer *w, int64_t value);
void
json_double(struct json_writer *w, double value); /* shortest form; NaN and infinity: null */
void
json_bool(struct json_writer *w, bool value);
void
json_null(struct json_writer *w);

/* A value that is already JSON. */
void
json_raw(struct json_writer *w, const char *json, size_t len);

/* A parsed value as JSON again. Recursive: the reader bounds the depth. */
void
json_value(struct json_writer *w, const struct json_value *v);

/* Escape only (no quotes), for callers that build strings in pieces. */
void
json_escape(struct buf *out, const char *text, size_t len);

#endif
