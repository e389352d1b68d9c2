/* Two digests, with nothing loaded at run time. */
#define OPENSSL_SUPPRESS_DEPRECATED /* the one thing EVP would add is what hash.h avoids */
#include "common/hash.h"

#include <openssl/sha.h>
#include <string.h>

#define BLOCK 64u /* bytes of SHA-256's block */

void
hash_sha256(const void *bytes, size_t len, uint8_t ret_digest[HASH_SIZE])
{
    SHA256_CTX ctx;

    SHA256_Init(&ctx);
    SHA256_Update(&ctx, bytes, len);
    SHA256_Final(ret_digest, &ctx);
    explicit_bzero(&ctx, sizeof ctx);
}

/* One of HMAC's two passes: H((key ^ pad) || bytes). */
static void
hash_pass(const uint8_t key[HASH_KEY_SIZE], uint8_t pad, const void *bytes, size_t len,
          uint8_t ret_digest[HASH_SIZE])
{
    uint8_t block[BLOCK];
    SHA256_CTX ctx;

    memset(block, pad, sizeof block);
    for (size_t i = 0; i < HASH_KEY_SIZE; i++)
        block[i] ^= key[i];
    SHA256_Init(&ctx);
    SHA256_Update(&ctx, block, sizeof block);
    SHA256_Update(&ctx, bytes, len);
    SHA256_Final(ret_digest, &ctx);
    explicit_bzero(&ctx, sizeof ctx);
    explicit_bzero(block, sizeof block);
}

void
hash_keyed(const uint8_t key[HASH_KEY_SIZE], const void *bytes, size_t len,
           uint8_t ret_digest[HASH_SIZE])
{
    uint8_t inner[HASH_SIZE];

    hash_pass(key, 0x36, bytes, len, inner);
    hash_pass(key, 0x5c, inner, sizeof inner, ret_digest);
}
