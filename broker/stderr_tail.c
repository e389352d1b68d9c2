/*
 * Keeping the end of a child's stderr.
 * Distrusts: the child (it may flood, and write any bytes).
 */
#include "broker/stderr_tail.h"

#include <string.h>
#include <unistd.h>

ssize_t
stderr_tail_read(struct stderr_tail *t, int fd)
{
    char bytes[STDERR_TAIL];
    ssize_t n = read(fd, bytes, sizeof bytes);
    size_t keep;

    if (n <= 0)
        return n;
    keep = sizeof t->bytes - (size_t)n;
    if (t->len > keep) {
        memmove(t->bytes, t->bytes + t->len - keep, keep);
        t->len = keep;
    }
    memcpy(t->bytes + t->len, bytes, (size_t)n);
    t->len += (size_t)n;
    return n;
}

bool
stderr_tail_line(const struct stderr_tail *t, char *out, size_t size)
{
    size_t end = t->len, start, len;

    while (end > 0 && (unsigned char)t->bytes[end - 1] <= ' ')
        end--;
    for (start = end; start > 0 && t->bytes[start - 1] != '\n'; start--)
        ;
    len = end - start < size - 1 ? end - start : size - 1;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)t->bytes[start + i];

        out[i] = c < ' ' || c == 0x7f ? ' ' : (char)c;
    }
    out[len] = '\0';
    return len > 0;
}
