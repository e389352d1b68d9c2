/* The listening sockets: made from the settings, or taken over from systemd. */
#ifndef MASTER_LISTENER_H
#define MASTER_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "master/settings.h"

#define LISTENER_LABEL_SIZE 160u /* "unix:" and 107 bytes, "[ipv6]:port" */

struct listener {
    int fd;                          /* owned; CLOEXEC, above LISTENER_FD_FLOOR */
    char label[LISTENER_LABEL_SIZE]; /* "127.0.0.1:3001", "[::1]:3001", "unix:/path" */
};

struct listeners {
    struct listener item[HANDOFF_LISTENERS];
    size_t n;
    bool is_unix;   /* all of them; a mix is refused */
    bool loopback;  /* every address is a loopback one, or a Unix socket */
    bool inherited; /* from systemd: not ours to unlink */
    dev_t
        unix_dev; /* identity of the socket file we made, so that only it is removed */
    ino_t unix_ino;
};

/* Listen as the settings say; with LISTEN_FDS for this process, on what was handed
 * instead. Refuses an address that is not loopback without a token. 0 or -EINVAL. */
int listener_open(const struct settings *s, struct listeners *ret,
                  char ret_error[SETTINGS_ERROR_SIZE]);

/* The rule alone, without binding anything (--check). */
int listener_check(const struct settings *s, char ret_error[SETTINGS_ERROR_SIZE]);

/* Close all, remove the socket file we made. */
void listener_close(struct listeners *l);

#endif
