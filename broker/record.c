/*
 * Durable records: written whole or not at all, believed only when whole.
 * Distrusts: the disk (full, torn) and whoever edited the files.
 */
#include "broker/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"

static void
format_text(const char *text, size_t size, struct buf *out)
{
    size_t len = strnlen(text, size);

    buf_add(out, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\')
            buf_add_format(out, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            buf_add_format(out, "\\u%04x", c);
        else
            buf_add(out, &text[i], 1);
    }
    buf_add(out, "\"", 1);
}

void
record_format(const struct record_field *fields, size_t n, const void *record,
              struct buf *out)
{
    buf_add_str(out, "{\n");
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)record + fields[i].offset;

        buf_add_format(out, "\"%s\": ", fields[i].name);
        if (fields[i].kind == RECORD_INT)
            buf_add_format(out, "%" PRId64, *(const int64_t *)at);
        else
            format_text(at, fields[i].size, out);
        buf_add_str(out, i + 1 < n ? ",\n" : "\n");
    }
    buf_add_str(out, "}\n");
}

/* Leniently: what is not exactly ours fails the comparison afterwards. */
static int
parse_text(const char **at, const char *end, char *into, size_t size)
{
    size_t len = 0;
    const char *p = *at;

    if (p == end || *p++ != '"')
        return -EBADMSG;
    while (p < end && *p != '"') {
        char c = *p++;

        if (c == '\\' && p < end && *p == 'u' && end - p >= 5) {
            char digits[5] = {p[1], p[2], p[3], p[4], '\0'};

            c = (char)strtoul(digits, NULL, 16);
            p += 5;
        } else if (c == '\\' && p < end) {
            c = *p++;
        }
        if (len + 1 >= size)
            return -EBADMSG;
        into[len++] = c;
    }
    if (p == end)
        return -EBADMSG;
    *at = p + 1;
    return 0;
}

static int
parse_field(const struct record_field *field, const char **at, const char *end, void *record)
{
    char *into = (char *)record + field->offset, *after;
    char name[64];
    int n = snprintf(name, sizeof name, "\"%s\": ", field->name);

    if (end - *at < n || memcmp(*at, name, (size_t)n) != 0)
        return -EBADMSG;
    *at += n;
    if (field->kind == RECORD_TEXT)
        return parse_text(at, end, into, field->size);
    errno = 0;
    *(int64_t *)into = strtoll(*at, &after, 10); /* the text ends in a NUL */
    if (errno != 0 || after == *at)
        return -EBADMSG;
    *at = after;
    return 0;
}

static int
parse_all(const struct record_field *fields, size_t n, const char *text, size_t len,
          void *record)
{
    const char *at = text, *end = text + len;

    if (len < 2 || memcmp(at, "{\n", 2) != 0)
        return -EBADMSG;
    at += 2;
    for (size_t i = 0; i < n; i++) {
        int r = parse_field(&fields[i], &at, end, record);

        if (r < 0)
            return r;
        while (at < end && (*at == ',' || *at == '\n'))
            at++;
    }
    return 0;
}

int
record_parse(const struct record_field *fields, size_t n, const char *text, size_t len,
             void *ret_record, size_t size)
{
    void *record = calloc(1, size);
    struct buf again;
    int r = record != NULL ? parse_all(fields, n, text, len, record) : -ENOMEM;

    buf_init(&again, RECORD_SIZE_MAX);
    if (r == 0) {
        record_format(fields, n, record, &again);
        if (again.failed || again.len != len || memcmp(again.data, text, len) != 0)
            r = -EBADMSG;
    }
    if (r == 0)
        memcpy(ret_record, record, size);
    buf_done(&again);
    free(record);
    return r;
}

static int
write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

static int
write_new(int dir_fd, const char *name, const struct buf *text)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r;

    if (fd < 0)
        return -errno;
    r = write_all(fd, text->data, text->len);
    if (r == 0 && fsync(fd) != 0)
        r = -errno;
    close(fd);
    return r;
}

int
record_save(int dir_fd, const char *name, const struct record_field *fields, size_t n,
            const void *record)
{
    char fresh[64];
    struct buf text;
    int r;

    snprintf(fresh, sizeof fresh, "%s.new", name);
    buf_init(&text, RECORD_SIZE_MAX);
    record_format(fields, n, record, &text);
    r = text.failed ? -ENOMEM : write_new(dir_fd, fresh, &text);
    buf_done(&text);
    if (r == 0 && renameat(dir_fd, fresh, dir_fd, name) != 0)
        r = -errno;
    if (r == 0 && fsync(dir_fd) != 0)
        r = -errno;
    if (r < 0)
        unlinkat(dir_fd, fresh, 0);
    return r;
}

int
record_load(int dir_fd, const char *name, const struct record_field *fields, size_t n,
            void *ret_record, size_t size)
{
    char text[RECORD_SIZE_MAX + 1];
    ssize_t len;
    int fd = openat(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    len = read(fd, text, RECORD_SIZE_MAX);
    close(fd);
    if (len < 0)
        return -EIO;
    text[len] = '\0';
    return record_parse(fields, n, text, (size_t)len, ret_record, size);
}
