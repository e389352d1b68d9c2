/* Writing a site, file by file; nothing that stands in the folder is followed or opened. */
#include "worker/export/site.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLUSH_AT (256u * 1024u) /* bytes worth a write */

/* --- folders ------------------------------------------------------------------------------ */

static bool
is_export(int fd)
{
    struct stat st;

    return fstatat(fd, SITE_MARKER, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

static DIR *
list(int dir_fd)
{
    int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);

    if (stream == NULL && copy >= 0)
        close(copy);
    return stream;
}

static struct dirent *
next_entry(DIR *stream)
{
    struct dirent *entry;

    do
        entry = readdir(stream);
    while (entry != NULL &&
           (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry;
}

/* 1, 0 or -errno. */
static int
is_empty(int fd)
{
    DIR *stream = list(fd);
    int empty;

    if (stream == NULL)
        return -errno;
    empty = next_entry(stream) == NULL;
    closedir(stream);
    return empty;
}

int
site_open(const char *path)
{
    int fd, empty;

    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return -errno;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    empty = is_export(fd) ? 1 : is_empty(fd);
    if (empty == 1)
        return fd;
    close(fd);
    return empty == 0 ? -ENOTEMPTY : empty;
}

int
site_folder(int dir_fd, const char *name)
{
    int fd;

    if (mkdirat(dir_fd, name, 0777) != 0 && errno != EEXIST)
        return -errno;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* --- files -------------------------------------------------------------------------------- */

void
site_file_begin(struct site_file *f, int dir_fd, const char *name)
{
    *f = (struct site_file){.dir_fd = dir_fd, .fd = -1};
    buf_init(&f->out, 0);
    if (strlen(name) >= sizeof f->name) {
        f->error = -ENAMETOOLONG;
        return;
    }
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->fresh, sizeof f->fresh, ".%s.new", name);
    /* What an export that was cut off left; a file is never written through. */
    if (unlinkat(dir_fd, f->fresh, 0) != 0 && errno != ENOENT)
        f->error = -errno;
    if (f->error == 0)
        f->fd = openat(dir_fd, f->fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       0666);
    if (f->error == 0 && f->fd < 0)
        f->error = -errno;
}

static int
write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

void
site_file_flush(struct site_file *f, bool all)
{
    if (f->error == 0 && f->out.failed)
        f->error = -ENOMEM;
    if (f->error == 0 && !all && f->out.len < FLUSH_AT)
        return;
    if (f->error == 0 && f->out.len > 0)
        f->error = write_all(f->fd, f->out.data, f->out.len);
    buf_reset(&f->out);
}

int
site_file_end(struct site_file *f)
{
    site_file_flush(f, true);
    if (f->fd >= 0 && close(f->fd) != 0 && f->error == 0)
        f->error = -errno;
    if (f->error == 0 && renameat(f->dir_fd, f->fresh, f->dir_fd, f->name) != 0)
        f->error = -errno;
    if (f->error != 0 && f->fd >= 0)
        unlinkat(f->dir_fd, f->fresh, 0);
    buf_done(&f->out);
    f->fd = -1;
    return f->error;
}

int
site_write(int dir_fd, const char *name, const void *bytes, size_t len)
{
    struct site_file f;

    site_file_begin(&f, dir_fd, name);
    if (f.error == 0)
        f.error = write_all(f.fd, bytes, len);
    return site_file_end(&f);
}

int
site_sweep(int dir_fd, bool (*keep)(void *ctx, const char *name), void *ctx)
{
    DIR *stream = list(dir_fd);
    struct dirent *entry;
    int error = 0;

    if (stream == NULL)
        return -errno;
    while (error == 0 && (entry = next_entry(stream)) != NULL) {
        struct stat st;

        if (keep(ctx, entry->d_name) ||
            fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            S_ISDIR(st.st_mode))
            continue;
        if (unlinkat(dir_fd, entry->d_name, 0) != 0 && errno != ENOENT)
            error = -errno;
    }
    closedir(stream);
    return error;
}
