/* Which account the confined processes become when the server is started as root. */
#ifndef MASTER_ACCOUNT_H
#define MASTER_ACCOUNT_H

#include <stdint.h>

#include "master/settings.h"

#define ACCOUNT_STAY UINT32_MAX /* no change of account */

/* Started by an ordinary user, all four are ACCOUNT_STAY. */
struct account {
    uint32_t worker_uid, worker_gid;
    uint32_t broker_uid, broker_gid;
    uint32_t own_uid,
        own_gid; /* whose server this is: owns the state, is the admitted peer */
};

/* Decide by SSEBENCH_WEBUI_USER and who started us. 0 or -EINVAL with `ret_error`. */
int account_choose(const struct settings *s, struct account *ret,
                   char ret_error[SETTINGS_ERROR_SIZE]);

#endif
