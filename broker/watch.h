/* Run directories whose dialog somebody looks at: the kernel tells of changes, we tell on. */
#ifndef BROKER_WATCH_H
#define BROKER_WATCH_H

#include <stdint.h>

struct broker;
struct watches;

/* NULL: no memory. Where the kernel has no inotify left, every RUN_WATCH answers BUSY. */
struct watches *
watches_new(struct broker *b);
void
watches_free(struct watches *all);

/* A worker is gone: its watches with it. */
void
watches_end_peer(struct watches *all, uint64_t peer);

#endif
