/*
 * Are a client's frames masked? libwebsockets takes unmasked ones, RFC 6455 (5.1) says to
 * close. So the bytes are looked at on their way into the library. Pure.
 */
#ifndef WORKER_WS_FRAMES_H
#define WORKER_WS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the stream stands between two reads. Zero: at the head of a frame. */
struct ws_frames {
    uint64_t left;     /* bytes of mask and payload still to come */
    uint64_t length;   /* as far as the extended length came */
    uint8_t at;        /* bytes of the head so far: 0, 1, or 2 */
    uint8_t extended;  /* bytes of the extended length still to come */
};

/* Follow the next bytes. False: a frame without a mask, or of a length that cannot be; then
 * the stream is of no more use. */
bool
ws_frames_follow(struct ws_frames *f, const void *bytes, size_t len);

#endif
