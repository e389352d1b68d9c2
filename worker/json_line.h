/*
 * Is this line one JSON object, and what is its `seq`? A scanner that takes a line of any
 * length in pieces and remembers some fifty bytes of it: dialogs are the agent's own writing,
 * a line may have 30 MiB (contract 5). Pure.
 */
#ifndef WORKER_JSON_LINE_H
#define WORKER_JSON_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_LINE_NUMBER 400u /* characters of a number that is looked at */

struct json_line {
    uint8_t state;        /* private, all of it but the verdict */
    uint8_t depth;        /* at most LIMIT_JSON_DEPTH (64) */
    uint8_t literal, hex;
    uint64_t is_object;   /* one bit a level */
    bool in_key, key_level, key_is_seq, escaped_low;
    uint16_t code;        /* of a \u escape */
    uint8_t key_len;
    char key[4];
    uint16_t number_len;
    char number[JSON_LINE_NUMBER + 1];
    bool has_seq;
    bool array_too; /* one array is as good as one object */
    double seq;
};

void
json_line_begin(struct json_line *s);

/* For a document instead of a line: one object or one array. */
void
json_line_begin_any(struct json_line *s);

/* More bytes of the line, without its newline. */
void
json_line_feed(struct json_line *s, const char *bytes, size_t len);

/* Inside a string: the next quote, backslash or control byte, or `end`. */
const char *
json_line_plain(const char *at, const char *end);

/* Can more bytes still make it one JSON object, or is it one? */
bool
json_line_good(const struct json_line *s);

/* Were all bytes so far one JSON object (or what else was begun), with or without a `seq`? */
bool
json_line_is_object(const struct json_line *s);

/* The line is over: true if it was one JSON object whose last `seq` is a number. */
bool
json_line_end(struct json_line *s, double *ret_seq);

#endif
