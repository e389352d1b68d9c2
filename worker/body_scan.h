/*
 * Members of a JSON object that arrives in pieces: where their values stand. The whole is
 * checked on the way; nothing is built. Pure.
 */
#ifndef WORKER_BODY_SCAN_H
#define WORKER_BODY_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/json_line.h"

#define BODY_KEY 32u
#define BODY_MEMBERS 6u

struct body_value {
    char kind; /* its first character; '\0': there is no such member */
    size_t start, end; /* [start..end) of all bytes */
};

struct body_scan {
    struct body_value value[BODY_MEMBERS]; /* after body_scan_end, in the order of `members` */
    /* Up to where the first value, if it is an array, has whole objects: for an answer that is
     * cut. At least its start + 1. */
    size_t elements_end;
    /* private */
    const char *const *members;
    unsigned n_members;
    struct json_line line;
    struct body_value *wanted; /* the value at hand; NULL: another */
    size_t at;
    unsigned depth;
    bool in_string, escape, want_key, in_key, inside;
    unsigned key_len;
    char key[BODY_KEY];
};

/* `members` are constants of less than BODY_KEY bytes; of a repeated one the last counts. */
void
body_scan_begin(struct body_scan *s, const char *const *members, unsigned n_members);
void
body_scan_feed(struct body_scan *s, const char *bytes, size_t len);

/* Are the bytes so far the beginning of one JSON object? */
bool
body_scan_good(const struct body_scan *s);

/* Was it one JSON object? */
bool
body_scan_end(struct body_scan *s);

/* The elements of an array, one after the other, each of any length. Zero, with `at` behind
 * the bracket: at the first. */
struct body_element {
    size_t at;         /* looked at up to here */
    size_t start, end; /* of the element found */
    unsigned depth;
    bool begun, in_string, escape;
};

/* Look at `most` more bytes of bytes[e->at..end), which are inside an array of a checked
 * document. 1: an element is found, the next call begins another; 0: go on; -1: there is none
 * any more. */
int
body_element_next(struct body_element *e, const char *bytes, size_t end, size_t most);

#endif
