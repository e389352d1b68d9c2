/* Named tokens from the command line: made here, told once, kept as their SHA-256. */
#include "master/token_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/hash.h"
#include "master/tokens_store.h"

#define SECRET_BYTES 32u
#define PREFIX "ssebench_" /* so that scanners for secrets can know one */
#define SECRET_SIZE (sizeof(PREFIX) + 43) /* and base64url of 32 bytes */

static char error[SETTINGS_ERROR_SIZE];
static struct settings settings; /* large: not on the stack */
static struct tokens_store store = {.dir = -1, .lock = -1};

static const char *
lookup(const char *name)
{
    return getenv(name);
}

static int
fail(void)
{
    fprintf(stderr, "[Server] %s\n", error);
    return 1;
}

static int
usage(void)
{
    fprintf(stderr,
            "[Server] Usage: ssebench-webui token add NAME --role view|operate|full "
            "[--expires WHEN]\n"
            "                ssebench-webui token list\n"
            "                ssebench-webui token revoke NAME\n"
            "WHEN: a lifetime (90m, 12h, 30d, 2w), a date in UTC (2027-01-31), or never.\n");
    return 2;
}

static int
open_store(bool to_change)
{
    int status = settings_locate(lookup, &settings, error);

    /* A server that was never started has no state directory yet. */
    if (status == 0 && strncmp(settings.tokens_file, settings.state_dir,
                               strlen(settings.state_dir)) == 0 &&
        !settings.tokens_given && access(settings.state_dir, F_OK) != 0)
        status = settings_make_state_dir(&settings, geteuid(), getegid(), error);
    return status == 0 ? tokens_store_open(settings.tokens_file, to_change, &store, error) : status;
}

static void
tell_way_on(void)
{
    fprintf(stderr, "A running server takes this up on SIGHUP: systemctl reload "
                    "ssebench-webui, or kill -HUP with the pid of `ssebench-webui status`.\n");
}

/* --- add ------------------------------------------------------------------------------------ */

static int
make_secret(char ret[SECRET_SIZE])
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t random[SECRET_BYTES + 1] = {0}; /* a last zero byte fills the last group */
    char *to = ret + sizeof(PREFIX) - 1;

    if (getrandom(random, SECRET_BYTES, 0) != (ssize_t)SECRET_BYTES)
        return settings_refuse(error, "The kernel gives no random bytes: %s.",
                               strerror(errno));
    memcpy(ret, PREFIX, sizeof(PREFIX) - 1);
    for (size_t i = 0; i < SECRET_BYTES + 1; i += 3) {
        uint32_t group = (uint32_t)random[i] << 16 | (uint32_t)random[i + 1] << 8 |
                         random[i + 2];

        for (int shift = 18; shift >= 0 && to < ret + SECRET_SIZE - 1; shift -= 6)
            *to++ = digits[group >> shift & 63];
    }
    *to = '\0';
    explicit_bzero(random, sizeof(random));
    return 0;
}

static int
read_add(int argc, char **argv, struct token_entry *ret)
{
    const char *name = NULL, *role = NULL, *expires = "never", *why;

    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--role") == 0 && i + 1 < argc)
            role = argv[++i];
        else if (strcmp(argv[i], "--expires") == 0 && i + 1 < argc)
            expires = argv[++i];
        else if (argv[i][0] != '-' && name == NULL)
            name = argv[i];
        else
            return usage();
    }
    if (name == NULL || role == NULL)
        return usage();
    if (!policy_token_name_valid(name)) {
        settings_refuse(error,
                        "%s cannot name a token. Use 1 to 32 letters, digits, '.', '_' and "
                        "'-', a letter or digit first; `token` is SSEBENCH_WEBUI_TOKEN's.",
                        settings_show(name));
        return fail();
    }
    ret->created_s = time(NULL);
    ret->role = policy_role_parse(role);
    why = policy_token_expiry(expires, ret->created_s, &ret->expires_s);
    if (ret->role == ROLE_NONE)
        settings_refuse(error, "--role %s is none. Use view, operate or full.",
                        settings_show(role));
    else if (why != NULL)
        settings_refuse(error, "--expires %s cannot be taken: %s.", settings_show(expires),
                        why);
    else
        strcpy(ret->name, name);
    return ret->name[0] != '\0' ? 0 : fail();
}

/* The text that was, and a line. */
static int
append(const struct token_entry *entry)
{
    static const char head[] = "# Named tokens of ssebench-webui, written by `ssebench-webui "
                               "token`:\n# NAME ROLE SHA-256 CREATED EXPIRES\n";
    static char text[sizeof(store.text) + sizeof(head) + POLICY_TOKEN_LINE + 1];
    size_t len = 0;

    if (store.list.n == POLICY_TOKENS)
        return settings_refuse(error,
                               "There are %u tokens, which is the limit. Revoke one: "
                               "ssebench-webui token list shows those that have expired.",
                               POLICY_TOKENS);
    if (policy_token_find(&store.list, entry->name) != NULL)
        return settings_refuse(error,
                               "There is a token %s. Take another name, or revoke that one: "
                               "ssebench-webui token revoke %s",
                               entry->name, entry->name);
    if (!store.there)
        memcpy(text, head, len = sizeof(head) - 1);
    memcpy(text + len, store.text, store.len);
    len += store.len;
    if (len > 0 && text[len - 1] != '\n')
        text[len++] = '\n';
    len += policy_token_line(entry, text + len);
    if (len > POLICY_TOKEN_LIST_MAX)
        return settings_refuse(error, "%s would be longer than %u bytes. Delete comments.",
                               settings_show(store.path), POLICY_TOKEN_LIST_MAX);
    return tokens_store_write(&store, text, len, error);
}

static int
add(int argc, char **argv)
{
    char secret[SECRET_SIZE], expires[POLICY_TOKEN_TIME_SIZE] = "never";
    struct token_entry entry = {0};
    int status = read_add(argc, argv, &entry);

    if (status != 0)
        return status;
    if (make_secret(secret) != 0)
        return fail();
    hash_sha256(secret, strlen(secret), entry.digest);
    if (open_store(true) != 0 || append(&entry) != 0)
        return fail();
    if (entry.expires_s != 0)
        policy_token_time(entry.expires_s, expires);
    fprintf(stderr, "Token %s, role %s, expires %s, in %s. It is shown this once:\n",
            entry.name, policy_role_name(entry.role), expires, settings_show(store.path));
    printf("%s\n", secret);
    explicit_bzero(secret, sizeof(secret));
    tell_way_on();
    return fflush(stdout) == 0 ? 0 : 1;
}

/* --- list, revoke ------------------------------------------------------------------------------ */

static int
list(void)
{
    int64_t now_s = time(NULL);

    if (open_store(false) != 0)
        return fail();
    if (store.list.n > 0)
        printf("%-32s %-8s %-20s %s\n", "NAME", "ROLE", "CREATED", "EXPIRES");
    for (uint32_t i = 0; i < store.list.n; i++) {
        const struct token_entry *e = &store.list.item[i];
        char created[POLICY_TOKEN_TIME_SIZE], expires[POLICY_TOKEN_TIME_SIZE] = "never";

        policy_token_time(e->created_s, created);
        if (e->expires_s != 0)
            policy_token_time(e->expires_s, expires);
        printf("%-32s %-8s %-20s %s%s\n", e->name, policy_role_name(e->role), created, expires,
               policy_token_expired(e->expires_s, now_s) ? " (expired)" : "");
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

/* Everything but the line that begins with this name. */
static size_t
without(const char *name, char *text)
{
    size_t name_len = strlen(name), len = 0;

    for (size_t at = 0; at < store.len;) {
        const char *newline = memchr(store.text + at, '\n', store.len - at);
        size_t n = newline != NULL ? (size_t)(newline - (store.text + at)) + 1 : store.len - at;

        if (n <= name_len || memcmp(store.text + at, name, name_len) != 0 ||
            store.text[at + name_len] != ' ') {
            memcpy(text + len, store.text + at, n);
            len += n;
        }
        at += n;
    }
    return len;
}

static int
revoke_named(const char *name)
{
    static char text[sizeof(store.text)];

    if (open_store(true) != 0)
        return fail();
    if (policy_token_find(&store.list, name) == NULL) {
        settings_refuse(error, "There is no token %s in %.500s. `token list` shows those there are.",
                        settings_show(name), store.path);
        return fail();
    }
    if (tokens_store_write(&store, text, without(name, text), error) != 0)
        return fail();
    fprintf(stderr, "Token %s is revoked.\n", name);
    tell_way_on();
    return 0;
}

int
token_command(int argc, char **argv)
{
    int status;

    if (argc >= 2 && strcmp(argv[1], "add") == 0)
        status = add(argc, argv);
    else if (argc == 2 && strcmp(argv[1], "list") == 0)
        status = list();
    else if (argc == 3 && strcmp(argv[1], "revoke") == 0)
        status = revoke_named(argv[2]);
    else
        status = usage();
    tokens_store_close(&store);
    return status;
}
