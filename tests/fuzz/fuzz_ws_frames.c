/* Fuzz entry of frame heads: the verdict is the same wherever the stream is cut. */
#include <stdint.h>
#include <stdlib.h>

#include "worker/ws_frames.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static bool
follow(const uint8_t *bytes, size_t len, size_t piece)
{
    struct ws_frames f = {0};

    for (size_t at = 0; at < len; at += piece)
        if (!ws_frames_follow(&f, bytes + at, len - at < piece ? len - at : piece))
            return false;
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    bool whole = follow(bytes, len, len + 1);

    if (follow(bytes, len, 1) != whole || follow(bytes, len, 3) != whole)
        abort();
    if (whole && len >= 2 && (bytes[1] & 0x80) == 0)
        abort(); /* a frame without a mask */
    return 0;
}
