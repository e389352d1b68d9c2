/* Starting, watching, restarting, reloading and stopping the broker and the workers. */
#ifndef MASTER_SUPERVISE_H
#define MASTER_SUPERVISE_H

#include "master/handover.h"
#include "master/listener.h"
#include "master/settings.h"
#include "master/takeover.h"

/* Serve until a signal ends it or a child cannot be kept alive. Says "Listening" on
 * stdout once every child is ready. Returns the exit status: 0 after SIGTERM or SIGINT,
 * else 1. `program`: what SIGUSR2 exchanges this for. `t`: what the program before left, or
 * NULL. */
int supervise_run(const struct settings *s, struct handover *h, struct listeners *l,
                  const char *program, const struct takeover *t);

#endif
