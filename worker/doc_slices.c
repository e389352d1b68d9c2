/* Values of a JSON file, found by their place and copied out. */
#include "worker/doc_slices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/utf8.h"
#include "worker/body_scan.h"
#include "worker/dialog_read.h"
#include "worker/file_slice.h"

#define SLICE (64u * 1024u)
#define PIECES 16u

/* Of the document: constant text, or bytes of the file. */
struct piece {
    const char *text;    /* NULL: the file's */
    uint64_t start, end;
    bool strings;        /* an array, of which only the strings are taken */
};

struct doc_slices {
    int fd;
    enum doc_slices_kind kind;
    unsigned pass;
    uint64_t offset, end;      /* of the pass: what is looked at */
    uint64_t base;             /* where it began */
    struct body_scan scan;
    struct piece pieces[PIECES];
    unsigned n_pieces, at;
    uint64_t copied;           /* of the piece at hand */
    unsigned depth, n_strings; /* in an array of strings */
    bool in_string, escape;
};

/* --- looking ------------------------------------------------------------------------------- */

static const char *const result_members[] = {"patch_result", "runtime_result"};
static const char *const summary_members[] = {"task"};
static const char *const task_members[] = {"id",     "project",          "language",
                                           "source", "task_description", "files"};
static const char *const files_members[] = {"poc"};

static const struct {
    const char *const *members;
    unsigned n;
} passes[2][3] = {
    [DOC_RESULT] = {{result_members, 2}},
    [DOC_PROJECT] = {{summary_members, 1}, {task_members, 6}, {files_members, 1}},
};

static void
begin_pass(struct doc_slices *d, uint64_t start, uint64_t end)
{
    d->base = d->offset = start;
    d->end = end;
    body_scan_begin(&d->scan, passes[d->kind][d->pass].members,
                    passes[d->kind][d->pass].n);
}

struct doc_slices *
doc_slices_new(int fd, uint64_t size, enum doc_slices_kind kind)
{
    struct doc_slices *d = calloc(1, sizeof *d);

    if (d == NULL) {
        close(fd);
        return NULL;
    }
    d->fd = fd;
    d->kind = kind;
    begin_pass(d, 0, size);
    return d;
}

void
doc_slices_free(struct doc_slices *d)
{
    if (d == NULL)
        return;
    close(d->fd);
    free(d);
}

void
doc_slices_done(void *d)
{
    doc_slices_free(d);
}

static void
add_text(struct doc_slices *d, const char *text)
{
    d->pieces[d->n_pieces++] = (struct piece){.text = text};
}

static void
add_value(struct doc_slices *d, const struct body_value *v)
{
    d->pieces[d->n_pieces++] =
        (struct piece){.start = d->base + v->start, .end = d->base + v->end};
}

/* A value of this kind, or what stands in for it. */
static void
add_member(struct doc_slices *d, const char *name, const struct body_value *v, char kind,
           const char *otherwise)
{
    add_text(d, name);
    if (v->kind == kind)
        add_value(d, v);
    else
        add_text(d, otherwise);
}

static int
found_result(struct doc_slices *d)
{
    const struct body_value *v = d->scan.value;

    if (v[0].kind != '{' || v[1].kind != '{')
        return -EBADMSG;
    add_text(d, "{\"available\":true,\"patch_result\":");
    add_value(d, &v[0]);
    add_text(d, ",\"runtime_result\":");
    add_value(d, &v[1]);
    add_text(d, "}");
    return 0;
}

static int
found_task(struct doc_slices *d)
{
    const struct body_value *v = d->scan.value;
    uint64_t base = d->base;

    if (v[0].kind != '"')
        return -EBADMSG;
    add_member(d, "{\"id\":", &v[0], '"', "");
    add_member(d, ",\"project\":", v[1].kind == '"' ? &v[1] : &v[0], '"', "");
    add_member(d, ",\"language\":", &v[2], '"', "\"\"");
    add_member(d, ",\"source\":", &v[3], '"', "\"\"");
    add_member(d, ",\"task_description\":", &v[4], '{', "{}");
    add_text(d, ",\"poc\":");
    if (v[5].kind != '{') {
        add_text(d, "[]}");
        return 0;
    }
    d->pass = 2;
    begin_pass(d, base + v[5].start, base + v[5].end);
    return 1;
}

static int
end_pass(struct doc_slices *d)
{
    const struct body_value *v = d->scan.value;

    if (!body_scan_end(&d->scan))
        return -EBADMSG;
    if (d->kind == DOC_RESULT)
        return found_result(d);
    if (d->pass == 0) {
        if (v->kind != '{')
            return -EBADMSG;
        d->pass = 1;
        begin_pass(d, v->start, v->end);
        return 1;
    }
    if (d->pass == 1)
        return found_task(d);
    add_member(d, "", v, '[', "[]");
    d->pieces[d->n_pieces - 1].strings = v->kind == '[';
    add_text(d, "}");
    return 0;
}

static size_t
at_most(uint64_t left)
{
    return left < SLICE ? (size_t)left : SLICE;
}

int
doc_slices_look(struct doc_slices *d)
{
    static char slice[SLICE]; /* one thread, used up before the return */
    int64_t n = 0;

    if (d->offset < d->end)
        n = file_slice_read(d->fd, slice, at_most(d->end - d->offset), d->offset);
    if (n < 0)
        return (int)n;
    if (n == 0)
        return end_pass(d);
    body_scan_feed(&d->scan, slice, (size_t)n);
    d->offset += (uint64_t)n;
    return 1;
}

/* --- copying -------------------------------------------------------------------------------- */

/* Only strings that are elements of the array itself. */
static void
add_strings(struct doc_slices *d, const char *bytes, size_t len, struct buf *out)
{
    size_t from = 0;

    for (size_t i = 0; i < len; i++) {
        bool wanted = d->depth == 1 && d->in_string;

        if (d->in_string) {
            bool ends = !d->escape && bytes[i] == '"';

            d->escape = !d->escape && bytes[i] == '\\';
            d->in_string = !ends;
            if (wanted && ends)
                dialog_add_clean(out, bytes + from, i + 1 - from);
        } else if (bytes[i] == '"') {
            d->in_string = true;
            from = i;
            if (d->depth == 1 && d->n_strings++ > 0)
                buf_add(out, ",", 1);
        } else if (bytes[i] == '[' || bytes[i] == '{') {
            if (d->depth++ == 0)
                buf_add(out, "[", 1);
        } else if ((bytes[i] == ']' || bytes[i] == '}') && --d->depth == 0) {
            buf_add(out, "]", 1);
        }
    }
    if (d->depth == 1 && d->in_string)
        dialog_add_clean(out, bytes + from, len - from);
}

/* An agent that rewrites the file in between spoils the document of its own run. */
static int
copy_slice(struct doc_slices *d, const struct piece *p, struct buf *out)
{
    static char slice[SLICE];
    uint64_t at = p->start + d->copied;
    int64_t n = file_slice_read(d->fd, slice, at_most(p->end - at), at);
    size_t hold;

    if (n <= 0)
        return -EIO; /* it shrank */
    hold = utf8_incomplete_tail(slice, (size_t)n);
    if (at + (uint64_t)n >= p->end || hold == (size_t)n)
        hold = 0;
    if (p->strings)
        add_strings(d, slice, (size_t)n - hold, out);
    else
        dialog_add_clean(out, slice, (size_t)n - hold);
    d->copied += (uint64_t)n - hold;
    return 0;
}

int
doc_slices_fill(void *ctx, struct buf *out)
{
    struct doc_slices *d = ctx;
    size_t before = out->len;

    while (d->at < d->n_pieces && out->len - before < SLICE) {
        const struct piece *p = &d->pieces[d->at];

        if (p->text != NULL) {
            buf_add_str(out, p->text);
            d->at++;
            continue;
        }
        if (copy_slice(d, p, out) != 0)
            return -EIO;
        if (p->start + d->copied < p->end) {
            if (out->len == before)
                buf_add(out, "\n", 1); /* between two tokens: only an array gives nothing */
            return 1;
        }
        d->copied = 0;
        d->at++;
    }
    return out->len > before;
}
