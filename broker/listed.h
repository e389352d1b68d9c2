/*
 * What a call of `ssebench runs list` gave, and whether it names a run. Its bytes are searched,
 * not parsed: an ID has no character that JSON would escape, so a run is listed only where its
 * ID stands in them, quoted. That the ID stands there proves no more than that somebody wrote
 * it, unless it is one that we drew (122 random bits).
 */
#ifndef BROKER_LISTED_H
#define BROKER_LISTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listed {
    const char *bytes;  /* NULL: the call failed, and nothing is known */
    size_t size;
    uint64_t called_ms; /* when the call began */
};

/* Map the listing in `fd` (-1: the call failed). */
struct listed
listed_map(int fd, size_t size, uint64_t called_ms);
void
listed_unmap(struct listed *l);

bool
listed_names(const struct listed *l, const char *run_id);

/* The call succeeded, its text is whole, and the run is not in it. */
bool
listed_lacks(const struct listed *l, const char *run_id);

#endif
