/* UTF-8 as the Unicode Standard defines it (table 3-7): no surrogates, nothing overlong. */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Length in bytes (1..4) of the well-formed sequence at the front, or 0. */
size_t
utf8_sequence(const char *text, size_t len);

/* How many bytes one U+FFFD stands for: the maximal subpart of an ill-formed sequence, as
 * browsers and Python decode it. At least 1. */
size_t
utf8_bad_prefix(const char *text, size_t len);

/* Is the tail of `text` the beginning of a sequence that more bytes could complete? Returns
 * how many bytes (0..3) to hold back. */
size_t
utf8_incomplete_tail(const char *text, size_t len);

bool
utf8_valid(const char *text, size_t len);

#endif
