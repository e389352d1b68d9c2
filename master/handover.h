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
    uint32_t last_number; /* of a token */
    bool tokens_there;    /* the tokens file was read once */
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

/* The tokens in force from now on: `single`, "" for none, is wiped; `named`; either NULL: as they
 * were. What stays the same keeps its number. True: something changed. */
bool handover_set_tokens(struct handover *h, char single[POLICY_TOKEN_MAX],
                         const struct token_list *named);

/* The single token of the program before this one, of which only its proof is known. */
void handover_keep_token(struct handover *h, const uint8_t proof[32]);

/* The proof of the single token, or NULL: there is none. */
const uint8_t *handover_single_proof(const struct handover *h);

/* A sealed memfd (above SPAWN_FD_FLOOR) with the configuration. Descriptor or -errno.
 */
int handover_worker_config(const struct handover *h, uint32_t number);
int handover_broker_config(const struct handover *h);

/* Descriptors a worker may need at once: RLIMIT_NOFILE for it. */
uint32_t handover_worker_fds(const struct handover *h);

#endif
