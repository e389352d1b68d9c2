/* Frames between a terminal and its client: the contract's JSON, and raw bytes. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/json_read.h"
#include "common/json_write.h"
#include "common/limits.h"
#include "common/utf8.h"
#include "worker/pty.h"
#include "worker/ws.h"

static void
begin(struct json_writer *w, struct buf *out, const char *type)
{
    buf_init(out, 0);
    json_begin(w, out);
    json_object_open(w);
    json_key(w, "type");
    json_cstring(w, type);
}

static void
end(struct pty *p, struct json_writer *w)
{
    size_t len;
    char *text;
    struct ws_bytes *bytes;

    json_object_close(w);
    text = buf_take(w->out, &len);
    if (p->ws == NULL)
        return;
    bytes = ws_bytes_take(text, len);
    ws_send_shared(p->ws, bytes); /* NULL closes the socket */
    ws_bytes_unref(bytes);
}

void
pty_send_session(struct pty *p, size_t replay)
{
    static const char digits[] = "0123456789abcdef";
    char id[2 * MESSAGE_TTY_SESSION + 1] = "";
    struct json_writer w;
    struct buf out;

    if (!p->binary && !p->resumes)
        return; /* a client of the contract does not know this frame */
    for (size_t i = 0; i < MESSAGE_TTY_SESSION; i++) {
        id[2 * i] = digits[p->session[i] >> 4];
        id[2 * i + 1] = digits[p->session[i] & 15];
    }
    begin(&w, &out, "session");
    json_key(&w, "id");
    json_cstring(&w, id);
    json_key(&w, "replay");
    json_int(&w, (int64_t)replay);
    json_key(&w, "credit");
    json_bool(&w, p->binary && !p->view);
    end(p, &w);
}

static void
send_text_output(struct pty *p, const char *bytes, size_t len)
{
    struct json_writer w;
    struct buf out;

    begin(&w, &out, "output");
    json_key(&w, "data");
    json_string(&w, bytes, len);
    end(p, &w);
}

/* A sequence that is cut by the edge of a read waits for its rest. */
static void
send_whole_sequences(struct pty *p, const char *bytes, size_t len)
{
    struct buf all;
    size_t keep;

    buf_init(&all, 0);
    buf_add(&all, p->tail, p->n_tail);
    buf_add(&all, bytes, len);
    if (!all.failed) {
        keep = utf8_incomplete_tail(all.data, all.len);
        if (all.len > keep)
            send_text_output(p, all.data, all.len - keep);
        memcpy(p->tail, all.data + all.len - keep, keep);
        p->n_tail = (unsigned)keep;
    }
    buf_done(&all);
}

void
pty_send_output(struct pty *p, const char *bytes, size_t len)
{
    if (p->ws == NULL || len == 0)
        return;
    p->unshown += len;
    if (p->binary)
        ws_send_binary(p->ws, bytes, len);
    else
        send_whole_sequences(p, bytes, len);
}

void
pty_send_size(struct pty *p, struct tty_ring_size size)
{
    struct json_writer w;
    struct buf out;

    if (size.cols == 0 || size.rows == 0 || !p->resumes ||
        (size.cols == p->shown.cols && size.rows == p->shown.rows))
        return;
    p->shown = size;
    begin(&w, &out, "resize");
    json_key(&w, "cols");
    json_int(&w, size.cols);
    json_key(&w, "rows");
    json_int(&w, size.rows);
    end(p, &w);
}

void
pty_send_exit(struct pty *p, int status)
{
    struct json_writer w;
    struct buf out;

    if (p->n_tail > 0)
        send_text_output(p, p->tail, p->n_tail);
    p->n_tail = 0;
    begin(&w, &out, "exit");
    json_key(&w, "code");
    json_int(&w, status);
    end(p, &w);
}

void
pty_send_error(struct pty *p, const char *format, ...)
{
    char text[MESSAGE_ERROR_SIZE + 128];
    struct json_writer w;
    struct buf out;
    va_list more;

    va_start(more, format);
    vsnprintf(text, sizeof text, format, more);
    va_end(more);
    begin(&w, &out, "error");
    json_key(&w, "message");
    json_cstring(&w, text);
    end(p, &w);
}

static int64_t
integer(const struct json_value *root, const char *name)
{
    const struct json_value *v = json_get(root, name);

    return v != NULL && v->type == JSON_NUMBER && v->is_integer ? v->integer : 0;
}

static void
take_credit(struct pty *p, int64_t bytes)
{
    if (bytes <= 0)
        return;
    p->counts = true;
    p->unshown -= (uint64_t)bytes < p->unshown ? (uint64_t)bytes : p->unshown;
    pty_io_resume(p);
}

static void
take_message(struct pty *p, const struct json_value *root)
{
    const char *type = json_text(json_get(root, "type"));
    const struct json_value *data = json_get(root, "data");

    if (type == NULL)
        return;
    if (strcmp(type, "input") == 0 && data != NULL && data->type == JSON_STRING)
        pty_io_input(p, data->text, data->len);
    else if (strcmp(type, "resize") == 0)
        pty_io_resize(p, integer(root, "cols"), integer(root, "rows"));
    else if (strcmp(type, "credit") == 0)
        take_credit(p, integer(root, "bytes"));
}

/* What is no message of ours is ignored, as the contract's server does. */
void
pty_receive(struct pty *p, const char *bytes, size_t len, bool binary)
{
    struct json_doc *doc;

    if (binary) {
        pty_io_input(p, bytes, len);
        return;
    }
    doc = json_parse(bytes, len, false, NULL);
    if (doc == NULL)
        return;
    if (json_root(doc)->type == JSON_OBJECT)
        take_message(p, json_root(doc));
    json_doc_free(doc);
}
