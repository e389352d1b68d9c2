/*
 * Finding one setting in .env: the first line that has it, no escapes, no expansion, no
 * comment behind it.
 * Distrusts: nobody; the file is the operator's. It is read anew each time, so that a key put
 * there now counts now, and only one value of it ever leaves this file.
 */
#include "broker/dotenv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/open_beneath.h"

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static const char *
skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

/* The value if this line is `name`'s, or NULL. */
static const char *
line_value(const char *at, const char *end, const char *name, size_t *ret_len)
{
    size_t n = strlen(name);

    at = skip_blanks(at, end);
    if (end - at > 7 && memcmp(at, "export ", 7) == 0)
        at = skip_blanks(at + 7, end);
    if ((size_t)(end - at) < n || memcmp(at, name, n) != 0)
        return NULL;
    at = skip_blanks(at + n, end);
    if (at == end || *at != '=')
        return NULL;
    at = skip_blanks(at + 1, end);
    while (end > at && is_blank(end[-1]))
        end--;
    if (end - at >= 2 && (*at == '"' || *at == '\'') && end[-1] == *at) {
        at++;
        end--;
    }
    *ret_len = (size_t)(end - at);
    return at;
}

int
dotenv_find(const char *text, size_t len, const char *name, char *ret_value, size_t size)
{
    const char *at = text, *end = text + len;

    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *value;
        size_t n;

        if (stop == NULL)
            stop = end;
        value = line_value(at, stop, name, &n);
        if (value != NULL) {
            if (n == 0)
                return -ENOENT;
            if (n >= size)
                return -EMSGSIZE;
            memcpy(ret_value, value, n);
            ret_value[n] = '\0';
            return 0;
        }
        at = stop < end ? stop + 1 : end;
    }
    return -ENOENT;
}

static int
find_in_file(int fd, size_t len, const char *name, char *ret_value, size_t size)
{
    char *text = malloc(len + 1);
    ssize_t n;
    int r = -ENOMEM;

    if (text != NULL) {
        n = pread(fd, text, len, 0);
        r = n < 0 ? -EIO : dotenv_find(text, (size_t)n, name, ret_value, size);
        explicit_bzero(text, len);
        free(text);
    }
    return r;
}

int
dotenv_setting(const char *checkout, const char *name, char *ret_value, size_t size)
{
    const char *own = getenv(name);
    struct stat st;
    int root, fd, r;

    if (own != NULL) {
        size_t len = strlen(own);
        const char *at = skip_blanks(own, own + len), *end = own + len;

        while (end > at && (is_blank(end[-1]) || end[-1] == '\n'))
            end--;
        if (end > at) {
            if ((size_t)(end - at) >= size)
                return -EMSGSIZE;
            memcpy(ret_value, at, (size_t)(end - at));
            ret_value[end - at] = '\0';
            return 0;
        }
    }
    root = open(checkout, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    fd = open_beneath_file(root, ".env", LIMIT_DOTENV, &st);
    close(root);
    if (fd < 0)
        return fd;
    r = find_in_file(fd, (size_t)st.st_size, name, ret_value, size);
    close(fd);
    return r;
}
