/* Fuzz entry of frame heads: what is passed on of it is the same
 * wherever the stream is cut. */
#include <stdint.h>
#include <stdlib.h>

#include "worker/ws_frames.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* How many bytes are good; `f` is where the stream stands then. */
static size_t
follow(const uint8_t *bytes, size_t len, size_t piece, struct ws_frames *f)
{
    size_t kept = 0;

    for (size_t at = 0; at < len; at += piece) {
        size_t n = ws_frames_follow(f, bytes + at, len - at < piece ? len - at : piece);

        if (n > 0 && kept != at)
            abort(); /* something good behind what was not */
        kept += n;
    }
    return kept;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ws_frames whole = {0}, one = {0}, three = {0}, again = {0};
    size_t kept = follow(bytes, len, len + 1, &whole);

    if (follow(bytes, len, 1, &one) != kept || follow(bytes, len, 3, &three) != kept ||
        whole.broken != one.broken || whole.close_seen != one.close_seen ||
        whole.left != three.left || (whole.broken == NULL) != (kept == len))
        abort();
    /* What is passed on is a stream that keeps the rules by itself. */
    if (follow(bytes, kept, 1, &again) != kept || again.broken != NULL)
        abort();
    if (whole.broken == NULL && len >= 2 && ((bytes[1] & 0x80) == 0 || (bytes[0] & 0x70) != 0))
        abort(); /* a frame without a mask, or with reserved bits */
    return 0;
}
