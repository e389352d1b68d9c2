/* Digests against published values: FIPS 180-4's examples; HMAC made with Python's hmac, since
 * RFC 4231 has no key of 32 bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/hash.h"

static const struct {
    const char *label, *text;
    unsigned repeat;
    const char *digest;
} plain[] = {
    {"empty", "", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"a million", "aaaaaaaaaa", 100000,
     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

static const struct {
    const char *label;
    uint8_t first, step; /* byte n of the key is first + n * step */
    const char *text, *digest;
} keyed[] = {
    {"empty", 0, 0, "",
     "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
    {"a token", 1, 1, "correct-horse-battery-staple",
     "71175009eb4919d8c647672f5b200b17124341bcff3f893d0bae921a22b48acb"},
    {"the key is all ones", 255, 0, "x",
     "4bdf94823d02b59823be898a294e78210916f06b180b0239f4a9382c6e0c534c"},
    {"longer than a block", 7, 3, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
     "7734ec3814254fbf15731fcfdf51ddaa7ecd4e5f54814031dfa66d567da5d0c7"},
};

static const char *
hex(const uint8_t digest[HASH_SIZE])
{
    static char text[2 * HASH_SIZE + 1];

    for (size_t i = 0; i < HASH_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

static void
test_plain(void **state)
{
    static char text[1000001];
    uint8_t digest[HASH_SIZE];

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        size_t len = strlen(plain[i].text);

        for (unsigned n = 0; n < plain[i].repeat; n++)
            memcpy(text + n * len, plain[i].text, len);
        hash_sha256(text, len * plain[i].repeat, digest);
        if (strcmp(hex(digest), plain[i].digest) != 0)
            fail_msg("%s: %s", plain[i].label, hex(digest));
    }
}

static void
test_keyed(void **state)
{
    uint8_t key[HASH_KEY_SIZE], digest[HASH_SIZE];

    for (size_t i = 0; i < sizeof keyed / sizeof keyed[0]; i++) {
        for (size_t n = 0; n < sizeof key; n++)
            key[n] = (uint8_t)(keyed[i].first + n * keyed[i].step);
        hash_keyed(key, keyed[i].text, strlen(keyed[i].text), digest);
        if (strcmp(hex(digest), keyed[i].digest) != 0)
            fail_msg("%s: %s", keyed[i].label, hex(digest));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_keyed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
