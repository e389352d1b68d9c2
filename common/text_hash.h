/*
 * Hash of a text for a table whose texts strangers choose: keyed, so that nobody can make
 * texts that share one bucket. It keeps nothing secret (for that common/hash.h).
 */
#ifndef COMMON_TEXT_HASH_H
#define COMMON_TEXT_HASH_H

#include <stddef.h>
#include <stdint.h>

/* `key`: random, the table's own; `with`: what belongs to the text, such as its parent. */
uint64_t
text_hash(const uint64_t key[2], uint64_t with, const char *text, size_t len);

#endif
