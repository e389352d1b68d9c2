/* What the children are given: their programs, their configurations, the scoreboard. */
#ifndef MASTER_HANDOVER_H
#define MASTER_HANDOVER_H

#include "common/handoff.h"
#include "master/account.h"
#include "master/listener.h"
#include "master/settings.h"

struct handover {
    struct worker_config worker; /* `number` is filled in per worker */
    struct broker_config broker;
    int scoreboard; /* memfd, owned */
    char worker_program[HANDOFF_PATH];
    char broker_program[HANDOFF_PATH];
};

/* Version of the server, "1.1.0". */
const char *handover_version(void);

/* A role program: in the build tree (its folder there) beside our own executable, in an installed
 * tree that was moved as a whole, or where it was installed. 0 or -ENOENT. */
int handover_find_program(const char *tree_dir, const char *name, char ret[HANDOFF_PATH]);

/* Make everything from the settings. The token becomes a keyed hash and is wiped from
 * `s` and from the environment block. 0 or -EINVAL with `ret_error`. */
int handover_new(struct settings *s, const struct account *a, const struct listeners *l,
                 struct handover *ret, char ret_error[SETTINGS_ERROR_SIZE]);

/* A new token under the same key; wiped from `token`. */
void handover_set_token(struct handover *h, char token[POLICY_TOKEN_MAX]);

/* The token of the program before this one, of which only this is known. */
void handover_keep_token(struct handover *h, const uint8_t key[32], const uint8_t digest[32]);

/* A sealed memfd (above SPAWN_FD_FLOOR) with the configuration. Descriptor or -errno.
 */
int handover_worker_config(const struct handover *h, uint32_t number);
int handover_broker_config(const struct handover *h);

/* Descriptors a worker may need at once: RLIMIT_NOFILE for it. */
uint32_t handover_worker_fds(const struct handover *h);

#endif
