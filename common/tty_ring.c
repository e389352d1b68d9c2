/* The ring of a terminal's newest output. */
#include "common/tty_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/limits.h"

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
    return put(fd, 0, head, sizeof *head);
}

long
tty_ring_read(int fd, uint64_t *position, void *into, size_t size)
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
