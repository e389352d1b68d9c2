/* Reads a switch of the environment; an unreadable one is the caller's to refuse. */
#include "policy/flag.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *word;
    enum flag flag;
} words[] = {
    {"1", FLAG_ON},  {"true", FLAG_ON},   {"yes", FLAG_ON}, {"on", FLAG_ON},
    {"0", FLAG_OFF}, {"false", FLAG_OFF}, {"no", FLAG_OFF}, {"off", FLAG_OFF},
};

enum flag
policy_flag_parse(const char *text)
{
    static const char blanks[] = " \t\r\n\v\f";

    if (text == NULL)
        return FLAG_BLANK;
    text += strspn(text, blanks);
    size_t len = strlen(text);
    while (len > 0 && strchr(blanks, text[len - 1]) != NULL)
        len--;
    if (len == 0)
        return FLAG_BLANK;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i].word) == len && strncasecmp(words[i].word, text, len) == 0)
            return words[i].flag;
    return FLAG_BAD;
}
