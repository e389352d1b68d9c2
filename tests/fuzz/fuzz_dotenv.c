/* Fuzz entry of .env: a value is a part of one line of the text, and the first line that has the
 * name decides. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "broker/dotenv.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const char name[] = "LITELLM_PORT";

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char first[] = "LITELLM_PORT = '4000'\n";
    char value[24], small[2], *longer = malloc(sizeof first - 1 + len);
    size_t n;
    int r;

    memset(value, 'x', sizeof value);
    r = dotenv_find((const char *)bytes, len, name, value, sizeof value);
    if (r != 0 && r != -ENOENT && r != -EMSGSIZE)
        abort();
    if (r == 0) {
        char *end = memchr(value, '\0', sizeof value);

        if (end == NULL)
            abort();
        n = (size_t)(end - value);
        /* a NUL inside of the value ends it for whoever uses it; what is before it stands there */
        if (n > 0 && memmem(bytes, len, value, n) == NULL)
            abort();
        if (memchr(value, '\n', n) != NULL)
            abort();
        if (n > 1 && dotenv_find((const char *)bytes, len, name, small, sizeof small) != -EMSGSIZE)
            abort();
    }
    memcpy(longer, first, sizeof first - 1);
    if (len > 0)
        memcpy(longer + sizeof first - 1, bytes, len);
    if (dotenv_find(longer, sizeof first - 1 + len, name, value, sizeof value) != 0 ||
        strcmp(value, "4000") != 0)
        abort();
    free(longer);
    return 0;
}
