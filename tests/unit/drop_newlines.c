/* Two texts that differ only in where they were cut into slices are made the same. */
#include "drop_newlines.h"

void
drop_newlines(struct buf *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] != '\n')
            b->data[n++] = b->data[i];
    b->len = n;
    if (b->data != NULL)
        b->data[n] = '\0';
}
