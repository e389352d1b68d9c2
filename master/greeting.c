/* What the server says of itself: where it listens, which fences are up, what they
 * stopped. */
#include "master/greeting.h"

#include <stdio.h>
#include <string.h>

#include "common/sandbox.h"
#include "master/child.h"

#define FENCE_BITS 32

static void
print_address(const struct listener *l, const char *base_path)
{
    if (strncmp(l->label, "unix:", 5) == 0)
        printf("[Server] Listening on %s\n", l->label);
    else
        printf("[Server] Listening on http://%s%s/\n", l->label, base_path);
}

static void
print_set(uint32_t fences)
{
    bool first = true;

    for (int bit = 0; bit < FENCE_BITS; bit++) {
        const char *name = sandbox_fence_name(1u << bit);

        if (name == NULL || (fences & 1u << bit) == 0)
            continue;
        printf("%s%s", first ? "" : ", ", name);
        first = false;
    }
}

static void
print_missing(uint32_t fences)
{
    bool first = true;

    for (int bit = 0; bit < FENCE_BITS; bit++) {
        const char *name = sandbox_fence_name(1u << bit);
        const char *reason = name != NULL ? sandbox_fence_reason(1u << bit) : NULL;

        if (name == NULL || (fences & 1u << bit) != 0)
            continue;
        printf("%s%s%s%s%s", first ? "; missing: " : ", ", name,
               reason != NULL ? " (" : "", reason != NULL ? reason : "",
               reason != NULL ? ")" : "");
        first = false;
    }
}

void
greeting_print(const struct listeners *l, const char *base_path,
               const struct child *children, uint32_t n_children)
{
    uint32_t workers = UINT32_MAX; /* what every one of them has */

    for (uint32_t i = 1; i < n_children; i++)
        workers &= children[i].fences;
    printf("[Server] Fences: workers: ");
    print_set(workers);
    print_missing(workers);
    printf("; broker: ");
    print_set(children[0].fences);
    printf("\n");
    for (size_t i = 0; i < l->n; i++)
        print_address(&l->item[i], base_path);
    fflush(stdout);
}
