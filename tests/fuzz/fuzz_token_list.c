/* Fuzz entry of the tokens file: what is taken is bounded and would be written as it stands. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/token_list.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct token_list list;
    char *text = malloc(len + 1), line[POLICY_TOKEN_LINE];
    const char *why;
    unsigned number;
    int64_t at_s;

    if (text == NULL)
        return 0;
    memcpy(text, bytes, len);
    text[len] = '\0';
    if (policy_token_list_parse(text, len, &list, &number, &why)) {
        for (uint32_t i = 0; i < list.n; i++) {
            size_t n = policy_token_line(&list.item[i], line);

            if (n >= sizeof line || list.item[i].role == ROLE_NONE ||
                memmem(text, len, line, n - 1) == NULL)
                abort();
        }
    } else if (list.n != 0 || why == NULL) {
        abort();
    }
    if (policy_token_expiry(text, 1767323045, &at_s) == NULL && at_s != 0 && at_s <= 1767323045)
        abort();
    free(text);
    return 0;
}
