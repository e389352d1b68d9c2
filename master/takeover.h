/* What one master leaves to the next when the program is exchanged in place: the same process
 * with the same listeners and children, and nothing else of its memory. */
#ifndef MASTER_TAKEOVER_H
#define MASTER_TAKEOVER_H

#include "master/child.h"
#include "master/handover.h"
#include "master/listener.h"

#define TAKEOVER_VERSION 2u /* first of struct takeover; a master of another one refuses */

struct takeover_child {
    int32_t pid;
    uint32_t number; /* 0: the broker */
    int32_t control, output;
};

struct takeover {
    uint32_t version;
    uint32_t n_listeners;
    uint32_t n_children;
    uint8_t inherited;  /* the listeners were systemd's */
    uint8_t kept_token; /* of SSEBENCH_WEBUI_TOKEN: known by its proof only */
    uint8_t tokens_there; /* the tokens file was read: its absence opens nothing */
    uint8_t reserved;
    uint64_t unix_dev, unix_ino;
    int32_t listeners[HANDOFF_LISTENERS];
    uint8_t token_proof[32];
    struct takeover_child children[1 + LIMIT_WORKERS];
};

/* A sealed memfd that names these listeners and the living of these children. Descriptor or
 * -errno. */
int takeover_seal(const struct handover *h, const struct listeners *l, bool kept_token,
                  const struct child *children, uint32_t n_children);

/* Should what the sealed memfd `fd` names outlive the next exec, itself included? */
int takeover_keep(int fd, bool keep);

/* Read it; closes `fd`. 0 or -errno. */
int takeover_read(int fd, struct takeover *ret);

/* The listeners, held to the settings' rules as any others. 0 or -EINVAL. */
int takeover_listeners(const struct takeover *t, const struct settings *s,
                       struct listeners *ret, char ret_error[SETTINGS_ERROR_SIZE]);

#endif
