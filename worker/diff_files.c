/* A git diff's files, one pass, any piece size. */
#include "worker/diff_files.h"

#include <string.h>

#include "common/json_write.h"

void
diff_files_init(struct diff_files *d, void (*found)(void *ctx, const struct diff_file *file),
                void *ctx)
{
    *d = (struct diff_files){.found = found, .ctx = ctx, .line_start = true};
    buf_init(&d->line, 0); /* bounded by feed_line */
    buf_init(&d->path, DIFF_FILES_LINE);
    buf_init(&d->held_path, DIFF_FILES_LINE);
}

void
diff_files_done(struct diff_files *d)
{
    buf_done(&d->line);
    buf_done(&d->path);
    buf_done(&d->held_path);
}

static void
tell_held(struct diff_files *d)
{
    if (!d->has_held)
        return;
    d->has_held = false;
    d->held.path = d->held_path.data;
    d->held.path_len = d->held_path.len;
    if (d->held_path.len > 0)
        d->found(d->ctx, &d->held);
}

/* The file at hand is complete: hold it until its successor's path is known. */
static void
close_file(struct diff_files *d)
{
    struct buf path = d->path;

    if (!d->open)
        return;
    d->open = false;
    if (d->has_held && path.len == d->held_path.len && path.len > 0 &&
        memcmp(path.data, d->held_path.data, path.len) == 0) {
        d->held.additions += d->file.additions;
        d->held.deletions += d->file.deletions;
        d->held.binary |= d->file.binary;
        d->held.status = DIFF_MODIFIED;
        return;
    }
    tell_held(d);
    d->path = d->held_path;
    d->held_path = path;
    d->held = d->file;
    d->has_held = true;
}

static void
set_path(struct diff_files *d, const char *text, size_t len)
{
    buf_reset(&d->path);
    buf_add(&d->path, text, len);
}

static int
unescape_octal(const char *at, const char *end, unsigned char *ret_byte)
{
    unsigned value = 0;

    if (end - at < 3)
        return 0;
    for (int i = 0; i < 3; i++) {
        if (at[i] < '0' || at[i] > '7')
            return 0;
        value = value * 8 + (unsigned)(at[i] - '0');
    }
    *ret_byte = (unsigned char)value;
    return 3;
}

/* git's C quoting: from the opening quote; returns what follows the closing one, or NULL. */
static const char *
unquote(const char *at, const char *end, struct buf *out)
{
    static const char letters[] = "abtnvfr\"\\";
    static const char values[] = "\a\b\t\n\v\f\r\"\\";

    for (at++; at < end && *at != '"'; at++) {
        unsigned char byte = (unsigned char)*at;
        const char *letter;
        int n;

        if (byte == '\\' && ++at < end) {
            n = unescape_octal(at, end, &byte);
            letter = n == 0 && *at != '\0' ? strchr(letters, *at) : NULL;
            if (n > 0)
                at += n - 1;
            else if (letter != NULL)
                byte = (unsigned char)values[letter - letters];
            else
                return NULL;
        }
        buf_add(out, &byte, 1);
    }
    return at < end ? at + 1 : NULL;
}

/* Without its one-letter prefix ("b/x" -> "x"), which `git diff` puts there. */
static void
drop_prefix(struct buf *path)
{
    if (path->len > 2 && path->data[1] == '/')
        buf_consume(path, 2);
}

/* Both names unquoted. When they are the same name, the middle tells where one ends even if
 * it holds blanks; else the last " b/" is a first guess that `rename to` corrects. */
static void
split_plain(struct diff_files *d, const char *text, size_t len)
{
    size_t half = len / 2;
    const char *second = text + half + 1;
    const char *guess = NULL;

    if (len % 2 == 1 && half > 0 && text[half] == ' ') {
        bool prefixed = half > 2 && text[1] == '/' && second[1] == '/' &&
                        text[0] != second[0] && memcmp(text + 2, second + 2, half - 2) == 0;

        if (prefixed || memcmp(text, second, half) == 0) {
            set_path(d, prefixed ? second + 2 : second, prefixed ? half - 2 : half);
            d->path_sure = true;
            return;
        }
    }
    for (size_t i = 0; i + 3 < len; i++)
        if (memcmp(text + i, " b/", 3) == 0)
            guess = text + i + 3;
    if (guess != NULL)
        set_path(d, guess, (size_t)(text + len - guess));
}

/* What stands behind "diff --git ". */
static void
read_names(struct diff_files *d, const char *text, size_t len)
{
    const char *end = text + len;
    const char *second = NULL;

    buf_reset(&d->path);
    d->path_sure = false;
    if (len == 0)
        return;
    if (text[0] == '"') {
        second = unquote(text, end, &d->path);
        second = second != NULL && second < end && *second == ' ' ? second + 1 : NULL;
    } else if (end[-1] == '"') {
        second = memmem(text, len, " \"", 2);
        second = second != NULL ? second + 1 : NULL;
    } else {
        split_plain(d, text, len);
        return;
    }
    buf_reset(&d->path);
    if (second == NULL || second >= end)
        return;
    if (*second == '"')
        d->path_sure = unquote(second, end, &d->path) == end;
    else
        buf_add(&d->path, second, (size_t)(end - second));
    drop_prefix(&d->path);
}

/* A name that has a header line of its own. `+++` lines carry a prefix and, when the name
 * holds blanks, a tab at their end. */
static void
read_name(struct diff_files *d, const char *text, size_t len, bool prefixed)
{
    if (len > 0 && text[0] == '"') {
        buf_reset(&d->path);
        unquote(text, text + len, &d->path);
    } else {
        if (prefixed && len > 0 && text[len - 1] == '\t')
            len--;
        set_path(d, text, len);
    }
    if (prefixed)
        drop_prefix(&d->path);
    d->path_sure = true;
}

static bool
starts(const struct buf *line, const char *with)
{
    size_t len = strlen(with);

    return line->len >= len && memcmp(line->data, with, len) == 0;
}

static void
open_file(struct diff_files *d)
{
    close_file(d);
    d->open = true;
    d->in_hunk = false;
    d->file = (struct diff_file){.status = DIFF_MODIFIED};
    read_names(d, d->line.data + 11, d->line.len - 11);
}

/* A whole header line (outside hunks, or one that begins with 'd' or '@' inside). */
static void
take_line(struct diff_files *d)
{
    struct buf *line = &d->line;

    if (line->len > 0 && line->data[line->len - 1] == '\r')
        line->len--; /* a real CR in a name would be quoted */
    if (starts(line, "diff --git "))
        open_file(d);
    else if (!d->open || d->in_hunk)
        return;
    else if (starts(line, "@@"))
        d->in_hunk = true;
    else if (starts(line, "new file mode"))
        d->file.status = DIFF_ADDED;
    else if (starts(line, "deleted file mode"))
        d->file.status = DIFF_DELETED;
    else if (starts(line, "rename from "))
        d->file.status = DIFF_RENAMED;
    else if (starts(line, "copy from "))
        d->file.status = DIFF_COPIED;
    else if (starts(line, "rename to "))
        read_name(d, line->data + 10, line->len - 10, false);
    else if (starts(line, "copy to "))
        read_name(d, line->data + 8, line->len - 8, false);
    else if (starts(line, "+++ ") && !d->path_sure && !starts(line, "+++ /dev/null"))
        read_name(d, line->data + 4, line->len - 4, true);
    else if (starts(line, "GIT binary patch") || starts(line, "Binary files "))
        d->file.binary = true;
}

/* Does a line inside hunks that begins with this byte need no more than counting? A content
 * line begins with '+', '-', ' ' or '\'; only "diff --git" ends the hunks. */
static bool
count_line(struct diff_files *d, char first)
{
    if (!d->open || !d->in_hunk)
        return false;
    d->file.additions += first == '+';
    d->file.deletions += first == '-';
    return first != 'd';
}

void
diff_files_feed(struct diff_files *d, const char *bytes, size_t len)
{
    const char *end = bytes + len;

    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *stop = newline != NULL ? newline : end;
        size_t n = (size_t)(stop - bytes);

        if (d->line_start && n > 0) {
            d->line_start = false;
            d->line_plain = count_line(d, *bytes);
        }
        if (!d->line_plain && d->line.len < DIFF_FILES_LINE) {
            size_t room = DIFF_FILES_LINE - d->line.len;

            buf_add(&d->line, bytes, n < room ? n : room);
        }
        if (newline == NULL)
            return;
        if (!d->line_plain && !d->line.failed)
            take_line(d);
        buf_reset(&d->line);
        d->line_start = true;
        d->line_plain = false;
        bytes = newline + 1;
    }
}

void
diff_files_end(struct diff_files *d)
{
    if (!d->line_plain && d->line.len > 0 && !d->line.failed)
        take_line(d);
    buf_reset(&d->line);
    close_file(d);
    tell_held(d);
}

const char *
diff_status_name(enum diff_status status)
{
    switch (status) {
    case DIFF_ADDED:
    case DIFF_COPIED: /* clients know no fifth word; a copy is a new file */
        return "added";
    case DIFF_DELETED:
        return "deleted";
    case DIFF_RENAMED:
        return "renamed";
    case DIFF_MODIFIED:
        break;
    }
    return "modified";
}

void
diff_file_write(struct buf *out, const struct diff_file *file)
{
    struct json_writer w;

    json_begin(&w, out);
    json_object_open(&w);
    json_key(&w, "path");
    json_string(&w, file->path, file->path_len);
    json_key(&w, "status");
    json_cstring(&w, diff_status_name(file->status));
    json_key(&w, "additions");
    json_int(&w, (int64_t)file->additions);
    json_key(&w, "deletions");
    json_int(&w, (int64_t)file->deletions);
    if (file->binary) {
        json_key(&w, "binary");
        json_bool(&w, true);
    }
    json_object_close(&w);
}
