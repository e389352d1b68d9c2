/* Fuzz entry of the launches' files: a record is believed only if we would have written it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "broker/launch_record.h"
#include "broker/record.h"
#include "common/buf.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct small {
    int64_t number;
    char text[40];
};

static const struct record_field fields[] = {
    RECORD_INT_OF(small, number),
    RECORD_TEXT_OF(small, text),
};

static void
check_record(const char *text, size_t len)
{
    char *copy = malloc(len + 1); /* callers end the text in a NUL */
    struct small s;
    struct buf again;

    memcpy(copy, text, len);
    copy[len] = '\0';
    buf_init(&again, 0);
    if (record_parse(fields, 2, copy, len, &s, sizeof s) == 0) {
        record_format(fields, 2, &s, &again);
        if (again.len != len || memcmp(again.data, text, len) != 0)
            abort();
    }
    buf_done(&again);
    free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    check_record((const char *)bytes, len);
    return 0;
}
