/* Fuzz entry of what the CLI prints beside its listing (which is in fuzz_summary.c): an address,
 * a container's model, log lines; and of the proxy's answer to the key maker. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "broker/endpoint_url.h"
#include "broker/keymaker/proxy.h"
#include "broker/keymaker/read_model.h"
#include "common/limits.h"
#include "common/utf8.h"
#include "worker/log_lines.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
check_endpoint(const char *text)
{
    struct sockaddr_storage a;

    if (endpoint_url_parse(text, &a) != 0)
        return;
    if (strncmp(text, "http://", 7) != 0 || (a.ss_family != AF_INET && a.ss_family != AF_INET6) ||
        ((struct sockaddr_in *)&a)->sin_port == 0)
        abort();
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~')
            abort();
}

static void
check_model(const char *text, size_t len)
{
    char url[KEYMAKER_URL_SIZE] = "", model[MESSAGE_MODEL_SIZE] = "";

    if (read_model(text, len, url, model) != 0)
        return;
    if (strnlen(url, sizeof url) == sizeof url || strnlen(model, sizeof model) == sizeof model ||
        (url[0] == '\0') != (model[0] == '\0') || !utf8_valid(model, strlen(model)) ||
        strpbrk(url, " \t\r\n\"") != NULL || strpbrk(model, "\r\n\x1b") != NULL)
        abort();
}

static void
check_proxy(const char *text, size_t len)
{
    struct buf answer;
    const char *body;
    size_t body_len;
    int status;

    buf_init(&answer, 0);
    buf_add(&answer, text, len);
    if (proxy_answer_split(&answer, &status, &body, &body_len) == 0 &&
        (status < 0 || status > 999 || body < answer.data || body + body_len != answer.data + len))
        abort();
    buf_done(&answer);
}

static void
on_line(void *ctx, const char *text, size_t len)
{
    if (len == 0 || len > LIMIT_LOG_PIECE || memchr(text, '\n', len) != NULL)
        abort();
    buf_add(ctx, text, len);
    buf_add(ctx, "\n", 1);
}

/* How often the text is repeated makes lines that are longer than a piece. */
static void
read_lines(const char *text, size_t len, unsigned times, size_t piece, struct buf *out)
{
    struct log_lines l;

    buf_init(out, 0);
    log_lines_init(&l, on_line, out);
    for (unsigned i = 0; i < times; i++)
        for (size_t at = 0; at < len; at += piece)
            log_lines_feed(&l, text + at, len - at < piece ? len - at : piece);
    log_lines_end(&l);
    log_lines_done(&l);
}

static void
check_lines(const char *text, size_t len)
{
    struct buf whole, parts;
    unsigned times = len > 0 && len < 16 ? 1200 : 1;

    read_lines(text, len, times, len, &whole);
    read_lines(text, len, times, 5, &parts);
    if (whole.len != parts.len || (whole.len > 0 && memcmp(whole.data, parts.data, whole.len) != 0))
        abort();
    buf_done(&whole);
    buf_done(&parts);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len + 1);

    memcpy(text, bytes, len);
    text[len] = '\0';
    check_endpoint(text);
    check_model(text, len);
    check_proxy(text, len);
    check_lines(text, len);
    free(text);
    return 0;
}
