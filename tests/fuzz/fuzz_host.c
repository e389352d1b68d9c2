/* Fuzz entry of Host and Origin: what parses is canonical, and says the same when read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/host.h"
#include "policy/origin.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
check_host(const struct host *h, const char *text, size_t len)
{
    char again[300];
    struct host other;
    int n = snprintf(again, sizeof again, h->kind == HOST_IPV6 ? "[%s]" : "%s", h->name);

    if (h->len != strlen(h->name) || h->len == 0 || h->port > 65535)
        abort();
    if (memchr(text, '@', len) || memchr(text, '/', len) || memchr(text, '%', len) ||
        memchr(text, '\0', len) || memchr(text, ' ', len) || memchr(text, ',', len))
        abort(); /* two parsers could read these differently */
    if (h->port >= 0)
        n += snprintf(again + n, sizeof again - (size_t)n, ":%d", h->port);
    if (!policy_host_parse(again, (size_t)n, &other) || other.port != h->port ||
        other.kind != h->kind || strcmp(other.name, h->name) != 0)
        abort();
    if (policy_host_is_loopback(h) != policy_host_is_loopback(&other))
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len + 1); /* exactly as long: reading past the end is seen */
    char canonical[POLICY_ORIGIN_SIZE], twice[POLICY_ORIGIN_SIZE];
    struct origin origin;
    struct host host;

    if (text == NULL)
        return 0;
    memcpy(text, bytes, len);
    text = realloc(text, len > 0 ? len : 1);
    if (policy_host_parse(text, len, &host))
        check_host(&host, text, len);
    if (policy_origin_parse(text, len, &origin) &&
        (origin.host.port < 1 || memchr(text, '@', len) != NULL))
        abort();
    if (policy_origin_normalise(text, len, canonical)) {
        if (!policy_origin_normalise(canonical, strlen(canonical), twice) ||
            strcmp(canonical, twice) != 0)
            abort();
        if (!policy_origin_parse(canonical, strlen(canonical), &origin) ||
            !policy_origin_listed(&origin, &canonical, 1) ||
            !policy_origin_same_host(&origin, &origin.host))
            abort();
    }
    free(text);
    return 0;
}
