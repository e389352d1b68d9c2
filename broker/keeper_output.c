/*
 * A launch's output: from its FIFO into a file, in the kernel, so that a kill at any moment
 * loses no byte; bounded on disk; surviving a full disk.
 * Distrusts: the command (floods, binary rubbish) and the disk.
 */
#include "broker/keeper_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "broker/launch_record.h"
#include "common/limits.h"

#define PIPE_SIZE (1024 * 1024) /* asked for; the kernel may give less */
#define ROUNDS 64               /* moves in one turn, so that signals and orders are heard */
#define HOLE_UNIT 65536u        /* holes are made of whole blocks of any file system */
#define FALLBACK_KEPT (1024u * 1024u)

int
keeper_output_open(struct keeper_output *o, int dir_fd)
{
    *o = (struct keeper_output){.pipe_fd = -1, .file_fd = -1};
    /* Not O_APPEND: splice() refuses it, and there is one writer, behind the lock. */
    o->file_fd = openat(dir_fd, LAUNCH_OUTPUT,
                        O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (o->file_fd < 0)
        return -errno;
    o->pipe_fd = openat(dir_fd, LAUNCH_PIPE, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (o->pipe_fd < 0)
        return -errno;
    o->held = malloc(LIMIT_LAUNCH_HELD);
    if (o->held == NULL)
        return -ENOMEM;
    /* Room for bursts while we are being replaced. */
    fcntl(o->pipe_fd, F_SETPIPE_SZ, PIPE_SIZE);
    o->size = (uint64_t)lseek(o->file_fd, 0, SEEK_END);
    return 0;
}

/* --- the bound on disk -------------------------------------------------------------------- */

/* Where holes cannot be made: drop all but the end. Offsets stay what they were. */
static void
drop_by_truncating(struct keeper_output *o)
{
    uint64_t from = o->size - FALLBACK_KEPT;
    char *end = malloc(FALLBACK_KEPT);
    ssize_t n = end != NULL ? pread(o->file_fd, end, FALLBACK_KEPT, (off_t)from) : 0;

    if (ftruncate(o->file_fd, 0) == 0 && ftruncate(o->file_fd, (off_t)o->size) == 0)
        o->cut = n > 0 && pwrite(o->file_fd, end, (size_t)n, (off_t)from) == n ? from : o->size;
    free(end);
}

static void
keep_bound(struct keeper_output *o)
{
    uint64_t cut;

    if (o->size - o->cut <= LIMIT_LAUNCH_OUTPUT)
        return;
    cut = (o->size - LIMIT_LAUNCH_OUTPUT / 2) / HOLE_UNIT * HOLE_UNIT;
    if (fallocate(o->file_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)cut) == 0)
        o->cut = cut;
    else
        drop_by_truncating(o);
}

/* --- a disk that takes nothing ------------------------------------------------------------ */

/* Make room by dropping the older half, in whole lines where there are any. */
static void
drop_held(struct keeper_output *o)
{
    uint32_t drop = o->n_held / 2;
    char *newline = memchr(o->held + drop, '\n', o->n_held - drop);

    if (newline != NULL)
        drop = (uint32_t)(newline - o->held) + 1;
    memmove(o->held, o->held + drop, o->n_held - drop);
    o->n_held -= drop;
    o->lost += drop;
    o->lost_here += drop;
}

static int
write_at_end(struct keeper_output *o, const char *bytes, uint32_t len, uint32_t *ret_written)
{
    ssize_t n = pwrite(o->file_fd, bytes, len, (off_t)o->size);

    *ret_written = 0;
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    o->size += (uint64_t)n;
    *ret_written = (uint32_t)n;
    return 0;
}

/* Where lines are missing the file says so. */
static int
write_mark(struct keeper_output *o)
{
    char mark[160];
    uint32_t written;
    int n = snprintf(mark, sizeof mark,
                     "\n[ssebench-webui] %llu bytes of output were lost here: %s\n",
                     (unsigned long long)o->lost_here, strerror(o->error));
    int r = write_at_end(o, mark, (uint32_t)n, &written);

    if (r == 0 && written == (uint32_t)n)
        o->lost_here = 0;
    return r;
}

static int
write_held(struct keeper_output *o)
{
    while (o->n_held > 0) {
        uint32_t written;
        int r = o->lost_here > 0 ? write_mark(o) : 0;

        if (r == 0)
            r = write_at_end(o, o->held, o->n_held, &written);
        if (r < 0)
            return r;
        memmove(o->held, o->held + written, o->n_held - written);
        o->n_held -= written;
    }
    return 0;
}

void
keeper_output_retry(struct keeper_output *o)
{
    int r = write_held(o);

    o->error = -r;
}

/* Read into memory what the disk does not take: the run must not stop for it. */
static size_t
hold(struct keeper_output *o)
{
    ssize_t n;

    if (o->n_held == LIMIT_LAUNCH_HELD)
        drop_held(o);
    n = read(o->pipe_fd, o->held + o->n_held, LIMIT_LAUNCH_HELD - o->n_held);
    if (n == 0)
        o->eof = 1;
    if (n <= 0)
        return 0;
    o->n_held += (uint32_t)n;
    return (size_t)n;
}

/* --- moving ------------------------------------------------------------------------------- */

/* Returns the bytes taken from the FIFO; 0: none are there now. */
static size_t
move_once(struct keeper_output *o)
{
    off_t at = (off_t)o->size;
    ssize_t n;

    if (o->n_held > 0)
        return hold(o);
    n = splice(o->pipe_fd, NULL, o->file_fd, &at, PIPE_SIZE, SPLICE_F_NONBLOCK);
    if (n > 0) {
        o->size += (uint64_t)n;
        o->error = 0;
        return (size_t)n;
    }
    if (n == 0)
        o->eof = 1;
    if (n == 0 || errno == EAGAIN || errno == EINTR)
        return 0;
    if (errno == EINVAL) { /* a file system without splice: by way of memory */
        size_t taken = hold(o);

        keeper_output_retry(o);
        return taken;
    }
    o->error = errno;
    return hold(o);
}

int
keeper_output_drain(struct keeper_output *o)
{
    int more = 1;

    for (unsigned i = 0; i < ROUNDS && more; i++) {
        more = move_once(o) > 0;
        keep_bound(o);
    }
    return more;
}

void
keeper_output_take_present(struct keeper_output *o)
{
    size_t rest, taken;
    int left = 0;

    if (ioctl(o->pipe_fd, FIONREAD, &left) != 0)
        return;
    /* A FIFO gives the oldest first: after that many bytes all of them were taken. One move more
     * sees the end of file, of which poll() does not tell who opened after the last writer. */
    for (rest = (size_t)left;; rest -= taken < rest ? taken : rest) {
        taken = move_once(o);
        keep_bound(o);
        if (taken == 0 || rest == 0)
            return;
    }
}
