/* Heads of a client's frames, followed across reads; payloads are skipped. */
#include "worker/ws_frames.h"

#define FIN_BIT 0x80u
#define RESERVED_BITS 0x70u
#define MASK_BIT 0x80u
#define MASK_KEY 4u
#define LENGTH_MOST (UINT64_MAX >> 1)
#define CONTROL_MOST 125u /* RFC 6455, 5.5 */

enum { CONTINUATION = 0, BINARY = 2, CLOSE = 8, PONG = 10 };

static bool
is_control(const struct ws_frames *f)
{
    return f->opcode >= CLOSE;
}

/* The first break counts. */
static void
require(struct ws_frames *f, bool kept, const char *rule)
{
    if (!kept && f->broken == NULL)
        f->broken = rule;
}

static void
follow_first(struct ws_frames *f, uint8_t byte)
{
    bool fin = byte & FIN_BIT;

    f->at = 1;
    f->opcode = byte & 0x0f;
    require(f, (byte & RESERVED_BITS) == 0, "Reserved bits must be zero");
    require(f, f->opcode <= BINARY || (is_control(f) && f->opcode <= PONG), "Unknown opcode");
    if (is_control(f)) {
        require(f, fin, "Control frames must not be fragmented");
        return;
    }
    if (f->opcode == CONTINUATION)
        require(f, f->in_message, "There is nothing to continue");
    else
        require(f, !f->in_message, "The message before is not over");
    f->in_message = !fin;
}

static void
finish_head(struct ws_frames *f)
{
    f->at = 0;
    require(f, f->wide != 2 || f->length > 125, "Lengths must have their shortest form");
    require(f, f->wide != 8 || f->length > UINT16_MAX, "Lengths must have their shortest form");
    require(f, f->opcode != CLOSE || f->length != 1, "A close code has two bytes");
    if (f->opcode == CLOSE)
        f->close_seen = true;
    if (f->length > LENGTH_MOST)
        f->length = LENGTH_MOST; /* where the next frame is nobody knows */
    f->left = f->length + (f->masked ? MASK_KEY : 0);
}

static void
follow_second(struct ws_frames *f, uint8_t byte)
{
    uint8_t length = byte & (uint8_t)~MASK_BIT;

    f->at = 2;
    f->masked = byte & MASK_BIT;
    require(f, f->masked, "Client frames must be masked");
    require(f, !is_control(f) || length <= CONTROL_MOST, "Control frames must be short");
    f->length = length < 126 ? length : 0;
    f->wide = f->extended = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (f->extended == 0)
        finish_head(f);
}

static void
follow_head(struct ws_frames *f, uint8_t byte)
{
    if (f->at == 0) {
        follow_first(f, byte);
    } else if (f->at == 1) {
        follow_second(f, byte);
    } else {
        require(f, f->extended < 8 || byte < 0x80, "Length out of range"); /* 5.2 */
        f->length = f->length << 8 | byte;
        if (--f->extended == 0)
            finish_head(f);
    }
}

size_t
ws_frames_follow(struct ws_frames *f, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    size_t kept = 0;

    for (size_t i = 0; i < len;) {
        size_t step = 1;

        if (f->left > 0) {
            step = f->left < len - i ? (size_t)f->left : len - i;
            f->left -= step;
        } else {
            follow_head(f, at[i]);
        }
        i += step;
        if (f->broken == NULL)
            kept = i;
    }
    return kept;
}
