/* Fuzz entry of a terminal's frames: whatever a client sends asks for nothing but input, size
 * and credit; whatever a program prints reaches a JSON client as valid frames, the same text
 * wherever the reads were cut. */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_read.h"
#include "common/utf8.h"
#include "worker/pty.h"
#include "worker/ws.h"
#include "worker/ws_queue.h"

#define SHOWN_MOST 256u

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static struct buf shown; /* what a JSON client puts on its screen */
static size_t typed;

void
pty_io_input(struct pty *p, const char *bytes, size_t len)
{
    (void)p;
    if (len > 0 && bytes[len - 1] == bytes[0])
        typed++;
    typed += len;
}

void
pty_io_resize(struct pty *p, int64_t cols, int64_t rows)
{
    p->cols = (uint16_t)cols;
    p->rows = (uint16_t)rows;
}

void
pty_io_resume(struct pty *p)
{
    if (p->unshown > 1000)
        abort(); /* credit only ever lowers it */
}

void
ws_send_binary(struct ws *ws, const void *bytes, size_t len)
{
    (void)ws, (void)bytes, (void)len;
    abort(); /* this one is in JSON mode */
}

void
ws_send_shared(struct ws *ws, struct ws_bytes *bytes)
{
    struct ws_queue queue = {0};
    struct ws_piece piece;
    struct json_doc *doc;
    const struct json_value *data;

    (void)ws;
    ws_queue_push(&queue, (struct ws_entry){ws_bytes_ref(bytes), false, true, true});
    if (!ws_queue_peek(&queue, SIZE_MAX, &piece))
        abort();
    doc = json_parse(piece.at, piece.len, true, NULL);
    if (doc == NULL || !utf8_valid(piece.at, piece.len))
        abort();
    data = json_get(json_root(doc), "data");
    if (data != NULL)
        buf_add(&shown, data->text, data->len);
    json_doc_free(doc);
    ws_queue_clear(&queue);
}

static void
show(const char *bytes, size_t len, size_t piece, struct buf *ret)
{
    struct pty p = {.ws = (struct ws *)&p};

    buf_init(&shown, 0);
    for (size_t at = 0; at < len; at += piece)
        pty_send_output(&p, bytes + at, len - at < piece ? len - at : piece);
    pty_send_exit(&p, 0);
    if (p.unshown != len || p.n_tail != 0)
        abort();
    *ret = shown;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct pty client = {.ws = (struct ws *)&client, .unshown = 1000};
    const char *text = (const char *)bytes;
    struct buf whole, parts;

    pty_receive(&client, text, len, false);
    pty_receive(&client, text, len, true);
    if (len > SHOWN_MOST) /* a frame for every byte of it */
        len = SHOWN_MOST;
    for (size_t piece = 1; piece <= 3; piece++) {
        show(text, len, len + 1, &whole);
        show(text, len, piece, &parts);
        if (whole.len != parts.len ||
            (whole.len > 0 && memcmp(whole.data, parts.data, whole.len) != 0))
            abort();
        buf_done(&whole);
        buf_done(&parts);
    }
    return 0;
}
