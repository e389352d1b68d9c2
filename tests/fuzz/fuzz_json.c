/* Fuzz entry of JSON: any bytes end in a tree that can be walked, or in a reason. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_read.h"
#include "common/utf8.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static size_t
walk(const struct json_value *v, unsigned depth)
{
    size_t n = 0, members = 0;

    if (depth > 200)
        abort();
    if (v->type == JSON_STRING && (v->text[v->len] != '\0' || !utf8_valid(v->text, v->len)))
        abort();
    if (v->key != NULL && !utf8_valid(v->key, v->key_len))
        abort();
    json_text(v);
    for (const struct json_value *c = v->first; c != NULL; c = c->next, members++) {
        if (v->type != JSON_ARRAY && v->type != JSON_OBJECT)
            abort();
        n += walk(c, depth + 1);
        if (v->type == JSON_OBJECT && strlen(c->key) == c->key_len &&
            json_get(v, c->key) == NULL)
            abort();
    }
    if ((v->type == JSON_ARRAY || v->type == JSON_OBJECT) && members != v->len)
        abort();
    return n + 1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len > 0 ? len : 1);
    struct json_doc *lax, *strict;
    const char *error = NULL;

    if (text == NULL || len > 65536) {
        free(text);
        return 0;
    }
    memcpy(text, bytes, len);
    lax = json_parse(text, len, false, &error);
    if (lax == NULL && error == NULL)
        abort();
    strict = json_parse(text, len, true, NULL);
    if (strict != NULL && lax == NULL)
        abort(); /* strict takes less, never more */
    if (lax != NULL)
        walk(json_root(lax), 0);
    if (strict != NULL)
        walk(json_root(strict), 0);
    json_doc_free(lax);
    json_doc_free(strict);
    free(text);
    return 0;
}
