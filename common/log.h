/* One event, one line, key=value; a child's lines go to the master, the master's to stderr. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stddef.h>

#include "common/control.h"

/* Where this process logs to. `control_fd` >= 0: lines are CONTROL_LOG messages to the
 * master, dropped (and counted) when it does not read. -1: stderr, with time, role and
 * escaped control bytes. `role` is kept, not copied: "worker.1", "broker", "master". */
void
log_init(const char *role, int control_fd, enum log_level most);

/* Log one event: `event` is a word, `format` renders `key=value` pairs; values that hold
 * blanks are quoted by the caller with log_quote. Never a secret, never raw client bytes. */
__attribute__((format(printf, 3, 4))) void
log_event(enum log_level level, const char *event, const char *format, ...);

/* Print a line that a child sent: level checked, length capped, control bytes, C1 and the
 * Unicode line ends escaped. `role` names the child. */
void
log_relay(const char *role, uint32_t level, const char *text, size_t len);

/* Quote `text` for a log value: "..." with bytes outside printable ASCII as \xNN. Returns a
 * static buffer (LIMIT_LOG_LINE); use once per call of log_event. */
const char *
log_quote(const char *text, size_t len);

/* The environment failed (memory, descriptors at start): say so and exit 1. Only before the
 * role serves. */
_Noreturn __attribute__((format(printf, 1, 2))) void
log_die(const char *format, ...);

#endif
