/*
 * The tokens file as the command changes it: under a lock, whole or not at all. A new text is
 * written beside the file, forced to the disk and renamed over it.
 */
#ifndef MASTER_TOKENS_STORE_H
#define MASTER_TOKENS_STORE_H

#include <sys/types.h>

#include "master/settings.h"

struct tokens_store {
    int dir;
    int lock;            /* -1: not locked */
    const char *path;    /* borrowed */
    const char *name;    /* its last part */
    bool there;
    uid_t uid;           /* of the file, or of one to be made */
    gid_t gid;
    mode_t mode;
    struct token_list list;
    size_t len;          /* bytes of text */
    char text[POLICY_TOKEN_LIST_MAX + 1];
};

/* Read, and lock first when it is to be changed. 0; -EINVAL with `ret_error`. Close it in both
 * cases. */
int tokens_store_open(const char *path, bool to_change, struct tokens_store *ret,
                      char ret_error[SETTINGS_ERROR_SIZE]);
void tokens_store_close(struct tokens_store *store);

/* Write these bytes in its place. 0; -EINVAL with `ret_error`: nothing has changed. */
int tokens_store_write(struct tokens_store *store, const char *text, size_t len,
                       char ret_error[SETTINGS_ERROR_SIZE]);

#endif
