/*
 * One member of a JSON object that arrives in pieces: where its value stands. The whole is
 * checked on the way; nothing is built. Pure.
 */
#ifndef WORKER_BODY_SCAN_H
#define WORKER_BODY_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/json_line.h"

#define BODY_KEY 32u

struct body_scan {
    /* after body_scan_end: the member's value is [start..end) of all bytes */
    char kind; /* its first character; '\0': there is no such member */
    size_t start, end;
    /* private */
    const char *member;
    struct json_line line;
    size_t at;
    unsigned depth;
    bool in_string, escape, want_key, in_key, wanted, inside;
    unsigned key_len;
    char key[BODY_KEY];
};

/* `member` is a constant of less than BODY_KEY bytes; the last of several wins. */
void
body_scan_begin(struct body_scan *s, const char *member);
void
body_scan_feed(struct body_scan *s, const char *bytes, size_t len);

/* Was it one JSON object? */
bool
body_scan_end(struct body_scan *s);

/* The next element of an array, whose inside is bytes[*at..end) at first. False: there
 * is none. The array is part of a checked document. */
bool
body_scan_element(const char *bytes, size_t end, size_t *at, const char **ret_element,
                  size_t *ret_len);

#endif
