/* Records of names: taken from a sealed memfd, checked for shape, walked. */
#include "worker/launch_offer.h"

#include <stdlib.h>
#include <string.h>

#include "worker/file_slice.h"

static unsigned
fields_of(char kind)
{
    return kind == 'p' ? 4 : 1;
}

/* Does every record end within the bytes? */
static bool
is_whole(const char *bytes, size_t len)
{
    size_t at = 0;

    while (at < len) {
        char kind = bytes[at++];

        for (unsigned i = fields_of(kind); i > 0; i--) {
            const char *nul = at < len ? memchr(bytes + at, '\0', len - at) : NULL;

            if (!nul)
                return false;
            at = (size_t)(nul - bytes) + 1;
        }
    }
    return true;
}

bool
launch_offer_take(struct launchables_list *list, const struct answer_launchables *answer, int fd)
{
    char *bytes = NULL;
    size_t len = 0;

    if (!answer || answer->status != ANSWER_OK)
        return false;
    list->has_catalog = answer->has_catalog;
    list->has_local = answer->has_local;
    if (answer->generation == list->generation)
        return true;
    if (answer->size > 0) {
        bytes = fd >= 0 ? file_slice_whole(fd, answer->size, &len) : NULL;
        if (!bytes || !is_whole(bytes, len)) {
            free(bytes);
            return false;
        }
    }
    free(list->bytes);
    list->bytes = bytes;
    list->len = len;
    list->generation = answer->generation;
    return true;
}

bool
launch_offer_next(const struct launchables_list *list, char kind, const char **at,
                  const char *fields[4])
{
    const char *p = *at ? *at : list->bytes, *end = list->bytes + list->len;

    while (p && p < end) {
        char found = *p++;
        unsigned n = fields_of(found);

        for (unsigned i = 0; i < n; i++) {
            fields[i] = p;
            p += strlen(p) + 1;
        }
        *at = p;
        if (found == kind)
            return true;
    }
    return false;
}

static bool
has(const void *ctx, char kind, const char *name)
{
    const char *at = NULL, *fields[4];

    while (launch_offer_next(ctx, kind, &at, fields))
        if (strcmp(fields[0], name) == 0)
            return true;
    return false;
}

struct launch_offer
launch_offer_of(const struct launchables_list *list)
{
    return (struct launch_offer){has, list->has_catalog, list};
}
