/* What a launch may ask for: one check with the contract's texts, asked by the worker for its
 * answer and by the broker again for safety (design R3). Pure. */
#ifndef POLICY_LAUNCH_H
#define POLICY_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAUNCH_NAME_SIZE 129u   /* agent, task: 128 bytes and NUL */
#define LAUNCH_MODEL_SIZE 257u
#define LAUNCH_PLUGIN_SIZE 65u
#define LAUNCH_PLUGINS 16u
#define LAUNCH_TIMEOUT_MAX 604800 /* seconds */
#define LAUNCH_NUMBER_ABSENT (-1)
#define LAUNCH_NUMBER_BAD (-2)

enum launch_mode { LAUNCH_MODE_ABSENT, LAUNCH_MODE_SANDBOX, LAUNCH_MODE_SIDECAR,
                   LAUNCH_MODE_BAD };
enum launch_source { LAUNCH_SOURCE_ABSENT, LAUNCH_SOURCE_LOCAL, LAUNCH_SOURCE_REMOTE,
                     LAUNCH_SOURCE_BAD };
enum launch_egress { LAUNCH_EGRESS_ABSENT, LAUNCH_EGRESS_RESTRICTED, LAUNCH_EGRESS_OPEN,
                     LAUNCH_EGRESS_BAD };

/* A request, as far as it could be read. Strings are NUL-padded; "": absent. One that did
 * not fit is told by its `_long` flag: no such name is listed. */
struct launch_fields {
    int32_t timeout;    /* seconds, or LAUNCH_NUMBER_ABSENT, LAUNCH_NUMBER_BAD */
    int32_t difficulty; /* the same */
    uint8_t mode, source, egress; /* the enums above */
    uint8_t plugins_bad;          /* 1: no list of names */
    uint8_t n_plugins;
    uint8_t agent_long, model_long, task_long; /* 1 */
    char agent[LAUNCH_NAME_SIZE];
    char task[LAUNCH_NAME_SIZE];
    char model[LAUNCH_MODEL_SIZE];
    char plugins[LAUNCH_PLUGINS][LAUNCH_PLUGIN_SIZE];
    uint8_t padding[5];
};

/* What is listed. The question: is this name among those of its kind (a letter of the records
 * in common/messages.h)? */
struct launch_offer {
    bool (*has)(const void *ctx, char kind, const char *name);
    bool has_catalog;
    const void *ctx;
};

/* The agent that needs no model (contract 1.1). */
bool
policy_launch_is_reference(const struct launch_fields *f);

/* The exact text of the first rule that the request breaks, in the contract's order (10.5), or
 * NULL: it may be launched. */
const char *
policy_launch_refusal(const struct launch_fields *f, const struct launch_offer *offer);

/* Is every byte of the struct in form: strings terminated and padded, enums and numbers in
 * range, nothing marked bad? A worker that has checked sends no other. */
bool
policy_launch_well_formed(const struct launch_fields *f);

/* 36 characters of a version 4 UUID in lower case. */
bool
policy_launch_id_valid(const char *id);

#endif
