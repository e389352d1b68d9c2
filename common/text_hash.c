/* Eight bytes at a time, each time a product of 128 bits folded into 64. */
#include "common/text_hash.h"

#include <string.h>

static uint64_t
mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t
text_hash(const uint64_t key[2], uint64_t with, const char *text, size_t len)
{
    uint64_t h = mix(key[0] ^ with, len ^ 0x9e3779b97f4a7c15u);

    while (len > 0) {
        size_t n = len < sizeof h ? len : sizeof h;
        uint64_t word = 0;

        memcpy(&word, text, n);
        h = mix(h ^ word, key[1] | 1);
        text += n;
        len -= n;
    }
    return h;
}
