/* What the settings need of the file system: the files of tokens and origins, the state
 * directory. */
#include "master/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/origin.h"

#define TOKEN_FILE "SSEBENCH_WEBUI_TOKEN_FILE"
#define TOKENS "SSEBENCH_WEBUI_TOKENS"
#define ORIGINS_FILE "SSEBENCH_WEBUI_CORS_ORIGINS_FILE"
#define ORIGINS_MAX (32u * 1024u) /* bytes of that file */

/* Not 077: systemd's credentials are mode 0440 with an access list, whose mask shows as
 * the group's bits. What others may do is what counts. */
#define SECRET 0027u

static int
check_file(int fd, const char *name, const char *path, unsigned forbidden, char *error)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return settings_refuse(error, "%s=%s is not a regular file. Name one.", name,
                               settings_show(path));
    if ((st.st_mode & forbidden) != 0)
        return settings_refuse(error,
                               "%s=%s has mode %04o, so other accounts can %s it. "
                               "Run: chmod %s on it.",
                               name, settings_show(path), (unsigned)st.st_mode & 07777,
                               (forbidden & 0004) != 0 ? "read or change" : "change",
                               (forbidden & 0004) != 0 ? "600" : "644");
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return settings_refuse(error,
                               "%s=%s belongs to another account (uid %u). Make it "
                               "the server's own.",
                               name, settings_show(path), (unsigned)st.st_uid);
    return 0;
}

/* Fill `buffer` to the file's end or its own. Bytes read, or -1. */
static ssize_t
read_whole(int fd, char *buffer, size_t size)
{
    size_t len = 0;
    ssize_t n = 1;

    while (len < size && n != 0) {
        n = read(fd, buffer + len, size - len);
        if (n < 0)
            return -1;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

/* Open a file that the settings name, refuse one that is not regular, not root's or ours, or
 * whose mode has any of `forbidden`, and read it; a longer one fills the buffer. Bytes; -ENOENT:
 * it is not there; -EINVAL with `ret_error`. `name`: the setting's. */
static ssize_t
read_file(const char *name, const char *path, unsigned forbidden, char *buffer, size_t size,
          char ret_error[SETTINGS_ERROR_SIZE])
{
    /* NONBLOCK: a FIFO must not stop the start. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int error = errno;
    ssize_t len;

    if (fd < 0) {
        settings_refuse(ret_error,
                        "%s=%s cannot be opened: %s. Name a file that the server can read.",
                        name, settings_show(path), strerror(error));
        return error == ENOENT ? -ENOENT : -EINVAL;
    }
    len = check_file(fd, name, path, forbidden, ret_error);
    if (len == 0) {
        len = read_whole(fd, buffer, size);
        if (len < 0)
            len = settings_refuse(ret_error, "%s=%s cannot be read: %s.", name,
                                  settings_show(path), strerror(errno));
    }
    close(fd);
    return len;
}

static int
take_token(const char *text, size_t len, char ret_token[POLICY_TOKEN_MAX], char *error)
{
    while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL)
        len--;
    while (len > 0 && strchr(" \t\r\n", text[0]) != NULL)
        text++, len--;
    if (len >= POLICY_TOKEN_MAX)
        return settings_refuse(error,
                               "The token in " TOKEN_FILE " is longer than %u bytes. "
                               "Shorten it.",
                               POLICY_TOKEN_MAX - 1);
    if (memchr(text, '\0', len) != NULL || !policy_token_valid(text, len))
        return settings_refuse(error,
                               "The token in " TOKEN_FILE " must be at least 16 "
                               "characters without spaces. Make one with: openssl rand "
                               "-hex 32");
    memcpy(ret_token, text, len);
    ret_token[len] = '\0';
    return 0;
}

int
settings_read_token_file(const char *path, char ret_token[POLICY_TOKEN_MAX],
                         char ret_error[SETTINGS_ERROR_SIZE])
{
    char text[POLICY_TOKEN_MAX + 64]; /* the token and the blanks an editor leaves */
    ssize_t len = read_file(TOKEN_FILE, path, SECRET, text, sizeof(text), ret_error);
    int status = len < 0 ? -EINVAL : take_token(text, (size_t)len, ret_token, ret_error);

    explicit_bzero(text, sizeof(text));
    return status;
}

int
settings_read_tokens(const char *path, struct token_list *ret, bool *ret_there,
                     char ret_error[SETTINGS_ERROR_SIZE])
{
    static char text[POLICY_TOKEN_LIST_MAX + 1]; /* one more, to see that it is too long */
    ssize_t len = read_file(TOKENS, path, SECRET, text, sizeof(text), ret_error);
    const char *why;
    unsigned line;

    memset(ret, 0, sizeof(*ret));
    *ret_there = len >= 0;
    if (len == -ENOENT)
        return 0;
    if (len < 0)
        return -EINVAL;
    if (!policy_token_list_parse(text, (size_t)len, ret, &line, &why))
        return settings_refuse(ret_error,
                               TOKENS "=%s, line %u: %s. Correct or delete the line; "
                               "`ssebench-webui token` writes it right.",
                               settings_show(path), line, why);
    return 0;
}

/* One line without its comment and the blanks around. 0 or -EINVAL. */
static int
take_origin(char *line, unsigned number, char (*origins)[HANDOFF_ORIGIN_SIZE], uint32_t *n,
            char *error)
{
    size_t len;

    line += strspn(line, " \t\r");
    len = strcspn(line, "#");
    while (len > 0 && strchr(" \t\r", line[len - 1]) != NULL)
        len--;
    line[len] = '\0';
    if (len == 0)
        return 0;
    if (*n == HANDOFF_ORIGINS)
        return settings_refuse(error,
                               ORIGINS_FILE ", line %u: there are more than %u origins in "
                               "all. List fewer.",
                               number, HANDOFF_ORIGINS);
    if (!policy_origin_normalise(line, len, origins[*n]))
        return settings_refuse(error,
                               ORIGINS_FILE ", line %u: %s is not an origin. Write "
                               "scheme://host[:port] without a path or wildcard.",
                               number, settings_show(line));
    (*n)++;
    return 0;
}

int
settings_read_origins_file(const struct settings *s, char (*origins)[HANDOFF_ORIGIN_SIZE],
                           uint32_t *ret_n, char ret_error[SETTINGS_ERROR_SIZE])
{
    static char text[ORIGINS_MAX + 1];
    ssize_t len =
        read_file(ORIGINS_FILE, s->origins_file, 0022, text, sizeof(text), ret_error);
    char *rest = text, *line;
    uint32_t n = s->n_origins_set;
    int status = 0;

    if (len < 0)
        return -EINVAL;
    if (len > (ssize_t)ORIGINS_MAX || memchr(text, '\0', (size_t)len) != NULL)
        return settings_refuse(ret_error,
                               ORIGINS_FILE "=%s is longer than %u bytes, or no text. List "
                               "fewer origins.",
                               settings_show(s->origins_file), ORIGINS_MAX);
    text[len] = '\0';
    for (unsigned i = 1; status == 0 && (line = strsep(&rest, "\n")) != NULL; i++)
        status = take_origin(line, i, origins, &n, ret_error);
    if (status == 0)
        *ret_n = n;
    return status;
}

/* Make the missing directories above `path` (0700, as the XDG rules say). */
static void
make_parents(const char *path, uint32_t uid, uint32_t gid)
{
    char part[HANDOFF_PATH];

    for (size_t i = 1; path[i] != '\0'; i++) {
        if (path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0700) == 0 && uid != geteuid() && lchown(part, uid, gid) != 0)
            continue; /* told below, where the directory itself cannot be made or used
                       */
    }
}

int
settings_check_state_dir(const struct settings *s, uint32_t uid,
                         char ret_error[SETTINGS_ERROR_SIZE])
{
    const char *path = s->state_dir;
    struct stat st;

    if (lstat(path, &st) != 0 && errno == ENOENT)
        return 0;
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return settings_refuse(ret_error,
                               "The state directory %s is not a directory. Set "
                               "SSEBENCH_WEBUI_STATE_DIR.",
                               settings_show(path));
    if (st.st_uid != uid)
        return settings_refuse(
            ret_error,
            "The state directory %s belongs to uid %u, not to uid %u "
            "that would use it. Set SSEBENCH_WEBUI_STATE_DIR.",
            settings_show(path), (unsigned)st.st_uid, uid);
    if ((st.st_mode & 0077) != 0)
        return settings_refuse(
            ret_error,
            "The state directory %s has mode %04o, so other accounts "
            "can look into it. Run: chmod 700 on it.",
            settings_show(path), (unsigned)st.st_mode & 07777);
    return 0;
}

int
settings_make_state_dir(const struct settings *s, uint32_t uid, uint32_t gid,
                        char ret_error[SETTINGS_ERROR_SIZE])
{
    const char *path = s->state_dir;
    bool made;

    make_parents(path, uid, gid);
    made = mkdir(path, 0700) == 0;
    if ((!made && errno != EEXIST) ||
        (made && uid != geteuid() && lchown(path, uid, gid) != 0))
        return settings_refuse(
            ret_error,
            "The state directory %s cannot be made for uid %u: %s. Set "
            "SSEBENCH_WEBUI_STATE_DIR to one that can.",
            settings_show(path), uid, strerror(errno));
    return settings_check_state_dir(s, uid, ret_error);
}
