/*
 * SHA-256 and HMAC-SHA256 (FIPS 180-4, RFC 2104) by libcrypto's plain functions. Not by EVP:
 * that loads providers and a configuration, 2 MB and milliseconds in every process, and the
 * sandbox would not let it.
 */
#ifndef COMMON_HASH_H
#define COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_SIZE 32u     /* bytes of a digest */
#define HASH_KEY_SIZE 32u /* bytes of a key of ours */

void
hash_sha256(const void *bytes, size_t len, uint8_t ret_digest[HASH_SIZE]);

/* HMAC-SHA256. Keeps nothing of the text. */
void
hash_keyed(const uint8_t key[HASH_KEY_SIZE], const void *bytes, size_t len,
           uint8_t ret_digest[HASH_SIZE]);

#endif
