/* Landlock without a rule: whatever right the kernel can take away, it takes away. */
#include "common/sandbox_parts.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/sandbox.h"

/* Numbers and layout are the kernel's ABI and the same on every architecture; the
 * headers of Debian 12 know neither `net` nor `scoped`, so they are written out here.
 */
#define CALL_CREATE_RULESET 444
#define CALL_RESTRICT_SELF 446

struct ruleset {
    uint64_t fs;  /* ABI 1: open, make, remove ...; 2: refer, 3: truncate, 5: ioctl */
    uint64_t net; /* ABI 4: bind and connect of TCP */
    uint64_t scoped; /* ABI 6: abstract sockets and signals outside */
};

/* Zero bytes past what a kernel knows are fine with it, so one size serves every ABI.
 */
static int
create(const struct ruleset *r)
{
    return (int)syscall(CALL_CREATE_RULESET, r, sizeof(*r), 0);
}

/* All bits of one field that this kernel takes. Asked instead of derived from the ABI's
 * number: a later kernel's rights are then forbidden too. Rights are given out upwards,
 * so the first unknown bit ends the search. */
static void
find_rights(struct ruleset *all, size_t field)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        struct ruleset one = {0};

        *(uint64_t *)((char *)&one + field) = UINT64_C(1) << bit;
        int fd = create(&one);
        if (fd < 0)
            return;
        close(fd);
        *(uint64_t *)((char *)all + field) |= UINT64_C(1) << bit;
    }
}

uint32_t
sandbox_landlock_enter(void)
{
    struct ruleset all = {0};

    find_rights(&all, offsetof(struct ruleset, fs));
    find_rights(&all, offsetof(struct ruleset, net));
    find_rights(&all, offsetof(struct ruleset, scoped));
    int fd = create(&all);
    if (fd < 0)
        return 0;
    long r = syscall(CALL_RESTRICT_SELF, fd, 0);
    close(fd);
    if (r != 0)
        return 0;
    return (all.fs != 0 ? FENCE_LANDLOCK_FS : 0) |
           (all.net != 0 ? FENCE_LANDLOCK_NET : 0) |
           (all.scoped != 0 ? FENCE_LANDLOCK_SCOPE : 0);
}
