/*
 * Small files of our own writing, kept durably: JSON for people and tools, one member a line,
 * read back only if every byte is what this module would have written. So no JSON parser is
 * needed, and a torn, edited or foreign file is told from a whole one.
 */
#ifndef BROKER_RECORD_H
#define BROKER_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#define RECORD_SIZE_MAX 32768u /* bytes of one file */

enum record_kind {
    RECORD_INT,  /* int64_t */
    RECORD_TEXT, /* char[size], NUL-terminated; any bytes */
};

/* One member, in the order of the file. */
struct record_field {
    const char *name;
    enum record_kind kind;
    size_t offset, size;
};

#define RECORD_INT_OF(type, member) \
    {#member, RECORD_INT, offsetof(struct type, member), sizeof(int64_t)}
#define RECORD_TEXT_OF(type, member) \
    {#member, RECORD_TEXT, offsetof(struct type, member), sizeof(((struct type *)0)->member)}

struct buf;

/* Append the file's text. */
void
record_format(const struct record_field *fields, size_t n, const void *record,
              struct buf *out);

/* Read a file's text into `ret_record` (untouched on failure; `size` bytes of it). 0 or
 * -EBADMSG. */
int
record_parse(const struct record_field *fields, size_t n, const char *text, size_t len,
             void *ret_record, size_t size);

/* Write `name` in the directory: a new file, fsync, rename, fsync of the directory. 0 or
 * -errno: the former file stands. */
int
record_save(int dir_fd, const char *name, const struct record_field *fields, size_t n,
            const void *record);

/* Read `name`. 0; -ENOENT; -EBADMSG: torn, altered or of another version; another -errno. */
int
record_load(int dir_fd, const char *name, const struct record_field *fields, size_t n,
            void *ret_record, size_t size);

#endif
