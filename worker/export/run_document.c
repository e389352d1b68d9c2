/*
 * One run's document, each part by the rules of the server's route for it: what is missing, no
 * regular file or over 32 MiB reads as the route reads it. In memory bounded by slices, but for
 * the two files that are parsed whole.
 */
#include "worker/export/run_document.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/dialog_read.h"
#include "worker/diff_files.h"
#include "worker/doc_render.h"
#include "worker/export/results.h"
#include "worker/export/site.h"
#include "worker/file_slice.h"
#include "worker/run_render.h"
#include "worker/runs_results.h"

struct document {
    const struct results *results;
    const struct finished_run *run;
    struct site_file *file;
    int error; /* the first failure to read */
};

/* One of the run's files. Descriptor, or -1: none to be shown (`ret_large`: because of its
 * size). */
static int
open_part(struct document *d, const char *name, uint64_t *ret_size, bool *ret_large)
{
    int fd = results_open(d->results, d->run->ref, name, LIMIT_RUN_FILE, ret_size);

    *ret_large = fd == -EFBIG;
    if (fd < 0 && fd != -ENOENT && fd != -EFBIG && d->error == 0)
        d->error = fd;
    return fd < 0 ? -1 : fd;
}

static void
put_str(struct document *d, const char *text)
{
    buf_add_str(&d->file->out, text);
}

/* --- text --------------------------------------------------------------------------------- */

/* The file as the inside of a JSON string. */
static void
put_inside(struct document *d, int fd, uint64_t size)
{
    uint64_t at = 0;

    while (at < size) {
        int64_t n = file_slice_escape(fd, size, at, &d->file->out);

        if (n < 0)
            d->error = (int)n;
        if (n <= 0)
            return;
        at += (uint64_t)n;
        site_file_flush(d->file, false);
    }
}

/* A member that is a file's text, or `none`. */
static void
put_text(struct document *d, const char *before, const char *name, const char *after,
         const char *none, bool want_blank)
{
    uint64_t size = 0;
    bool large;
    int fd = open_part(d, name, &size, &large);

    if (fd < 0 || (!want_blank && file_slice_blank(fd, size))) {
        put_str(d, none);
    } else {
        put_str(d, before);
        put_inside(d, fd, size);
        put_str(d, after);
    }
    if (fd >= 0)
        close(fd);
}

/* --- parsed ------------------------------------------------------------------------------- */

static void
put_rendered(struct document *d, const char *name,
             int (*render)(const char *bytes, size_t len, struct buf *out))
{
    uint64_t size = 0;
    size_t len = 0;
    bool large;
    int fd = open_part(d, name, &size, &large);
    char *bytes = fd >= 0 ? file_slice_whole(fd, size, &len) : NULL;

    if (bytes == NULL || render(bytes, len, &d->file->out) != 0)
        put_str(d, "null");
    free(bytes);
    if (fd >= 0)
        close(fd);
    site_file_flush(d->file, false);
}

/* --- the diff's files ----------------------------------------------------------------------- */

struct files {
    struct document *document;
    uint64_t n;
};

static void
put_file(void *ctx, const struct diff_file *file)
{
    struct files *files = ctx;
    struct buf *out = &files->document->file->out;

    if (files->n++ > 0)
        buf_add(out, ",", 1);
    diff_file_write(out, file);
}

static void
put_files(struct document *d)
{
    static char slice[FILE_SLICE];
    struct files files = {d, 0};
    struct diff_files diff;
    uint64_t size = 0, at = 0;
    bool large;
    int fd = open_part(d, "final.patch", &size, &large);
    int64_t n = 1;

    put_str(d, "[");
    diff_files_init(&diff, put_file, &files);
    while (fd >= 0 && at < size && n > 0) {
        n = file_slice_read(fd, slice, sizeof slice < size - at ? sizeof slice : size - at, at);
        if (n < 0)
            d->error = (int)n;
        if (n > 0)
            diff_files_feed(&diff, slice, (size_t)n);
        at += n > 0 ? (uint64_t)n : 0;
        site_file_flush(d->file, false);
    }
    diff_files_end(&diff);
    diff_files_done(&diff);
    put_str(d, "]");
    if (fd >= 0)
        close(fd);
}

/* --- the dialog ----------------------------------------------------------------------------- */

/* The reader's document is {"entries":[ ... ]} or ends in ],"truncated":true}. Its first slice
 * is the head and its last ends with the tail; here the entries are a member of another. */
static void
copy_dialog(struct document *d, struct dialog_reader *r)
{
    struct buf *out = &d->file->out;
    size_t start = out->len;
    int more = dialog_reader_fill(r, out);

    out->len = start;
    while (more == 1 && !out->failed && d->file->error == 0) {
        site_file_flush(d->file, false);
        more = dialog_reader_fill(r, out);
        if (more == 1 && r->state == DIALOG_OVER && !out->failed) {
            out->len -= strlen(r->truncated ? "],\"truncated\":true}" : "]}");
            return;
        }
    }
    if (more < 0)
        d->error = more;
}

static void
put_dialog(struct document *d)
{
    uint64_t size = 0;
    bool large, truncated;
    int fd = open_part(d, "archive/dialog.jsonl", &size, &large);
    struct dialog_reader *r =
        fd >= 0 ? dialog_reader_new(fd, size, -1, LIMIT_DIALOG_ENTRIES) : NULL;

    if (fd >= 0 && r == NULL)
        d->error = -ENOMEM;
    put_str(d, "[");
    if (r != NULL)
        copy_dialog(d, r);
    truncated = large || (r != NULL && r->truncated);
    put_str(d, truncated ? "],\"dialogTruncated\":true" : "]");
    dialog_reader_free(r);
}

/* --- the logs ------------------------------------------------------------------------------- */

/* One log behind its header, or nothing when it is blank (contract 4.4). True: it was there. */
static bool
put_log(struct document *d, const char *name, const char *header, const char *too_large)
{
    uint64_t size = 0;
    bool large, blank;
    int fd = open_part(d, name, &size, &large);

    blank = fd >= 0 ? file_slice_blank(fd, size) : !large;
    if (!blank) {
        put_str(d, header);
        if (fd >= 0)
            put_inside(d, fd, size);
        else
            put_str(d, too_large);
    }
    if (fd >= 0)
        close(fd);
    return !blank;
}

static void
put_logs(struct document *d)
{
    put_str(d, "\"");
    if (put_log(d, "agent.log", "==> agent.log <==\\n",
                "(agent.log is over 32 MiB and is not shown)"))
        /* An empty line at the end of all is as good as none. */
        put_str(d, "\\n");
    put_log(d, "evaluator.log", "==> evaluator.log <==\\n",
            "(evaluator.log is over 32 MiB and is not shown)");
    put_str(d, "\"");
}

int
run_document_write(const struct results *results, const struct finished_run *run,
                   struct site_file *f)
{
    const struct run_row row = {.done = run};
    struct document d = {results, run, f, 0};
    struct json_writer w;

    put_str(&d, "{\"container\":");
    json_begin(&w, &f->out);
    run_render(&w, &row);
    put_str(&d, ",\n\"project\":");
    put_rendered(&d, "summary.json", doc_render_project);
    put_str(&d, ",\n\"diff\":");
    put_text(&d, "\"", "final.patch", "\"", "null", true);
    put_str(&d, ",\n\"files\":");
    put_files(&d);
    put_str(&d, ",\n\"dialog\":");
    put_dialog(&d);
    put_str(&d, ",\n\"result\":");
    put_rendered(&d, "result.json", doc_render_result);
    put_str(&d, ",\n\"referencePatch\":");
    put_text(&d, "\"", "reference.patch", "\"", "\"\"", true);
    put_str(&d, ",\n\"review\":");
    put_text(&d, "{\"available\":true,\"text\":\"", "post-review.txt", "\"}",
             "{\"available\":false}", false);
    put_str(&d, ",\n\"logs\":");
    put_logs(&d);
    put_str(&d, "}\n");
    return d.error;
}
