/* What the settings need of the file system: the token file and the state directory. */
#include "master/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN_FILE "SSEBENCH_WEBUI_TOKEN_FILE"

/* Not 077: systemd's credentials are mode 0440 with an access list, whose mask shows as
 * the group's bits. What others may do is what counts. */
static int
check_token_file(int fd, const char *path, char *error)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return settings_refuse(error,
                               TOKEN_FILE "=%s is not a regular file. Name a file that "
                                          "holds the token.",
                               settings_show(path));
    if ((st.st_mode & 0027) != 0)
        return settings_refuse(error,
                               TOKEN_FILE
                               "=%s has mode %04o, so other accounts can read or "
                               "change it. Run: chmod 600 on it.",
                               settings_show(path), (unsigned)st.st_mode & 07777);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return settings_refuse(error,
                               TOKEN_FILE
                               "=%s belongs to another account (uid %u). Make it "
                               "the server's own.",
                               settings_show(path), (unsigned)st.st_uid);
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
    /* NONBLOCK: a FIFO must not stop the start. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int status;
    ssize_t len;

    if (fd < 0)
        return settings_refuse(ret_error,
                               TOKEN_FILE "=%s cannot be opened: %s. Name a file "
                                          "that the server can read.",
                               settings_show(path), strerror(errno));
    status = check_token_file(fd, path, ret_error);
    if (status == 0) {
        len = read_whole(fd, text, sizeof(text));
        status = len < 0
                     ? settings_refuse(ret_error, TOKEN_FILE "=%s cannot be read: %s.",
                                       settings_show(path), strerror(errno))
                     : take_token(text, (size_t)len, ret_token, ret_error);
    }
    explicit_bzero(text, sizeof(text));
    close(fd);
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
