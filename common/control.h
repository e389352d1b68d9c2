/*
 * What the master and its children say to each other: few words, on a channel of their own
 * (common/channel.h), so that the worker-broker vocabulary stays about runs only.
 * The master trusts no child: it reads only CONTROL_READY, CONTROL_LOG, CONTROL_FENCES and
 * CONTROL_ALIVE, and from the broker CONTROL_KILL.
 */
#ifndef COMMON_CONTROL_H
#define COMMON_CONTROL_H

#include <stdint.h>

#include "common/limits.h"

enum control_type {
    CONTROL_READY = 1, /* child: locked down and serving; the broker also after CONFIG */
    CONTROL_LOG,       /* child: one line; the master checks, caps and escapes it */
    CONTROL_FENCES,    /* child: bit set of enum fence that are up (once, before READY) */
    CONTROL_CHANNEL,   /* master, one descriptor: your new channel. To a worker: the broker
                          was (re)started. To the broker: worker `number` was (re)started */
    CONTROL_CONFIG,    /* master, one descriptor: a new sealed configuration (SIGHUP) */
    CONTROL_STOP,      /* master: finish what is in hand, then exit 0 */
    CONTROL_DRAIN,     /* master: another program takes over. Answer what was asked, then exit 0 */
    CONTROL_KILL,      /* broker: worker `value` broke the vocabulary: SIGKILL it, start another
                          (design R3). A number that is no running worker is ignored */
    CONTROL_ALIVE,     /* child: its loop turns; every LIMIT_ALIVE_MS */
};

/* Levels of CONTROL_LOG. error = needs a person, warning = a peer misbehaved, info = start,
 * stop, reload, debug = for development, off by default. */
enum log_level { LOG_LEVEL_ERROR = 1, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

struct control_head {
    uint32_t type;
    uint32_t value; /* READY: 0; LOG: level; FENCES: bits; CHANNEL: worker number */
};

/* CONTROL_LOG: the head, then 1..LIMIT_LOG_LINE bytes of text without NUL. All others are
 * the head alone. */
struct control_log {
    struct control_head head;
    char text[LIMIT_LOG_LINE];
};

#endif
