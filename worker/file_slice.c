/* Reading run files: by position, so that a descriptor has no state of its own. */
#include "worker/file_slice.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/json_write.h"
#include "common/limits.h"
#include "common/utf8.h"

int64_t
file_slice_read(int fd, void *into, size_t max, uint64_t offset)
{
    ssize_t n;

    do
        n = pread(fd, into, max, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -EIO : n;
}

int64_t
file_slice_escape(int fd, uint64_t size, uint64_t offset, struct buf *out)
{
    static char slice[FILE_SLICE]; /* one thread, used up before the return */
    size_t max = sizeof slice, hold;
    int64_t n;

    if (max > size - offset)
        max = (size_t)(size - offset);
    n = max > 0 ? file_slice_read(fd, slice, max, offset) : 0;
    if (n <= 0)
        return n;
    hold = utf8_incomplete_tail(slice, (size_t)n);
    if (offset + (uint64_t)n >= size || hold == (size_t)n)
        hold = 0; /* nothing follows that could complete it */
    json_escape(out, slice, (size_t)n - hold);
    return n - (int64_t)hold;
}

char *
file_slice_whole(int fd, uint64_t size, size_t *ret_len)
{
    char *bytes = size > 0 && size <= LIMIT_RUN_FILE ? malloc((size_t)size) : NULL;
    size_t len = 0;

    while (bytes != NULL && len < size) {
        int64_t n = file_slice_read(fd, bytes + len, (size_t)size - len, len);

        if (n < 0) {
            free(bytes);
            return NULL;
        }
        if (n == 0)
            break;
        len += (size_t)n;
    }
    *ret_len = len;
    return bytes;
}

bool
file_slice_is_blank(const char *bytes, size_t len)
{
    static const bool blank[256] = {
        [' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true, ['\v'] = true, ['\f'] = true};

    for (size_t i = 0; i < len; i++)
        if (!blank[(unsigned char)bytes[i]])
            return false;
    return true;
}

bool
file_slice_blank(int fd, uint64_t size)
{
    char slice[4096];
    uint64_t at = 0;

    while (at < size) {
        int64_t n = file_slice_read(fd, slice, sizeof slice, at);

        if (n <= 0)
            return true;
        if (!file_slice_is_blank(slice, (size_t)n))
            return false;
        at += (uint64_t)n;
    }
    return true;
}
