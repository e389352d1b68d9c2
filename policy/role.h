/*
 * What a token's holder may do: three roles, each including the one before, and the one table of
 * what each deed needs. The worker asks it for every request (policy/access.h), the broker for
 * every message (broker/dispatch.c). Pure.
 */
#ifndef POLICY_ROLE_H
#define POLICY_ROLE_H

#include <stdbool.h>

enum role {
    ROLE_NONE,
    ROLE_VIEW,    /* what a hosted server shows */
    ROLE_OPERATE, /* and launch, cancel, clear, stop, remove, the report on the host */
    ROLE_FULL,    /* and what runs commands in a container: terminals, the assistant */
    ROLES
};

/* What a request or a message amounts to. */
enum deed {
    DEED_VIEW,      /* lists, documents, dialogs, logs, what can be launched, how launches go */
    DEED_OPERATE,   /* launch, cancel and clear launches, stop and remove runs */
    DEED_DOCTOR,    /* the command's report on its host */
    DEED_TERMINAL,  /* open, join and end terminals */
    DEED_ASSISTANT, /* everything of OpenCode in a container */
    DEED_OTHER,     /* a change that no route knows: for nobody but who may do all */
    DEEDS
};

/* The least role that may do it. */
enum role
policy_role_needed(enum deed deed);

bool
policy_role_allows(enum role role, enum deed deed);

/* "view", "operate", "full"; "none" for anything else. */
const char *
policy_role_name(enum role role);

/* ROLE_NONE: no such name. */
enum role
policy_role_parse(const char *name);

#endif
