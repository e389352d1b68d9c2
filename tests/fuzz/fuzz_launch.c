/* Fuzz entry of launch requests: what is accepted is well formed, and launches only itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/launch.h"
#include "worker/launch_request.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Lists whatever has no control byte, so that odd names get as far as they can. */
static bool
lists(const void *ctx, char kind, const char *name)
{
    for (; *name != '\0'; name++)
        if ((unsigned char)*name < ' ')
            return false;
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const struct launch_offer offer = {lists, true, NULL};
    struct launch_fields f;
    char id[37];
    bool given;

    if (launch_request_read((const char *)bytes, len, &f) &&
        policy_launch_refusal(&f, &offer) == NULL && !policy_launch_well_formed(&f))
        abort(); /* the broker would end this worker */
    if (launch_request_read_id((const char *)bytes, len, id, &given) && id[0] != '\0' &&
        !policy_launch_id_valid(id))
        abort();
    return 0;
}
