/* Fuzz entry of the places of a token: what is taken stands in what was sent. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/run_id.h"
#include "policy/token.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Our own encoder, against the decoder's taking two spellings for one token. */
static size_t
encode(const char *token, size_t len, char *out)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint32_t bits = 0;
    unsigned n_bits = 0;
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | (uint8_t)token[i];
        for (n_bits += 8; n_bits >= 6; n_bits -= 6)
            out[n++] = digits[bits >> (n_bits - 6) & 63];
    }
    if (n_bits > 0)
        out[n++] = digits[bits << (6 - n_bits) & 63];
    return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static char token[POLICY_TOKEN_MAX], encoded[POLICY_TOKEN_MAX * 2];
    char *text = malloc(len > 0 ? len : 1);
    const char *at;
    size_t n;

    if (text == NULL)
        return 0;
    memcpy(text, bytes, len);
    if (policy_token_from_bearer(text, len, &at, &n) &&
        (n == 0 || at < text || at + n > text + len))
        abort();
    if (policy_token_from_subprotocols(text, len, token, &n)) {
        if (n > sizeof token)
            abort();
        n = encode(token, n, encoded);
        if (memmem(text, len, encoded, n) == NULL)
            abort();
    }
    policy_token_valid(text, len);
    policy_subprotocol_offered(text, len, "ssebench");
    if (policy_run_id_valid(text, len) && (len > 64 || memchr(text, '/', len) || text[0] == '-'))
        abort();
    if (policy_component_valid(text, len) &&
        (memchr(text, '/', len) || (len == 2 && memcmp(text, "..", 2) == 0)))
        abort();
    if (policy_model_path_valid(text, len) && (text[0] == '/' || memmem(text, len, "//", 2)))
        abort();
    free(text);
    return 0;
}
