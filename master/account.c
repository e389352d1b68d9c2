/* Which account the confined processes become when the server is started as root. */
#include "master/account.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define DEDICATED "ssebench-webui"
#define NOBODY                                                                         \
    65534u /* the kernel's overflow id, where the account file has no `nobody` */

static void
stay(struct account *a)
{
    a->worker_uid = a->worker_gid = a->broker_uid = a->broker_gid = ACCOUNT_STAY;
    a->own_uid = geteuid();
    a->own_gid = getegid();
}

/* The account was named: everything becomes it, and the server is its server. */
static int
choose_named(const char *name, struct account *a, char *error)
{
    const struct passwd *p = getpwnam(name);

    if (p == NULL)
        return settings_refuse(
            error,
            "SSEBENCH_WEBUI_USER=%s is not an account of this machine. "
            "Make it (useradd --system), or leave the setting unset.",
            settings_show(name));
    if (geteuid() != 0) {
        if (p->pw_uid == geteuid())
            return 0;
        return settings_refuse(
            error,
            "SSEBENCH_WEBUI_USER=%s needs a server that is started as "
            "root. Start it as root, or as that account without the "
            "setting.",
            settings_show(name));
    }
    if (p->pw_uid == 0)
        return settings_refuse(
            error,
            "SSEBENCH_WEBUI_USER=%s is root. Name an account that is "
            "not, or leave the setting unset.",
            settings_show(name));
    a->worker_uid = a->broker_uid = a->own_uid = p->pw_uid;
    a->worker_gid = a->broker_gid = a->own_gid = p->pw_gid;
    return 0;
}

int
account_choose(const struct settings *s, struct account *ret,
               char ret_error[SETTINGS_ERROR_SIZE])
{
    const struct passwd *p;

    stay(ret);
    if (s->user[0] != '\0')
        return choose_named(s->user, ret, ret_error);
    if (geteuid() != 0)
        return 0;
    /* Unasked, only the workers change account: the broker runs the `ssebench` command,
     * which needs Docker and the checkout as whoever started the server has them. */
    p = getpwnam(DEDICATED);
    if (p == NULL || p->pw_uid == 0)
        p = getpwnam("nobody");
    ret->worker_uid = p != NULL && p->pw_uid != 0 ? p->pw_uid : NOBODY;
    ret->worker_gid = p != NULL && p->pw_gid != 0 ? p->pw_gid : NOBODY;
    return 0;
}
