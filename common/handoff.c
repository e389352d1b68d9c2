/* Sealed configurations: written once by the master, unchangeable for whoever holds them. */
#include "common/handoff.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int
write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

int
handoff_seal(const char *name, const void *bytes, size_t size)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r;

    if (fd < 0)
        return -errno;
    r = write_all(fd, bytes, size);
    if (r == 0 && lseek(fd, 0, SEEK_SET) != 0)
        r = -errno;
    if (r == 0 && fcntl(fd, F_ADD_SEALS, SEALS) != 0)
        r = -errno;
    if (r != 0) {
        close(fd);
        return r;
    }
    return fd;
}

/* pread: the offset is shared with the copies of this memfd that other roles hold. */
static int
read_exactly(int fd, char *out, size_t size)
{
    char extra;
    size_t done = 0;

    while (done < size) {
        ssize_t n = pread(fd, out + done, size - done, (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -EBADMSG;
        done += (size_t)n;
    }
    return pread(fd, &extra, 1, (off_t)size) == 0 ? 0 : -EBADMSG;
}

int
handoff_read_sealed(int fd, uint32_t version, void *ret, size_t size)
{
    int seals = fcntl(fd, F_GET_SEALS);
    int r;

    if (seals < 0)
        r = -EBADMSG;
    else if ((seals & SEALS) != SEALS)
        r = -EBADMSG;
    else
        r = read_exactly(fd, ret, size);
    close(fd);
    if (r == 0 && *(uint32_t *)ret != version)
        r = -EBADMSG;
    return r;
}

int
handoff_read_config(int fd, void *ret_config, size_t size)
{
    return handoff_read_sealed(fd, HANDOFF_VERSION, ret_config, size);
}

const struct handoff_token *
handoff_token_by_number(const struct handoff_token *tokens, uint32_t n, uint32_t number)
{
    for (uint32_t i = 0; number != 0 && i < n; i++)
        if (tokens[i].number == number)
            return &tokens[i];
    return NULL;
}
