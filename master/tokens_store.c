/* Changing the tokens file durably, as whoever may, never through a link. */
#include "master/tokens_store.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY ".tokens.new" /* under the lock there is but one */
#define LOCK ".tokens.lock"      /* stays: who waits holds it open */
#define LOCK_TRIES 100
#define LOCK_PAUSE_US 100000

static int
fail(const struct tokens_store *store, char *error, const char *what)
{
    return settings_refuse(error, "%s: %s: %s.", settings_show(store->path), what,
                           strerror(errno));
}

/* A file that only who may write here can open: whoever could lock what others read as well, the
 * directory or the tokens, could keep a token from being revoked. A new one belongs to whom the
 * directory belongs to; one that is there is never given away. */
static int
open_lock(const struct tokens_store *store)
{
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(store->dir, LOCK, flags | O_CREAT | O_EXCL, 0600);

    if (fd >= 0 && geteuid() == 0 && fchown(fd, store->uid, store->gid) != 0) {
        close(fd);
        return -1;
    }
    return fd >= 0 || errno != EEXIST ? fd : openat(store->dir, LOCK, flags);
}

static int
lock(struct tokens_store *store, char *error)
{
    store->lock = open_lock(store);
    if (store->lock < 0)
        return fail(store, error, LOCK " beside it cannot be opened");
    for (int i = 0; i < LOCK_TRIES; i++, usleep(LOCK_PAUSE_US)) {
        if (flock(store->lock, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK)
            return fail(store, error, LOCK " beside it cannot be locked");
    }
    return settings_refuse(error,
                           "%s: another program has held the lock beside it for 10 seconds. "
                           "Wait for the other `token` command, then try again.",
                           settings_show(store->path));
}

/* A file to be made belongs to whom its directory belongs to, and is read by the group that the
 * directory was given: the server's, of root's /etc/ssebench-webui. */
static int
take_directory(struct tokens_store *store, char *error)
{
    struct stat st;

    if (fstat(store->dir, &st) != 0)
        return fail(store, error, "its directory cannot be looked at");
    store->uid = st.st_uid;
    store->gid = st.st_gid;
    store->mode = st.st_uid == 0 && st.st_gid != 0 ? 0640 : 0600;
    return 0;
}

static int
read_text(struct tokens_store *store, int fd, char *error)
{
    struct stat st;
    ssize_t n = 1;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return settings_refuse(error, "%s is not a regular file. Name one.",
                               settings_show(store->path));
    store->there = true;
    store->uid = st.st_uid;
    store->gid = st.st_gid;
    store->mode = st.st_mode & 07777;
    while (n > 0 && store->len < sizeof(store->text)) {
        n = read(fd, store->text + store->len, sizeof(store->text) - store->len);
        store->len += n > 0 ? (size_t)n : 0;
    }
    return n < 0 ? fail(store, error, "cannot be read") : 0;
}

static int
read_file(struct tokens_store *store, char *error)
{
    int fd = openat(store->dir, store->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const char *why;
    unsigned line;
    int status;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && errno == ELOOP)
        return settings_refuse(error,
                               "%s is a link. Change the file that it leads to: set "
                               "SSEBENCH_WEBUI_TOKENS to that one.",
                               settings_show(store->path));
    if (fd < 0)
        return fail(store, error, "cannot be opened");
    status = read_text(store, fd, error);
    close(fd);
    if (status == 0 &&
        !policy_token_list_parse(store->text, store->len, &store->list, &line, &why))
        status = settings_refuse(error, "%s, line %u: %s. Correct or delete the line.",
                                 settings_show(store->path), line, why);
    return status;
}

int
tokens_store_open(const char *path, bool to_change, struct tokens_store *ret,
                  char ret_error[SETTINGS_ERROR_SIZE])
{
    char folder[HANDOFF_PATH];
    int status;

    memset(ret, 0, sizeof(*ret));
    ret->lock = -1;
    ret->path = path;
    ret->name = strrchr(path, '/') + 1;
    strcpy(folder, path);
    ret->dir = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret->dir < 0)
        return settings_refuse(ret_error,
                               "%s: its directory cannot be opened: %s. Make it, or set "
                               "SSEBENCH_WEBUI_TOKENS as the server has it.",
                               settings_show(path), strerror(errno));
    status = take_directory(ret, ret_error);
    if (status == 0 && to_change)
        status = lock(ret, ret_error);
    return status == 0 ? read_file(ret, ret_error) : status;
}

void
tokens_store_close(struct tokens_store *store)
{
    if (store->dir >= 0)
        close(store->dir);
    if (store->lock >= 0)
        close(store->lock);
    store->dir = store->lock = -1;
}

static int
write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

int
tokens_store_write(struct tokens_store *store, const char *text, size_t len,
                   char ret_error[SETTINGS_ERROR_SIZE])
{
    int fd, status = 0;

    /* What a command left behind that was killed; a link is removed, not followed. */
    unlinkat(store->dir, TEMPORARY, 0);
    fd = openat(store->dir, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                0600);
    if (fd < 0)
        return fail(store, ret_error, "nothing can be written beside it");
    if (geteuid() == 0 && fchown(fd, store->uid, store->gid) != 0)
        status = fail(store, ret_error, "the new file cannot be given to its owner");
    else if (write_all(fd, text, len) != 0 || fchmod(fd, store->mode) != 0 || fsync(fd) != 0)
        status = fail(store, ret_error, "cannot be written");
    else if (renameat(store->dir, TEMPORARY, store->dir, store->name) != 0 ||
             fsync(store->dir) != 0)
        status = fail(store, ret_error, "cannot be replaced");
    close(fd);
    if (status != 0)
        unlinkat(store->dir, TEMPORARY, 0);
    return status;
}
