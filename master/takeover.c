/* What one master leaves to the next when the program is exchanged in place. */
#include "master/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "master/listener_internal.h"
#include "master/spawn.h"

int
takeover_seal(const struct handover *h, const struct listeners *l, bool kept_token,
              const struct child *children, uint32_t n_children)
{
    struct takeover t;
    int fd;

    memset(&t, 0, sizeof(t));
    t.version = TAKEOVER_VERSION;
    t.inherited = l->inherited;
    t.kept_token = kept_token;
    t.tokens_there = h->tokens_there;
    t.unix_dev = l->unix_dev;
    t.unix_ino = l->unix_ino;
    if (kept_token)
        memcpy(t.token_proof, handover_single_proof(h), sizeof(t.token_proof));
    for (size_t i = 0; i < l->n; i++)
        t.listeners[t.n_listeners++] = l->item[i].fd;
    for (uint32_t i = 0; i < n_children; i++)
        if (children[i].pid > 0)
            t.children[t.n_children++] = (struct takeover_child){
                children[i].pid, children[i].number, children[i].control, children[i].output};
    fd = handoff_seal("takeover", &t, sizeof(t));
    explicit_bzero(&t, sizeof(t));
    return fd < 0 ? fd : spawn_raise_fd(fd);
}

static int
keep_fd(int fd, bool keep)
{
    return fcntl(fd, F_SETFD, keep ? 0 : FD_CLOEXEC) == 0 ? 0 : -errno;
}

static int
keep_all(const struct takeover *t, bool keep)
{
    int status = 0;

    for (uint32_t i = 0; status == 0 && i < t->n_listeners; i++)
        status = keep_fd(t->listeners[i], keep);
    for (uint32_t i = 0; status == 0 && i < t->n_children; i++) {
        status = keep_fd(t->children[i].control, keep);
        if (status == 0)
            status = keep_fd(t->children[i].output, keep);
    }
    return status;
}

static int
check(const struct takeover *t)
{
    return t->n_listeners >= 1 && t->n_listeners <= HANDOFF_LISTENERS &&
                   t->n_children <= 1 + LIMIT_WORKERS
               ? 0
               : -EBADMSG;
}

int
takeover_keep(int fd, bool keep)
{
    struct takeover t;
    int status = pread(fd, &t, sizeof(t), 0) == (ssize_t)sizeof(t) ? keep_all(&t, keep) : -EIO;

    explicit_bzero(&t, sizeof(t));
    return status == 0 ? keep_fd(fd, keep) : status;
}

int
takeover_read(int fd, struct takeover *ret)
{
    int status = handoff_read_sealed(fd, TAKEOVER_VERSION, ret, sizeof(*ret));

    return status == 0 ? check(ret) : status;
}

int
takeover_listeners(const struct takeover *t, const struct settings *s, struct listeners *ret,
                   char ret_error[SETTINGS_ERROR_SIZE])
{
    memset(ret, 0, sizeof(*ret));
    ret->inherited = t->inherited;
    ret->loopback = true;
    ret->unix_dev = t->unix_dev;
    ret->unix_ino = t->unix_ino;
    for (uint32_t i = 0; i < t->n_listeners; i++) {
        int status = listener_take(s, ret, t->listeners[i], ret_error);

        if (status != 0)
            return status;
    }
    return 0;
}
