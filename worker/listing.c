/* The CLI may hang, fail or print rubbish: the last good listing stays, the reason is kept. */
#include "worker/listing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/limits.h"
#include "worker/iso_time.h"
#include "worker/runs.h"

void
listing_init(struct listing *l)
{
    *l = (struct listing){.version = 1};
}

/* Replace the live runs by what the memfd holds, if that is a listing. False: for want of memory,
 * which says nothing about the listing. */
static bool
read_content(struct listing *l, int fd, uint64_t size)
{
    struct live_list list;
    const char *reason = "nothing was printed";
    bool want;
    void *map;

    errno = 0;
    map = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (map != MAP_FAILED && live_list_parse(map, (size_t)size, &list, &reason) == 0) {
        live_list_carry(&list, &l->live);
        live_list_done(&l->live);
        l->live = list;
        l->known = true;
        l->version++;
        l->rubbish_since_ms = 0;
        errno = 0;
    } else {
        l->rubbish = reason;
        if (l->rubbish_since_ms == 0)
            l->rubbish_since_ms = iso_time_now_ms();
    }
    want = errno == ENOMEM;
    if (map != MAP_FAILED)
        munmap(map, (size_t)size);
    return !want;
}

static void
note_failure(struct listing *l, const char *error, uint64_t failing_ms)
{
    int64_t since = iso_time_now_ms() - (int64_t)failing_ms;

    snprintf(l->error, sizeof l->error, "%s", error);
    if (l->failing_since_ms == 0 || failing_ms > 0)
        l->failing_since_ms = since;
}

void
listing_take(struct listing *l, const struct answer_runs_list *answer, int fd)
{
    if (answer == NULL) {
        note_failure(l, "The part of the server that runs the CLI is being restarted", 0);
        return;
    }
    if (answer->status == ANSWER_OK) {
        if (fd < 0 || read_content(l, fd, answer->size))
            l->generation = answer->generation;
    }
    if (answer->failing_ms > 0 || answer->status == ANSWER_FAILED ||
        answer->status == ANSWER_TIMEOUT)
        note_failure(l, answer->error[0] != '\0' ? answer->error : "The CLI failed",
                     answer->failing_ms);
    else
        l->failing_since_ms = 0;
    if (answer->status == ANSWER_OK)
        l->born_ms = iso_time_steady_ms() - (int64_t)answer->age_ms;
}

static void
describe_failure(struct listing *l, const char *error, const char *detail,
                 int64_t since_ms)
{
    char since[ISO_TIME_SIZE];

    iso_time_format(since_ms, since);
    snprintf(l->described, sizeof l->described, "%s%s (since %s)", error, detail, since);
}

bool
listing_failing(const struct listing *l)
{
    return l->failing_since_ms != 0 || l->rubbish_since_ms != 0;
}

void
listing_describe(struct listing *l, struct runs_listing *ret)
{
    ret->known = l->known;
    ret->supports_exec = !l->known || l->live.supports_exec;
    ret->backend = l->live.backend;
    ret->age_ms = l->known ? (uint64_t)(iso_time_steady_ms() - l->born_ms) : 0;
    ret->error = NULL;
    if (!listing_failing(l))
        return;
    if (l->failing_since_ms != 0)
        describe_failure(l, l->error, "", l->failing_since_ms);
    else
        describe_failure(l, "The CLI's run list is not usable: ", l->rubbish,
                         l->rubbish_since_ms);
    ret->error = l->described;
}
