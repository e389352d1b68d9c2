/* Fuzz entry of what the broker checks in a message: shapes, strings, a launch's fields. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/messages.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static bool
yes(const void *ctx, char kind, const char *name)
{
    (void)ctx;
    return strlen(name) > 0;
}

static void
check_launch(const struct launch_fields *f)
{
    struct launch_offer offer = {yes, true, NULL};
    const char *refusal = policy_launch_refusal(f, &offer);

    if (refusal != NULL)
        return;
    if (!message_string_valid(f->agent, sizeof f->agent) ||
        !message_string_valid(f->model, sizeof f->model) ||
        !message_string_valid(f->task, sizeof f->task) || f->n_plugins > LAUNCH_PLUGINS)
        abort();
    for (unsigned i = 0; i < f->n_plugins; i++)
        if (!message_string_valid(f->plugins[i], sizeof f->plugins[i]))
            abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct request_launch q = {0};
    char word[MESSAGE_ID_SIZE];
    uint16_t type;

    if (len >= sizeof type) {
        memcpy(&type, bytes, sizeof type);
        if (type >= MESSAGE_TYPES && message_shape(type) != NULL)
            abort();
    }
    message_string_valid((const char *)bytes, len);
    if (len > 0) {
        char *text = malloc(len);

        if (text == NULL)
            return 0;
        memcpy(text, bytes, len);
        text[len - 1] = '\0';
        message_string_set(word, sizeof word, text);
        if (!message_string_valid(word, sizeof word))
            abort();
        free(text);
    }
    memcpy(&q.fields, bytes, len < sizeof q.fields ? len : sizeof q.fields);
    if (policy_launch_well_formed(&q.fields))
        check_launch(&q.fields);
    return 0;
}
