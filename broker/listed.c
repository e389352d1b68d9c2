/*
 * Which runs a listing names.
 * Distrusts: the CLI; its bytes are only searched.
 */
#include "broker/listed.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/messages.h"

struct listed
listed_map(int fd, size_t size, uint64_t called_ms)
{
    void *bytes = fd >= 0 && size > 0 ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0)
                                      : MAP_FAILED;

    return (struct listed){bytes != MAP_FAILED ? bytes : NULL, size, called_ms};
}

void
listed_unmap(struct listed *l)
{
    if (l->bytes != NULL)
        munmap((void *)l->bytes, l->size);
    l->bytes = NULL;
}

bool
listed_names(const struct listed *l, const char *run_id)
{
    char quoted[MESSAGE_ID_SIZE + 2];
    int n = snprintf(quoted, sizeof quoted, "\"%s\"", run_id);

    return l->bytes != NULL && memmem(l->bytes, l->size, quoted, (size_t)n) != NULL;
}

/* The CLI prints one object and a newline (contract 2.2): text that was cut ends elsewhere. */
static bool
is_whole(const struct listed *l)
{
    static const char end[] = "}\n";
    size_t len = sizeof end - 1;

    return l->bytes != NULL && l->size > len &&
           memcmp(l->bytes + l->size - len, end, len) == 0;
}

bool
listed_lacks(const struct listed *l, const char *run_id)
{
    return is_whole(l) && !listed_names(l, run_id);
}
