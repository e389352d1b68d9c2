/* Fuzz entry of the strict request reader: no crash, and the promises of worker/request.h. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/request.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Spans lie inside the bytes, or are absent. */
static void
span_check(struct span s, const char *bytes, size_t len)
{
    if (s.at && (s.at < bytes || s.at + s.len > bytes + len))
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct request r, shorter;
    const char *text = (const char *)bytes;
    struct request_result result = request_parse(text, len, &r);
    char value[64];

    if (result.verdict != REQUEST_WHOLE)
        return 0;
    if (result.head_len > len || result.head_len > LIMIT_HEAD || r.host.len == 0)
        abort();
    if (r.path[0] != '/' || strlen(r.path) != r.path_len || strstr(r.path, "/../"))
        abort();
    if (r.content_length > LIMIT_BODY)
        abort();
    span_check(r.target, text, result.head_len);
    span_check(r.query, text, result.head_len);
    span_check(r.host, text, result.head_len);
    span_check(r.origin, text, result.head_len);
    span_check(r.authorization, text, result.head_len);
    span_check(r.ws_key, text, result.head_len);
    span_check(r.ws_protocols, text, result.head_len);
    request_query(&r, "since", value, sizeof(value));
    /* The head ends where it ends: without its last byte it is not whole. */
    if (request_parse(text, result.head_len - 1, &shorter).verdict == REQUEST_WHOLE)
        abort();
    return 0;
}
