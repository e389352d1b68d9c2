/* The file by which a running server is found and asked on its host. */
#include "master/status_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/scoreboard.h"

static struct {
    struct status s;
    int dir, fd;
    char name[16];  /* our pid */
    uint64_t asked; /* how often it was written */
} file = {.dir = -1, .fd = -1};

/* --- what it says -------------------------------------------------------------------------- */

struct text {
    size_t len;
    char bytes[STATUS_SIZE];
};

__attribute__((format(printf, 2, 3))) static void
put(struct text *t, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(t->bytes + t->len, sizeof(t->bytes) - t->len, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof(t->bytes) - t->len)
        t->len += (size_t)n;
}

/* A worker that was killed took what it had open along: no gauge below zero. */
static long long
count(enum score score)
{
    int64_t sum = (int64_t)scoreboard_sum(score);

    return sum < 0 ? 0 : sum;
}

static void
put_address(struct text *t)
{
    const struct listeners *l = file.s.listeners;

    if (l->n == 0)
        put(t, "address=none\n"); /* it is stopping */
    else if (strncmp(l->item[0].label, "unix:", 5) == 0)
        put(t, "address=%s\n", l->item[0].label);
    else
        put(t, "address=http://%s%s/\n", l->item[0].label, file.s.handover->worker.base_path);
}

void
status_file_write(void)
{
    static const struct {
        const char *name;
        enum score score;
    } counts[] = {
        {"connections", SCORE_CONNECTIONS}, {"websockets", SCORE_WEBSOCKETS},
        {"requests", SCORE_REQUESTS},       {"refused", SCORE_REFUSED},
        {"bad_tokens", SCORE_BAD_TOKENS},   {"limited", SCORE_LIMITED},
        {"launches", SCORE_LAUNCHES},       {"terminals", SCORE_TTYS},
    };
    struct text t = {0};

    if (file.fd < 0)
        return;
    file.asked++;
    put(&t, "asked=%llu\nversion=%s\nstarted=%llu\n", (unsigned long long)file.asked,
        handover_version(), (unsigned long long)file.s.started_s);
    put_address(&t);
    put(&t, "workers=%u\ntokens=%u\nhosted=%d\n", file.s.settings->workers,
        file.s.handover->worker.n_tokens, file.s.settings->hosted);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        put(&t, "%s=%lld\n", counts[i].name, count(counts[i].score));
    put(&t, "end=%llu\n", (unsigned long long)file.asked);
    if (pwrite(file.fd, t.bytes, t.len, 0) != (ssize_t)t.len ||
        ftruncate(file.fd, (off_t)t.len) != 0)
        log_event(LOG_LEVEL_WARNING, "status-not-written", "error=%s", strerrorname_np(errno));
}

/* --- the file --------------------------------------------------------------------------------- */

/* Made if need be, never through a link: the directory may be another account's. */
static int
open_dir(const char *state_dir, uint32_t uid, uint32_t gid)
{
    int state = open(state_dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int dir;

    if (state < 0)
        return -errno;
    if (mkdirat(state, STATUS_DIR, 0700) == 0 && uid != geteuid() &&
        fchownat(state, STATUS_DIR, uid, gid, AT_SYMLINK_NOFOLLOW) != 0)
        log_event(LOG_LEVEL_WARNING, "status-directory", "error=%s", strerrorname_np(errno));
    dir = openat(state, STATUS_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    dir = dir < 0 ? -errno : dir;
    close(state);
    return dir;
}

/* Locked by somebody: its server lives. */
static bool
is_alive(int fd)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static void
remove_dead(int dir_fd)
{
    int copy = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *e;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        int fd;

        if (strspn(e->d_name, "0123456789") != strlen(e->d_name))
            continue;
        fd = openat(dir_fd, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && !is_alive(fd))
            unlinkat(dir_fd, e->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (dir != NULL)
        closedir(dir);
}

/* The lock is of the kind that tells its holder's pid, and ends with it. */
static int
make_file(uint32_t uid, uint32_t gid)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd;

    snprintf(file.name, sizeof(file.name), "%d", (int)getpid());
    unlinkat(file.dir, file.name, 0); /* of an earlier process of this number, or ourselves */
    fd = openat(file.dir, file.name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (fcntl(fd, F_SETLK, &lock) != 0 || (uid != geteuid() && fchown(fd, uid, gid) != 0)) {
        int status = -errno;

        close(fd);
        return status;
    }
    file.fd = fd;
    return 0;
}

void
status_file_open(const struct status *s, uint32_t uid, uint32_t gid)
{
    int status = open_dir(s->settings->state_dir, uid, gid);

    file.s = *s;
    file.dir = status;
    if (status >= 0) {
        remove_dead(file.dir);
        status = make_file(uid, gid);
    }
    if (status < 0)
        log_event(LOG_LEVEL_WARNING, "no-status-file", "error=%s", strerrorname_np(-status));
    status_file_write();
}

void
status_file_close(void)
{
    if (file.fd < 0)
        return;
    unlinkat(file.dir, file.name, 0);
    close(file.fd);
    file.fd = -1;
}
