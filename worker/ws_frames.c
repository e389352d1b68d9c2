/* Heads of a client's frames, followed across reads; payloads are skipped. */
#include "worker/ws_frames.h"

#define MASK_BIT 0x80u
#define MASK_KEY 4u
#define LENGTH_MOST (UINT64_MAX >> 1) /* RFC 6455, 5.2: the highest bit is 0 */

static bool
finish_head(struct ws_frames *f)
{
    f->at = 0;
    if (f->length > LENGTH_MOST)
        return false;
    f->left = f->length + MASK_KEY;
    return true;
}

static bool
follow_second(struct ws_frames *f, uint8_t byte)
{
    if (!(byte & MASK_BIT))
        return false;
    uint8_t length = byte & (uint8_t)~MASK_BIT;
    f->at = 2;
    f->length = length < 126 ? length : 0;
    f->extended = length == 126 ? 2 : length == 127 ? 8 : 0;
    return f->extended > 0 || finish_head(f);
}

static bool
follow_head(struct ws_frames *f, uint8_t byte)
{
    if (f->at == 0) {
        f->at = 1;
        return true;
    }
    if (f->at == 1)
        return follow_second(f, byte);
    f->length = f->length << 8 | byte;
    return --f->extended > 0 || finish_head(f);
}

bool
ws_frames_follow(struct ws_frames *f, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    while (len > 0) {
        if (f->left > 0) {
            size_t skip = f->left < len ? (size_t)f->left : len;
            f->left -= skip;
            at += skip;
            len -= skip;
            continue;
        }
        if (!follow_head(f, *at))
            return false;
        at++;
        len--;
    }
    return true;
}
