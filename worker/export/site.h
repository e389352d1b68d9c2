/*
 * The folder that is written: files that appear whole or not at all, and what an earlier export
 * left there and this one did not write.
 */
#ifndef WORKER_EXPORT_SITE_H
#define WORKER_EXPORT_SITE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

#define SITE_MARKER ".ssebench-webui-export" /* what makes a folder an export's */
#define SITE_NAME 96u                         /* bytes of a file's name: an ID and ".json" */

/* A file being written: under a name of its own until site_file_end. */
struct site_file {
    struct buf out; /* add to it; site_file_flush now and then */
    int dir_fd;     /* borrowed */
    int fd;
    int error; /* the first; nothing is written after it */
    char name[SITE_NAME], fresh[SITE_NAME + 8];
};

/* Make `path` a folder to write in: new, empty or an earlier export. Descriptor, or -errno;
 * -ENOTEMPTY: there is something else in it. */
int
site_open(const char *path);

/* A folder below another, made if it is not there. Descriptor or -errno (a link is one). */
int
site_folder(int dir_fd, const char *name);

/* Begin, write out what has come together (all of it, or nothing yet while it is little), put
 * in its place. Errors are kept and told by the last: 0 or -errno. */
void
site_file_begin(struct site_file *f, int dir_fd, const char *name);
void
site_file_flush(struct site_file *f, bool all);
int
site_file_end(struct site_file *f);

/* A file whose bytes are at hand. 0 or -errno. */
int
site_write(int dir_fd, const char *name, const void *bytes, size_t len);

/* Remove every plain file that `keep` does not want. 0 or -errno. */
int
site_sweep(int dir_fd, bool (*keep)(void *ctx, const char *name), void *ctx);

#endif
