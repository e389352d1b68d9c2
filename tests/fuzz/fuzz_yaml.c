/* Fuzz entry of the checkout's YAML: the lists give names that end, a task's config at most one
 * path; both in bounded steps, whatever anchors, aliases and nesting there are. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "broker/launchables_yaml.h"
#include "worker/task_yaml.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct seen {
    size_t len, n;
};

static void
on_entry(void *ctx, const struct yaml_entry *entry)
{
    struct seen *seen = ctx;

    if (entry->name[0] == '\0' ||
        strnlen(entry->name, sizeof entry->name) == sizeof entry->name ||
        strnlen(entry->hook, sizeof entry->hook) == sizeof entry->hook)
        abort();
    if (++seen->n > seen->len)
        abort(); /* more entries than bytes: something was multiplied */
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const keys[] = {"model_name", "name"};
    const char *text = (const char *)bytes;
    char path[64];
    int r;

    for (size_t i = 0; i < 2; i++) {
        struct seen seen = {len, 0};

        launchables_yaml_read(text, len, keys[i], on_entry, &seen);
    }
    memset(path, 'x', sizeof path);
    r = task_yaml_patch(text, len, path, sizeof path);
    if (r == 0 ? strnlen(path, sizeof path) - 1 >= sizeof path - 1
               : r != -ENOENT && r != -EBADMSG && r != -ENAMETOOLONG)
        abort();
    return 0;
}
