/* Backwards through a file, block by block, counting line ends. */
#include "worker/launch_tail.h"

#include <string.h>
#include <unistd.h>

#include "common/limits.h"

#define BLOCK 65536u

/* Count back through bytes[0..n). Returns how many of the wanted line ends are still missing;
 * 0: *ret_at is behind the one that was wanted. */
static uint32_t
count_back(const char *bytes, size_t n, uint32_t wanted, size_t *ret_at)
{
    while (n > 0) {
        const char *newline = memrchr(bytes, '\n', n);

        if (!newline)
            return wanted;
        if (--wanted == 0) {
            *ret_at = (size_t)(newline - bytes) + 1;
            return 0;
        }
        n = (size_t)(newline - bytes);
    }
    return wanted;
}

uint64_t
launch_tail_start(int fd, uint64_t size, uint64_t cut)
{
    static char block[BLOCK];
    uint64_t floor = size > LIMIT_LAUNCH_TAIL ? size - LIMIT_LAUNCH_TAIL : 0, end = size;
    uint32_t wanted = LIMIT_LAUNCH_LINES + 1; /* one before the first line wanted */
    bool first = true;

    if (floor < cut)
        floor = cut;
    while (end > floor) {
        size_t want = end - floor < BLOCK ? (size_t)(end - floor) : BLOCK, at = 0;
        ssize_t n = pread(fd, block, want, (off_t)(end - want));

        if (n != (ssize_t)want)
            break;
        if (first && block[n - 1] != '\n')
            wanted--; /* a last line without its end is a line */
        first = false;
        wanted = count_back(block, (size_t)n, wanted, &at);
        if (wanted == 0)
            return end - want + at;
        end -= want;
    }
    return floor;
}
