/* What the server says of itself: where it listens, which fences are up, what they
 * stopped. */
#include "master/greeting.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/sandbox.h"
#include "master/child.h"

#define FENCE_BITS 32

static void
print_address(const struct listener *l, const char *base_path)
{
    if (strncmp(l->label, "unix:", 5) == 0)
        printf("[Server] Listening on %s\n", l->label);
    else
        printf("[Server] Listening on http://%s%s/\n", l->label, base_path);
}

static void
print_set(uint32_t fences)
{
    bool first = true;

    for (int bit = 0; bit < FENCE_BITS; bit++) {
        const char *name = sandbox_fence_name(1u << bit);

        if (name == NULL || (fences & 1u << bit) == 0)
            continue;
        printf("%s%s", first ? "" : ", ", name);
        first = false;
    }
}

static void
print_missing(uint32_t fences)
{
    bool first = true;

    for (int bit = 0; bit < FENCE_BITS; bit++) {
        const char *name = sandbox_fence_name(1u << bit);
        const char *reason = name != NULL ? sandbox_fence_reason(1u << bit) : NULL;

        if (name == NULL || (fences & 1u << bit) != 0)
            continue;
        printf("%s%s%s%s%s", first ? "; missing: " : ", ", name,
               reason != NULL ? " (" : "", reason != NULL ? reason : "",
               reason != NULL ? ")" : "");
        first = false;
    }
}

void
greeting_print(const struct listeners *l, const char *base_path,
               const struct child *children, uint32_t n_children)
{
    uint32_t workers = UINT32_MAX; /* what every one of them has */

    for (uint32_t i = 1; i < n_children; i++)
        workers &= children[i].fences;
    printf("[Server] Fences: workers: ");
    print_set(workers);
    print_missing(workers);
    printf("; broker: ");
    print_set(children[0].fences);
    printf("\n");
    for (size_t i = 0; i < l->n; i++)
        print_address(&l->item[i], base_path);
    fflush(stdout);
}

/* A record of the kernel's log, e.g. `5,801,123,-;audit: type=1326 audit(...): ...
 * pid=17 comm="..." exe="..." sig=31 arch=c000003e syscall=41 ...`: the call's number,
 * or -1. */
static int
blocked_call(const char *record, pid_t pid)
{
    char wanted[32];
    const char *at;

    snprintf(wanted, sizeof(wanted), " pid=%d ", (int)pid);
    if (strstr(record, "type=1326") == NULL || strstr(record, wanted) == NULL)
        return -1;
    at = strstr(record, " syscall=");
    return at != NULL ? atoi(at + strlen(" syscall=")) : -1;
}

static int
find_blocked_call(pid_t pid)
{
    char record[8192]; /* the kernel's own bound for one record */
    int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int number = -1;
    ssize_t n;

    if (fd < 0)
        return -1;
    /* EPIPE: records were overwritten while we read; the next read goes on after them.
     */
    while ((n = read(fd, record, sizeof(record) - 1)) > 0 ||
           (n < 0 && errno == EPIPE)) {
        record[n > 0 ? n : 0] = '\0';
        if (blocked_call(record, pid) >= 0)
            number = blocked_call(record, pid);
    }
    close(fd);
    return number;
}

void
greeting_log_blocked_call(const char *child, pid_t pid)
{
    int number = find_blocked_call(pid);
    char *name = number < 0
                     ? NULL
                     : seccomp_syscall_resolve_num_arch(seccomp_arch_native(), number);

    if (name != NULL)
        log_event(LOG_LEVEL_ERROR, "call_blocked", "child=%s call=%s number=%d", child,
                  name, number);
    else
        log_event(LOG_LEVEL_ERROR, "call_blocked",
                  "child=%s call=unknown reason=\"no audit record in the kernel log "
                  "(type 1326) "
                  "that the server can read\"",
                  child);
    free(name);
}
