/* SIGUSR2: this process becomes the program that now lies where it was started from. */
#ifndef MASTER_UPGRADE_H
#define MASTER_UPGRADE_H

#include <sys/types.h>

#include "master/child.h"
#include "master/handover.h"
#include "master/listener.h"
#include "master/settings.h"

struct event_base;

struct upgrade {
    struct event_base *base;
    const char *program; /* path */
    const struct settings *settings;
    const struct handover *handover;
    const struct listeners *listeners;
    const struct child *children;
    uint32_t n_children;
    bool kept_token; /* the token came in SSEBENCH_WEBUI_TOKEN and is known by its proof */
    bool (*wanted)(void); /* false: the server stops */
};

/* Ask the program whether it can go on from here (--check-take-over). It refuses, cannot be
 * started or is silent: a line in the log, and nothing has changed. */
void upgrade_begin(const struct upgrade *u);

/* Was that the end of the program that was asked? If it agrees and is `wanted` still, the process
 * is the new program soon, with all signals of upgrade_block blocked. */
bool upgrade_take_end(pid_t pid, int status);

/* Signals must wait while there is nobody to handle them. */
void upgrade_block(bool block);

#endif
