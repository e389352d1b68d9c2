/*
 * A results directory: which runs stand below it, and one of their files as a descriptor. The
 * rules are those of the server's broker (contract 2.10, 4.4), of which we share the
 * openings (common/open_beneath.h) and no more: it parses nothing, and this program does.
 */
#ifndef WORKER_EXPORT_RESULTS_H
#define WORKER_EXPORT_RESULTS_H

#include <stddef.h>
#include <stdint.h>

struct results_table;

/* Directories with a usable summary. A run's reference (struct finished_run) is an index. */
struct results {
    int root_fd; /* borrowed */
    char **dirs; /* owned; relative to the root */
    size_t n_dirs, cap_dirs;
    size_t n_skipped; /* directories that were left out because there are too many or too deep */
};

/* Walk everything below `root_fd` and read the summaries into `table`. 0 or -errno. */
int
results_read(struct results *r, int root_fd, struct results_table *table);
void
results_done(struct results *r);

/* A file of a run directory, opened for reading without following a link: a regular one of at
 * most `max` bytes. Descriptor; -ENOENT: none that may be read; -EFBIG; other -errno. */
int
results_open(const struct results *r, uint64_t ref, const char *name, uint64_t max,
             uint64_t *ret_size);

#endif
