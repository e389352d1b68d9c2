/* SIGHUP: what is read again while the server runs, which is files only. */
#ifndef MASTER_RELOAD_H
#define MASTER_RELOAD_H

#include "master/handover.h"

/* Read the token file, the tokens file and the file of origins again into what the children are
 * told. One that is bad changes nothing: its old content stays in force, and the log says why. True:
 * what let somebody in until now does so no more, or not as it did. */
bool reload_files(const struct settings *s, struct handover *h);

#endif
