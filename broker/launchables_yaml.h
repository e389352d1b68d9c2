/* One YAML file of the checkout: a list of mappings, of which a few scalars are wanted. */
#ifndef BROKER_LAUNCHABLES_YAML_H
#define BROKER_LAUNCHABLES_YAML_H

#include <stdbool.h>
#include <stddef.h>

struct yaml_entry {
    char name[512]; /* value of the key asked for; "" when it is absent or longer */
    char hook[64];
    bool enabled, llm; /* only the plain word `true` is true */
};

/* Call `fn` for each mapping of the top list, in order. Bounded in depth and number; aliases
 * are not followed. An error ends the reading: what came before it counts. False: for want of
 * memory. */
bool
launchables_yaml_read(const char *bytes, size_t len, const char *name_key,
                      void (*fn)(void *ctx, const struct yaml_entry *entry), void *ctx);

#endif
