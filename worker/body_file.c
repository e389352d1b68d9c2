/* Streams over run files: text as a JSON string, a diff's files, a dialog. */
#include "worker/body_file.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/limits.h"
#include "worker/dialog_read.h"
#include "worker/diff_files.h"
#include "worker/file_slice.h"

static const char JSON_TYPE[] = "application/json";

/* --- text ---------------------------------------------------------------------------- */

struct text_body {
    int fd;
    uint64_t size, offset;
    const char *before, *after, *none;
    enum { TEXT_BLANK, TEXT_BEFORE, TEXT_INSIDE, TEXT_OVER } state;
};

/* Is there anything in it? Until that is known blanks are given: JSON may begin with them. */
static int
skip_blank(struct text_body *t, struct buf *out)
{
    static char slice[FILE_SLICE];
    int64_t n = file_slice_read(t->fd, slice, sizeof slice, t->offset);

    if (n < 0)
        return (int)n;
    t->offset += (uint64_t)n;
    if (!file_slice_is_blank(slice, (size_t)n)) {
        t->state = TEXT_BEFORE;
        t->offset = 0;
    } else if (n == 0 || t->offset >= t->size) {
        buf_add_str(out, t->none);
        t->state = TEXT_OVER;
        return 1;
    }
    buf_add(out, "\n", 1);
    return 1;
}

static int
fill_text(void *ctx, struct buf *out)
{
    struct text_body *t = ctx;
    int64_t n;

    if (t->state == TEXT_OVER)
        return 0;
    if (t->state == TEXT_BLANK)
        return skip_blank(t, out);
    if (t->state == TEXT_BEFORE) {
        buf_add_str(out, t->before);
        t->state = TEXT_INSIDE;
    }
    n = file_slice_escape(t->fd, t->size, t->offset, out);
    if (n < 0)
        return (int)n;
    t->offset += (uint64_t)n;
    if (n == 0 || t->offset >= t->size) {
        buf_add_str(out, t->after);
        t->state = TEXT_OVER;
    }
    return 1;
}

static void
done_text(void *ctx)
{
    struct text_body *t = ctx;

    close(t->fd);
    free(t);
}

bool
body_note_new(int fd, uint64_t size, const char *before, const char *after, const char *none,
              struct body_source *ret)
{
    struct text_body *t = malloc(sizeof *t);

    if (t == NULL) {
        close(fd);
        return false;
    }
    *t = (struct text_body){.fd = fd, .size = size, .before = before, .after = after,
                            .none = none, .state = none != NULL ? TEXT_BLANK : TEXT_BEFORE};
    *ret = (struct body_source){fill_text, done_text, t};
    return true;
}

bool
body_text_new(int fd, uint64_t size, const char *before, const char *after,
              struct body_source *ret)
{
    return body_note_new(fd, size, before, after, NULL, ret);
}

/* --- files ---------------------------------------------------------------------------- */

struct files_body {
    int fd;
    uint64_t size, offset;
    uint64_t n_files;
    struct buf *out; /* during fill */
    struct diff_files diff;
    enum { FILES_BEFORE, FILES_INSIDE, FILES_OVER } state;
};

static void
add_file(void *ctx, const struct diff_file *file)
{
    struct files_body *f = ctx;

    if (f->n_files++ > 0)
        buf_add(f->out, ",", 1);
    diff_file_write(f->out, file);
}

static int
fill_files(void *ctx, struct buf *out)
{
    struct files_body *f = ctx;
    static char slice[FILE_SLICE]; /* one thread, used up before the return */
    size_t max = sizeof slice, before = out->len;
    int64_t n;

    if (f->state == FILES_OVER)
        return 0;
    f->out = out;
    if (f->state == FILES_BEFORE)
        buf_add_str(out, "{\"files\":[");
    f->state = FILES_INSIDE;
    if (max > f->size - f->offset)
        max = (size_t)(f->size - f->offset);
    n = max > 0 ? file_slice_read(f->fd, slice, max, f->offset) : 0;
    if (n < 0)
        return (int)n;
    f->offset += (uint64_t)n;
    diff_files_feed(&f->diff, slice, (size_t)n);
    if (n == 0 || f->offset >= f->size) {
        diff_files_end(&f->diff);
        buf_add_str(out, "]}");
        f->state = FILES_OVER;
    }
    if (out->len == before)
        buf_add(out, "\n", 1); /* a blank: no file ended in this slice */
    return 1;
}

static void
done_files(void *ctx)
{
    struct files_body *f = ctx;

    diff_files_done(&f->diff);
    close(f->fd);
    free(f);
}

bool
body_files_new(int fd, uint64_t size, struct body_source *ret)
{
    struct files_body *f = malloc(sizeof *f);

    if (f == NULL) {
        close(fd);
        return false;
    }
    *f = (struct files_body){.fd = fd, .size = size};
    diff_files_init(&f->diff, add_file, f);
    *ret = (struct body_source){fill_files, done_files, f};
    return true;
}

/* --- dialog ----------------------------------------------------------------------------- */

static int
fill_dialog(void *ctx, struct buf *out)
{
    return dialog_reader_fill(ctx, out);
}

static void
done_dialog(void *ctx)
{
    dialog_reader_free(ctx);
}

bool
body_dialog_new(int fd, uint64_t size, double since, struct body_source *ret)
{
    struct dialog_reader *r = dialog_reader_of_file(fd, size, since);

    if (r == NULL)
        return false;
    *ret = (struct body_source){fill_dialog, done_dialog, r};
    return true;
}

/* --- answering -------------------------------------------------------------------------- */

void
body_answer(struct exchange *x, struct body_source source, uint64_t size)
{
    struct buf body;
    int more = 1;

    if (size > BODY_WHOLE) {
        exchange_stream(x, 200, JSON_TYPE, source);
        return;
    }
    buf_init(&body, 0);
    while (more == 1 && !body.failed)
        more = source.fill(source.ctx, &body);
    source.done(source.ctx);
    if (more == 0) {
        exchange_json(x, 200, &body);
        return;
    }
    buf_done(&body);
    exchange_error(x, 500, "Failed to read the run's files", NULL);
}
