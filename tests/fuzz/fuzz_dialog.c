/* Fuzz entry of dialogs: the scanner agrees with a whole parser, the document is JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/json_read.h"
#include "worker/dialog_read.h"
#include "worker/json_line.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
check_line(const char *text, size_t len)
{
    struct json_line whole, single;
    double seq = 0, other = 0;
    bool has, also;
    struct json_doc *doc;

    json_line_begin(&whole);
    json_line_feed(&whole, text, len);
    json_line_begin(&single);
    for (size_t i = 0; i < len; i++)
        json_line_feed(&single, text + i, 1);
    if (json_line_is_object(&whole) != json_line_is_object(&single))
        abort();
    doc = json_parse(text, len, false, NULL);
    if (json_line_is_object(&whole) && (doc == NULL || json_root(doc)->type != JSON_OBJECT))
        abort(); /* the page would be given what is no JSON */
    json_doc_free(doc);
    has = json_line_end(&whole, &seq);
    also = json_line_end(&single, &other);
    if (has != also || (has && memcmp(&seq, &other, sizeof seq) != 0))
        abort();
}

/* The whole answer, slice by slice. */
static void
check_document(const uint8_t *bytes, size_t len)
{
    int fd = memfd_create("dialog", MFD_CLOEXEC);
    struct dialog_reader *r;
    struct buf out = {0};
    struct json_doc *doc;

    if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
        abort();
    r = dialog_reader_new(fd, len, 0, 100);
    if (r == NULL)
        return;
    while (dialog_reader_fill(r, &out) == 1)
        ;
    doc = json_parse(out.data, out.len, false, NULL);
    if (doc == NULL)
        abort();
    json_doc_free(doc);
    dialog_reader_free(r);
    buf_done(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const uint8_t *end = memchr(bytes, '\n', len);
    size_t line = end != NULL ? (size_t)(end - bytes) : len;
    char *text = malloc(line > 0 ? line : 1);

    if (text == NULL)
        return 0;
    memcpy(text, bytes, line);
    check_line(text, line);
    free(text);
    check_document(bytes, len);
    return 0;
}
