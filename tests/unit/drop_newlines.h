/* Two texts that differ only in where they were cut into slices are made the same. */
#ifndef TESTS_UNIT_DROP_NEWLINES_H
#define TESTS_UNIT_DROP_NEWLINES_H

#include "common/buf.h"

/* Take out the newlines, which may stand between slices, entries and tokens. */
void
drop_newlines(struct buf *b);

#endif
