/* The token's form, and finding it in a request; nothing here decides by comparing
 * tokens. */
#include "policy/token.h"

#include <string.h>
#include <strings.h>

/* One UTF-8 character: its length and code point, or 0 when malformed (overlong forms,
 * surrogates and values past U+10FFFF included). */
static size_t
decode_utf8(const char *text, size_t len, uint32_t *ret_char)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)text[0];
    size_t n = first < 0x80   ? 1
               : first < 0xc2 ? 0
               : first < 0xe0 ? 2
               : first < 0xf0 ? 3
                              : 4;
    uint32_t value = n == 1 ? first : n == 0 ? 0 : first & (0x7fu >> n);

    if (n == 0 || n > len || first > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        if ((c & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (c & 0x3fu);
    }
    if (value < least[n] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return 0;
    *ret_char = value;
    return n;
}

/* Control characters and every character with the White_Space property, as the
 * original's pattern \s sees it. */
static bool
is_blank_or_control(uint32_t c)
{
    return c <= 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000 || c == 0xfeff;
}

bool
policy_token_valid(const char *token, size_t len)
{
    size_t n_chars = 0;

    if (len > POLICY_TOKEN_MAX)
        return false;
    for (size_t i = 0; i < len; n_chars++) {
        uint32_t c;
        size_t n = decode_utf8(token + i, len - i, &c);

        if (n == 0 || is_blank_or_control(c))
            return false;
        i += n;
    }
    return n_chars >= POLICY_TOKEN_MIN;
}

bool
policy_token_from_bearer(const char *value, size_t len, const char **ret_token,
                         size_t *ret_len)
{
    static const char scheme[] = "Bearer ";
    size_t skip = sizeof(scheme) - 1;

    if (len < skip || strncasecmp(value, scheme, skip) != 0)
        return false;
    while (skip < len && value[skip] == ' ')
        skip++;
    if (skip == len)
        return false;
    *ret_token = value + skip;
    *ret_len = len - skip;
    return true;
}

static int
base64url_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

/* Would `text` decode, and is it the only spelling of what it decodes to? */
static bool
is_canonical_base64url(const char *text, size_t len)
{
    static const int stray_bits[4] = {0, 0, 0x0f, 0x03};

    if (len == 0 || len % 4 == 1 || len * 3 / 4 > POLICY_TOKEN_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (base64url_value(text[i]) < 0)
            return false;
    return (base64url_value(text[len - 1]) & stray_bits[len % 4]) == 0;
}

static size_t
decode_base64url(const char *text, size_t len, char *out)
{
    uint32_t bits = 0;
    unsigned n_bits = 0;
    size_t n_out = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 6 | (uint32_t)base64url_value(text[i]);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[n_out++] = (char)(bits >> n_bits & 0xff);
        }
    }
    return n_out;
}

/* Take the next element of a comma-separated list (RFC 9110 5.6.1) without the blanks
 * around it. Empty elements are skipped. False: no more. */
static bool
next_element(const char **list, size_t *len, const char **ret_text, size_t *ret_len)
{
    while (*len > 0) {
        const char *comma = memchr(*list, ',', *len);
        const char *text = *list;
        size_t n = comma != NULL ? (size_t)(comma - *list) : *len;

        *list += comma != NULL ? n + 1 : n;
        *len -= comma != NULL ? n + 1 : n;
        for (; n > 0 && (text[0] == ' ' || text[0] == '\t'); n--)
            text++;
        while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
            n--;
        if (n > 0) {
            *ret_text = text;
            *ret_len = n;
            return true;
        }
    }
    return false;
}

bool
policy_token_from_subprotocols(const char *list, size_t len, char out[POLICY_TOKEN_MAX],
                               size_t *ret_len)
{
    static const char prefix[] = "ssebench.token.";
    const size_t skip = sizeof(prefix) - 1;
    const char *text, *found = NULL;
    size_t n, n_found = 0;

    while (next_element(&list, &len, &text, &n)) {
        if (n < skip || memcmp(text, prefix, skip) != 0)
            continue;
        if (found !=
            NULL) /* two offers: which one counts must not be a matter of order */
            return false;
        found = text + skip;
        n_found = n - skip;
    }
    if (found == NULL || !is_canonical_base64url(found, n_found))
        return false;
    *ret_len = decode_base64url(found, n_found, out);
    return true;
}

bool
policy_subprotocol_offered(const char *list, size_t len, const char *name)
{
    const size_t name_len = strlen(name);
    const char *text;
    size_t n;

    while (next_element(&list, &len, &text, &n))
        if (n == name_len && memcmp(text, name, n) == 0)
            return true;
    return false;
}

bool
policy_digest_equal(const uint8_t a[32], const uint8_t b[32])
{
    /* volatile: the compiler must not leave the loop at the first difference. */
    volatile uint8_t difference = 0;

    for (size_t i = 0; i < 32; i++)
        difference = (uint8_t)(difference | (a[i] ^ b[i]));
    return difference == 0;
}
