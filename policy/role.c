/* Roles by name, and the table of what each deed needs. */
#include "policy/role.h"

#include <stddef.h>
#include <string.h>

static const char *const names[ROLES] = {"none", "view", "operate", "full"};

static const enum role needed[DEEDS] = {
    [DEED_VIEW] = ROLE_VIEW,
    [DEED_OPERATE] = ROLE_OPERATE,
    [DEED_DOCTOR] = ROLE_OPERATE, /* who launches wants to know what is missing for it */
    [DEED_TERMINAL] = ROLE_FULL,
    [DEED_ASSISTANT] = ROLE_FULL, /* it runs commands there as well */
    [DEED_OTHER] = ROLE_FULL,
};

enum role
policy_role_needed(enum deed deed)
{
    return (unsigned)deed < DEEDS ? needed[deed] : ROLE_FULL;
}

bool
policy_role_allows(enum role role, enum deed deed)
{
    return role > ROLE_NONE && role < ROLES && role >= policy_role_needed(deed);
}

const char *
policy_role_name(enum role role)
{
    return names[(unsigned)role < ROLES ? role : ROLE_NONE];
}

enum role
policy_role_parse(const char *name)
{
    for (enum role role = ROLE_VIEW; role < ROLES; role++)
        if (strcmp(name, names[role]) == 0)
            return role;
    return ROLE_NONE;
}
