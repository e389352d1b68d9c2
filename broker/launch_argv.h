/* A launch's command line: an argument vector, no shell, every value attached with `=`. */
#ifndef BROKER_LAUNCH_ARGV_H
#define BROKER_LAUNCH_ARGV_H

#include <stddef.h>

#include "common/handoff.h"
#include "policy/launch.h"

#define LAUNCH_ARGV_MAX 96u

struct launch_argv {
    char *at[LAUNCH_ARGV_MAX + 1]; /* NULL-terminated; words before the first own are borrowed */
    size_t n, n_borrowed;
};

/* Build it: `before` (NULL-terminated, borrowed), then `run` and its arguments in the order of
 * the contract (1.1). `local` and `catalog` are the server's own settings. 0 or -ENOMEM,
 * -E2BIG. Free with launch_argv_done in every case. */
int
launch_argv_build(struct launch_argv *v, char *const *before, const struct launch_fields *f,
                  const char *run_id, const char *local, const char *catalog);
void
launch_argv_done(struct launch_argv *v);

/* Words from `from` on, joined by blanks for people; what does not fit ends in "...". */
void
launch_argv_join(const struct launch_argv *v, size_t from, char *out, size_t size);

#endif
