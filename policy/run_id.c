/* Forms of the names that may become an argument of a command or a directory. */
#include "policy/run_id.h"

#include <string.h>
#include <strings.h>

#define TASK_ID_MAX 128u   /* contract 10.2 */
#define COMPONENT_MAX 255u /* NAME_MAX of Linux file systems */

/* Spelled out instead of isalnum(): a locale must not widen the alphabet. */
static bool
is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A letter or digit, then letters, digits, '.', '_' and '-'. The first character keeps
 * a name from being an option ("-x") or a step upwards (".."). */
static bool
is_word(const char *text, size_t len, size_t max)
{
    if (len == 0 || len > max || !is_alnum(text[0]))
        return false;
    for (size_t i = 1; i < len; i++)
        if (!is_alnum(text[i]) && text[i] != '.' && text[i] != '_' && text[i] != '-')
            return false;
    return true;
}

bool
policy_run_id_valid(const char *id, size_t len)
{
    static const char latest[] = "latest";

    /* "latest" is the CLI's link to the newest run directory, never a run of its own.
     */
    if (len == sizeof(latest) - 1 && strncasecmp(id, latest, len) == 0)
        return false;
    return is_word(id, len, POLICY_RUN_ID_MAX);
}

bool
policy_task_id_valid(const char *id, size_t len)
{
    return is_word(id, len, TASK_ID_MAX);
}

bool
policy_component_valid(const char *name, size_t len)
{
    if (len == 0 || len > COMPONENT_MAX)
        return false;
    if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')))
        return false;
    return memchr(name, '/', len) == NULL && memchr(name, '\0', len) == NULL;
}

bool
policy_model_path_valid(const char *name, size_t len)
{
    for (;;) {
        const char *slash = len > 0 ? memchr(name, '/', len) : NULL;
        size_t part = slash != NULL ? (size_t)(slash - name) : len;

        if (!policy_component_valid(name, part))
            return false;
        if (slash == NULL)
            return true;
        name += part + 1;
        len -= part + 1;
    }
}
