/* Well-formed UTF-8, byte by byte. */
#include "common/utf8.h"

#include <stdint.h>
#include <string.h>

/* Expected length and the legal range of the second byte, which rules out overlong forms,
 * surrogates and what lies above U+10FFFF. 0: no first byte of a sequence. */
static size_t
lead(unsigned char c, unsigned char *ret_low, unsigned char *ret_high)
{
    *ret_low = 0x80;
    *ret_high = 0xbf;
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        return 2;
    if (c >= 0xe0 && c <= 0xef) {
        if (c == 0xe0)
            *ret_low = 0xa0;
        if (c == 0xed)
            *ret_high = 0x9f;
        return 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        if (c == 0xf0)
            *ret_low = 0x90;
        if (c == 0xf4)
            *ret_high = 0x8f;
        return 4;
    }
    return 0;
}

/* How many leading bytes fit a sequence, and in *ret_want how many it needs. */
static size_t
matched(const char *text, size_t len, size_t *ret_want)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned char low, high;
    size_t want = lead(s[0], &low, &high);
    size_t n = 1;

    *ret_want = want;
    if (want == 0)
        return 0;
    for (; n < want && n < len; n++) {
        if (s[n] < low || s[n] > high)
            break;
        low = 0x80;
        high = 0xbf;
    }
    return n;
}

size_t
utf8_sequence(const char *text, size_t len)
{
    size_t want;

    if (len == 0)
        return 0;
    return matched(text, len, &want) == want ? want : 0;
}

size_t
utf8_bad_prefix(const char *text, size_t len)
{
    size_t want, n = matched(text, len, &want);

    return n > 0 ? n : 1;
}

size_t
utf8_incomplete_tail(const char *text, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const char *at = text + len - back;
        size_t want, n;

        if (((unsigned char)*at & 0xc0) == 0x80)
            continue;
        n = matched(at, back, &want);
        return want > back && n == back ? back : 0;
    }
    return 0;
}

bool
utf8_valid(const char *text, size_t len)
{
    size_t i = 0;

    while (i < len) {
        uint64_t eight;
        size_t n;

        if (len - i >= 8) {
            memcpy(&eight, text + i, 8);
            if ((eight & 0x8080808080808080u) == 0) {
                i += 8;
                continue;
            }
        }
        n = utf8_sequence(text + i, len - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}
