/* The ring of a terminal's newest output. */
#include "common/tty_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/limits.h"

_Static_assert(sizeof(struct tty_ring_head) <= TTY_RING_DATA, "the head has a page");

int
tty_ring_new(void)
{
    int fd = memfd_create("tty-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int saved;

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, TTY_RING_SIZE) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    saved = errno;
    close(fd);
    return -saved;
}

int
tty_ring_head(int fd, struct tty_ring_head *ret_head)
{
    return pread(fd, ret_head, sizeof *ret_head, 0) == sizeof *ret_head ? 0 : -EIO;
}

/* The offset is this descriptor's own: every holder has opened the memfd anew. */
static int
put(int fd, uint64_t at, const void *bytes, size_t len)
{
    if (lseek(fd, (off_t)at, SEEK_SET) < 0)
        return -errno;
    return write(fd, bytes, len) == (ssize_t)len ? 0 : -EIO;
}

int
tty_ring_append(int fd, struct tty_ring_head *head, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    while (len > 0) {
        size_t place = head->written % LIMIT_TTY_RING;
        size_t n = LIMIT_TTY_RING - place < len ? LIMIT_TTY_RING - place : len;
        int r = put(fd, TTY_RING_DATA + place, at, n);

        if (r < 0)
            return r;
        head->written += n;
        at += n;
        len -= n;
    }
    return put(fd, 0, &head->written, sizeof head->written);
}

static bool
same_size(struct tty_ring_size a, struct tty_ring_size b)
{
    return a.cols == b.cols && a.rows == b.rows;
}

int
tty_ring_resize(int fd, struct tty_ring_head *head, struct tty_ring_size size)
{
    size_t n = head->n_marks <= TTY_RING_MARKS ? head->n_marks : 0;
    uint64_t oldest = head->written > LIMIT_TTY_RING ? head->written - LIMIT_TTY_RING : 0;
    size_t drop = 0;

    if (n > 0 && same_size(head->marks[n - 1].size, size))
        return 0;
    if (n > 0 && head->marks[n - 1].at == head->written)
        n--; /* nothing was written at that size */
    while (drop + 1 < n && head->marks[drop + 1].at <= oldest)
        drop++;
    if (n - drop == TTY_RING_MARKS)
        drop++;
    memmove(head->marks, head->marks + drop, (n - drop) * sizeof head->marks[0]);
    n -= drop;
    head->marks[n] = (struct tty_ring_mark){.at = head->written, .size = size};
    head->n_marks = n + 1;
    return put(fd, 0, head, sizeof *head);
}

/* The size at `position`; `*ret_left` is cut to what follows with that size. */
static struct tty_ring_size
size_at(const struct tty_ring_head *head, uint64_t position, size_t *ret_left)
{
    struct tty_ring_size size = {0};

    for (size_t i = 0; i < head->n_marks && i < TTY_RING_MARKS; i++) {
        const struct tty_ring_mark *m = &head->marks[i];

        if (m->at <= position) {
            size = m->size;
        } else {
            if (m->at - position < *ret_left)
                *ret_left = (size_t)(m->at - position);
            break;
        }
    }
    if (size.cols > LIMIT_TTY_SIZE || size.rows > LIMIT_TTY_SIZE)
        size = (struct tty_ring_size){0};
    return size;
}

static long
read_some(int fd, uint64_t *position, void *into, size_t size, struct tty_ring_size *ret_size)
{
    struct tty_ring_head head;
    unsigned char *to = into;
    size_t done = 0, left;

    if (tty_ring_head(fd, &head) < 0)
        return -EIO;
    if (head.written < *position)
        *position = head.written;
    if (head.written - *position > LIMIT_TTY_RING)
        *position = head.written - LIMIT_TTY_RING;
    left = head.written - *position < size ? (size_t)(head.written - *position) : size;
    if (ret_size != NULL)
        *ret_size = size_at(&head, *position, &left);
    while (done < left) {
        size_t place = *position % LIMIT_TTY_RING;
        size_t n = LIMIT_TTY_RING - place < left - done ? LIMIT_TTY_RING - place
                                                        : left - done;

        if (pread(fd, to + done, n, (off_t)(TTY_RING_DATA + place)) != (ssize_t)n)
            return -EIO;
        *position += n;
        done += n;
    }
    return (long)done;
}

long
tty_ring_read(int fd, uint64_t *position, void *into, size_t size)
{
    return read_some(fd, position, into, size, NULL);
}

long
tty_ring_read_sized(int fd, uint64_t *position, void *into, size_t size,
                    struct tty_ring_size *ret_size)
{
    return read_some(fd, position, into, size, ret_size);
}
