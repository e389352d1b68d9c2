/*
 * What the checkout offers to launch: models, agents, plugins, local tasks.
 *
 * The YAML files are parsed here, by libyaml, with bounds. Rule R1 keeps bytes of clients,
 * containers and run directories out of the broker; models/ and plugins.yaml are none of
 * these: whoever can write them can write agents/ and the command itself, which the broker
 * executes. And the broker has to know the names without taking a worker's word for them.
 */
#ifndef BROKER_LAUNCHABLES_H
#define BROKER_LAUNCHABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/launch.h"

struct launchables;

/* `checkout` and `local_tasks` are absolute. NULL: no memory. */
struct launchables *
launchables_new(const char *checkout, const char *local_tasks, bool has_catalog);
void
launchables_free(struct launchables *l);

/* Read the checkout again if that was LIMIT_LAUNCHABLES_AGE_MS ago or more. What cannot be
 * read lists nothing; what cannot for want of memory or descriptors leaves what was known. */
void
launchables_refresh(struct launchables *l, uint64_t now_ms);

/* Was the checkout ever read? */
bool
launchables_known(const struct launchables *l);

/* The records of common/messages.h as they are now; the generation changes with them. */
const char *
launchables_records(const struct launchables *l, size_t *ret_len, uint64_t *ret_generation);

bool
launchables_has_local(const struct launchables *l);

/* The questions of policy/launch.h, answered from here; borrows `l`. */
struct launch_offer
launchables_offer(const struct launchables *l);

#endif
