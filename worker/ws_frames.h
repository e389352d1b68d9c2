/*
 * Do a client's frames keep the rules of RFC 6455? libwebsockets takes some that do not
 * (unmasked ones, long forms of short lengths, a close of one byte) and goes on sending behind
 * its own refusal of others. So the bytes are looked at on their way into the library, and what
 * breaks a rule never gets there. UTF-8 and close codes are the library's. Pure.
 */
#ifndef WORKER_WS_FRAMES_H
#define WORKER_WS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the stream stands between two reads. Zero: at the head of a frame. */
struct ws_frames {
    const char *broken; /* the rule that was broken, for the close reason; NULL: none yet */
    uint64_t left;      /* bytes of mask and payload still to come */
    uint64_t length;    /* as far as the extended length came */
    uint8_t at;         /* bytes of the head so far: 0, 1, or 2 */
    uint8_t extended;   /* bytes of the extended length still to come */
    uint8_t wide;       /* bytes it has in all */
    uint8_t opcode;
    bool masked;
    bool in_message;    /* a message's first frame came, its last did not */
    bool close_seen;    /* a close frame's head came */
};

/* Follow the next bytes. How many of them, from the front, stand before the first break of a
 * rule; 0 ever after, though heads are still followed, for `close_seen`. */
size_t
ws_frames_follow(struct ws_frames *f, const void *bytes, size_t len);

#endif
