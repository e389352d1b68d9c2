/* One worker or the broker as the master sees it: a pid, a control channel, a log. What
 * arrives from it is read here, and believed only as far as common/control.h says. */
#ifndef MASTER_CHILD_H
#define MASTER_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/control.h"
#include "master/restart.h"

#define CHILD_LOG_RATE                                                                 \
    200u /* lines a second that are passed on; further ones are counted */

struct event;
struct event_base;

enum child_role { CHILD_BROKER, CHILD_WORKER };

struct child {
    enum child_role role;
    uint32_t number; /* workers: 1..; the broker: 0 */
    char name[16];   /* "worker.1", "broker" */
    pid_t pid;       /* 0: not running */
    int control;     /* our end; -1: none */
    int output;      /* pipe of its stderr: a library's or sanitizer's last words; -1 */
    bool ready;
    bool silent; /* for LIMIT_SILENT_MS */
    uint32_t fences;   /* enum fence */
    uint64_t ready_ms; /* monotonic, when it became ready */
    struct restart restart;
    struct event *on_control, *on_output, *on_dropped, *on_silence, *on_restart;
    struct child_log {
        uint64_t second;
        uint32_t lines;  /* of this second */
        uint32_t audits; /* they have places of their own */
        uint32_t dropped;
    } log;
    void (*on_ready)(struct child *c);
    void (*on_kill)(uint32_t worker); /* NULL: this child may not ask for it */
};

/* Take over the two descriptors of a child that was just started and watch them. 0 or
 * -errno. */
int child_attach(struct child *c, struct event_base *base, pid_t pid, int control,
                 int output);

/* It is gone: read what it still said, close everything, pid = 0. */
void child_detach(struct child *c);

/* Send one word, with a descriptor if fd >= 0 (which stays the caller's). A child that
 * does not take it is killed: it is hung, and a lost channel would hang it for good. */
void child_tell(struct child *c, enum control_type type, uint32_t value, int fd);

#endif
