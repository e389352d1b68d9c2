/* One variable's value: text in, a field of struct settings out. */
#ifndef MASTER_SETTINGS_VALUE_H
#define MASTER_SETTINGS_VALUE_H

#include "master/settings.h"

/* Read `value` (NULL: not set) as the kind of `row` says into the row's field of `s`, without the
 * blanks around it; where nothing is left the row's fallback is read. 0; or -EINVAL with a
 * refusal in `error`. */
int settings_read_value(const struct setting *row, const char *value, struct settings *s,
                        char error[SETTINGS_ERROR_SIZE]);

#endif
