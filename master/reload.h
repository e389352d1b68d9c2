/* SIGHUP: what is read again while the server runs, which is files only, and who is told. */
#ifndef MASTER_RELOAD_H
#define MASTER_RELOAD_H

#include "master/children.h"
#include "master/handover.h"

/* What is read again, and who is told; all of it stays the caller's. 0 or -ENOMEM. */
int reload_init(struct event_base *base, const struct settings *s, struct handover *h,
                struct children *cs);

/* Read the files and tell: the broker, then the workers. */
void reload_begin(void);

/* The broker is ready, or has taken a configuration: if a reload waited for it, the workers are
 * told now. */
void reload_broker_ready(void);

/* Part of reload_begin: read the token file, the tokens file and the file of origins again into
 * what the children are told. One that is bad changes nothing: its old content stays in force, and
 * the log says why. True: what let somebody in until now does so no more, or not as it did. */
bool reload_files(const struct settings *s, struct handover *h);

#endif
