/* A growing byte string whose first error sticks. */
#include "common/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST 256u

void
buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void
buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}

void
buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = false;
}

char *
buf_reserve(struct buf *b, size_t len)
{
    size_t need, cap;
    char *data;

    if (b->failed || len > SIZE_MAX / 2 - b->len - 1 ||
        (b->max != 0 && b->len + len > b->max)) {
        b->failed = true;
        return NULL;
    }
    need = b->len + len + 1; /* the NUL */
    if (need <= b->cap)
        return b->data + b->len;
    cap = b->cap < BUF_FIRST ? BUF_FIRST : b->cap;
    while (cap < need)
        cap *= 2;
    data = realloc(b->data, cap);
    if (data == NULL) {
        b->failed = true;
        return NULL;
    }
    b->data = data;
    b->cap = cap;
    return data + b->len;
}

void
buf_commit(struct buf *b, size_t len)
{
    b->len += len;
    b->data[b->len] = '\0';
}

void
buf_add(struct buf *b, const void *bytes, size_t len)
{
    char *at = buf_reserve(b, len);

    if (at == NULL)
        return;
    if (len > 0)
        memcpy(at, bytes, len);
    buf_commit(b, len);
}

void
buf_add_str(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

void
buf_add_format(struct buf *b, const char *format, ...)
{
    va_list args;
    char *at;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) {
        b->failed = true;
        return;
    }
    at = buf_reserve(b, (size_t)n);
    if (at == NULL)
        return;
    va_start(args, format);
    vsnprintf(at, (size_t)n + 1, format, args);
    va_end(args);
    buf_commit(b, (size_t)n);
}

void
buf_consume(struct buf *b, size_t len)
{
    if (len > b->len)
        len = b->len;
    if (len == 0)
        return;
    memmove(b->data, b->data + len, b->len - len);
    b->len -= len;
    b->data[b->len] = '\0';
}

char *
buf_take(struct buf *b, size_t *ret_len)
{
    char *data = b->failed ? NULL : b->data;

    if (b->failed)
        free(b->data);
    else if (data == NULL)
        data = calloc(1, 1); /* empty, yet a string */
    *ret_len = data != NULL ? b->len : 0;
    *b = (struct buf){.max = b->max};
    return data;
}
