/* A run's files as messages of sdk-ws. */
#include "worker/sdk_documents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "worker/body_file.h"
#include "worker/dialog_read.h"
#include "worker/doc_render.h"
#include "worker/doc_slices.h"
#include "worker/file_slice.h"

/* --- bodies of the HTTP routes, each as one message ------------------------------------- */

struct body_document {
    struct body_source source;
    const char *before; /* goes in front, in the place of the body's opening brace; NULL: the
                           body is the whole message */
    bool begun;
};

static int
fill_body(void *ctx, struct buf *out, bool *ret_ends)
{
    struct body_document *d = ctx;
    size_t start;
    if (!d->begun && d->before)
        buf_add_str(out, d->before);
    start = out->len;
    int more = d->source.fill(d->source.ctx, out);
    if (more == 1 && !d->begun && d->before && out->len > start) {
        memmove(out->data + start, out->data + start + 1, out->len - start - 1);
        out->len--;
    }
    d->begun = true;
    if (more == 1) /* most are over with the first slice: then the message is one frame */
        more = d->source.fill(d->source.ctx, out);
    *ret_ends = more == 0;
    return more;
}

static void
done_body(void *ctx)
{
    struct body_document *d = ctx;
    d->source.done(d->source.ctx);
    free(d);
}

static int
body_document(struct body_source source, const char *before,
              struct sdk_document *ret_document)
{
    struct body_document *d = malloc(sizeof(*d));
    if (!d) {
        source.done(source.ctx);
        return -ENOMEM;
    }
    *d = (struct body_document){.source = source, .before = before};
    *ret_document = (struct sdk_document){fill_body, done_body, d};
    return 0;
}

int
sdk_document_files(int fd, uint64_t size, struct sdk_document *ret_document)
{
    struct body_source source;
    if (!body_files_new(fd, size, &source))
        return -ENOMEM;
    return body_document(source, "{\"type\":\"files\",", ret_document);
}

int
sdk_document_diff(int fd, uint64_t size, struct sdk_document *ret_document)
{
    struct body_source source;
    if (!body_text_new(fd, size, "{\"type\":\"diff\",\"diff\":\"", "\"}", &source))
        return -ENOMEM;
    return body_document(source, NULL, ret_document);
}

/* --- parsed ones: small ones at once, large ones in slices ---------------------------------- */

struct whole_document {
    int fd;
    uint64_t size;
    const char *before;
    int (*render)(const char *bytes, size_t len, struct buf *out);
};

/* Not usable is as missing: nothing is sent. */
static int
fill_whole(void *ctx, struct buf *out, bool *ret_ends)
{
    struct whole_document *d = ctx;
    struct buf body;
    size_t len = 0;
    char *bytes = file_slice_whole(d->fd, d->size, &len);
    buf_init(&body, 0);
    if (bytes && d->render(bytes, len, &body) == 0 && !body.failed) {
        buf_add_str(out, d->before);
        buf_add(out, body.data, body.len);
        buf_add(out, "}", 1);
        *ret_ends = true;
    }
    buf_done(&body);
    free(bytes);
    return 0;
}

static void
done_whole(void *ctx)
{
    struct whole_document *d = ctx;
    close(d->fd);
    free(d);
}

static int
whole_document(struct whole_document whole, struct sdk_document *ret_document)
{
    struct whole_document *d = malloc(sizeof(*d));
    if (!d) {
        close(whole.fd);
        return -ENOMEM;
    }
    *d = whole;
    *ret_document = (struct sdk_document){fill_whole, done_whole, d};
    return 0;
}

struct large_document {
    struct doc_slices *slices;
    const char *before;
    bool found; /* it has been looked at: there is such a document */
    bool begun;
};

static int
fill_large(void *ctx, struct buf *out, bool *ret_ends)
{
    struct large_document *d = ctx;
    int more = d->found ? 1 : doc_slices_look(d->slices);
    *ret_ends = false;
    if (!d->found) {
        d->found = more == 0;
        return more >= 0; /* not usable is as missing */
    }
    if (!d->begun)
        buf_add_str(out, d->before);
    d->begun = true;
    more = doc_slices_fill(d->slices, out);
    if (more == 0)
        buf_add(out, "}", 1);
    *ret_ends = more == 0;
    return more;
}

static void
done_large(void *ctx)
{
    struct large_document *d = ctx;
    doc_slices_free(d->slices);
    free(d);
}

static int
large_document(int fd, uint64_t size, enum doc_slices_kind kind, const char *before,
               struct sdk_document *ret_document)
{
    struct large_document *d = calloc(1, sizeof(*d));
    struct doc_slices *slices = doc_slices_new(fd, size, kind);
    if (!d || !slices) {
        free(d);
        doc_slices_free(slices);
        return -ENOMEM;
    }
    d->slices = slices;
    d->before = before;
    *ret_document = (struct sdk_document){fill_large, done_large, d};
    return 0;
}

int
sdk_document_project(int fd, uint64_t size, struct sdk_document *ret_document)
{
    struct whole_document whole = {fd, size, "{\"type\":\"project\",\"data\":",
                                   doc_render_project};
    if (size > DOC_AT_ONCE)
        return large_document(fd, size, DOC_PROJECT, whole.before, ret_document);
    return whole_document(whole, ret_document);
}

int
sdk_document_result(int fd, uint64_t size, struct sdk_document *ret_document)
{
    struct whole_document whole = {fd, size, "{\"type\":\"result\",\"result\":",
                                   doc_render_result};
    if (size > DOC_AT_ONCE)
        return large_document(fd, size, DOC_RESULT, whole.before, ret_document);
    return whole_document(whole, ret_document);
}

/* --- the dialog ---------------------------------------------------------------------------- */

struct dialog_document {
    struct dialog_reader *reader;
    bool open;  /* a batch has begun */
    bool begun; /* the reader's own head is behind us */
};

/* The slice without what joins it to the others: separator in front, document's end behind. */
static void
strip_slice(struct buf *slice, const struct dialog_reader *r, bool batch_open)
{
    static const char tail[] = "]}", cut_tail[] = "],\"truncated\":true}";
    if (r->state == DIALOG_OVER)
        slice->len -= r->truncated ? strlen(cut_tail) : strlen(tail);
    if (batch_open)
        return;
    size_t skip = 0;
    while (skip < slice->len && (slice->data[skip] == ',' || slice->data[skip] == '\n'))
        skip++;
    buf_consume(slice, skip);
}

static void
close_batch(struct dialog_document *d, struct buf *out)
{
    struct json_writer w;
    buf_add_str(out, "],\"lastSeq\":");
    json_begin(&w, out);
    json_double(&w, d->reader->last_seq);
    if (d->reader->truncated)
        buf_add_str(out, ",\"truncated\":true");
    buf_add_str(out, "}");
    d->open = false;
}

static void
render_batch(struct dialog_document *d, struct buf *slice, struct buf *out, bool *ret_ends)
{
    const struct dialog_reader *r = d->reader;
    bool cut = r->state == DIALOG_OVER && r->truncated;
    strip_slice(slice, r, d->open);
    if (!d->open && (slice->len > 0 || cut)) {
        buf_add_str(out, "{\"type\":\"dialog\",\"entries\":[");
        d->open = true;
    }
    if (slice->len > 0)
        buf_add(out, slice->data, slice->len);
    /* In the middle of a long entry the message goes on. */
    if (d->open && r->state != DIALOG_COPY) {
        close_batch(d, out);
        *ret_ends = true;
    }
}

static int
fill_dialog(void *ctx, struct buf *out, bool *ret_ends)
{
    struct dialog_document *d = ctx;
    struct buf slice;
    buf_init(&slice, 0);
    int more = dialog_reader_fill(d->reader, &slice);
    *ret_ends = false;
    if (more == 1 && slice.failed)
        more = -ENOMEM;
    if (more == 1 && d->begun)
        render_batch(d, &slice, out, ret_ends);
    d->begun = true;
    buf_done(&slice);
    return more;
}

static void
done_dialog(void *ctx)
{
    struct dialog_document *d = ctx;
    dialog_reader_free(d->reader);
    free(d);
}

int
sdk_document_dialog(int fd, uint64_t size, double since, struct sdk_document *ret_document)
{
    return sdk_document_dialog_of(dialog_reader_of_file(fd, size, since), ret_document);
}

int
sdk_document_dialog_of(struct dialog_reader *reader, struct sdk_document *ret_document)
{
    struct dialog_document *d = reader ? malloc(sizeof(*d)) : NULL;
    if (!d) {
        dialog_reader_free(reader);
        return -ENOMEM;
    }
    *d = (struct dialog_document){.reader = reader};
    *ret_document = (struct sdk_document){fill_dialog, done_dialog, d};
    return 0;
}
