/*
 * Looking for servers from outside. What stands in their files is read as text for people; which
 * process is asked is the kernel's word, the holder of the file's lock, never the file's.
 */
#include "master/status_command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

#include "master/settings.h"
#include "master/status_file.h"

#define WAIT_MS 3000
#define PAUSE_MS 10
#define SYSTEM_STATE "/var/lib/ssebench-webui*/launches" /* the units' state directories */

enum { RUNS = 0, ENDED = 1, NONE = 3, UNKNOWN = 4 };

static struct {
    bool json;
    unsigned n_run, n_ended, n_unknown, n_shown;
} seen;

static char error[SETTINGS_ERROR_SIZE];

/* Lines NAME=VALUE, printable only. */
struct report {
    char text[STATUS_SIZE + 1];
};

static const char *
lookup(const char *name)
{
    return getenv(name);
}

static const char *
value(const struct report *r, const char *name, char ret[512])
{
    size_t n = strlen(name);

    for (const char *at = r->text; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, name, n) == 0 && at[n] == '=') {
            snprintf(ret, 512, "%.*s", (int)strcspn(at + n + 1, "\n"), at + n + 1);
            return ret;
        }
    ret[0] = '\0';
    return ret;
}

static unsigned long long
number(const struct report *r, const char *name)
{
    char text[512];

    return strtoull(value(r, name, text), NULL, 10);
}

static void
read_report(int fd, struct report *ret)
{
    ssize_t n = pread(fd, ret->text, STATUS_SIZE, 0);

    ret->text[n > 0 ? n : 0] = '\0';
    for (char *c = ret->text; *c != '\0'; c++)
        if (*c != '\n' && (*c < 0x20 || *c > 0x7e || *c == '"' || *c == '\\'))
            *c = '?';
}

/* Whole, and written since. */
static bool
is_newer(const struct report *r, unsigned long long asked)
{
    return number(r, "asked") > asked && number(r, "end") == number(r, "asked");
}

/* Who has the file locked? */
static bool
find_holder(int fd, struct flock *ret)
{
    *ret = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_GETLK, ret) == 0;
}

/* To the holder and nobody else: the signal would end most programs, and by now its number may
 * be another's, to which we, as root, may send anything. */
static bool
signal_holder(pid_t pid, int fd)
{
    int process = pidfd_open(pid, 0);
    struct flock lock;
    bool sent = process >= 0 && find_holder(fd, &lock) && lock.l_type != F_UNLCK &&
                lock.l_pid == pid && pidfd_send_signal(process, SIGUSR1, NULL, 0) == 0;

    if (process >= 0)
        close(process);
    return sent;
}

/* True: `ret` is what it says now. False: it may not be asked, or does not answer. */
static bool
ask(pid_t pid, int fd, struct report *ret)
{
    unsigned long long before;

    read_report(fd, ret);
    before = number(ret, "asked");
    if (pid <= 0 || !signal_holder(pid, fd))
        return false;
    for (int ms = 0; ms < WAIT_MS; ms += PAUSE_MS, usleep(PAUSE_MS * 1000)) {
        read_report(fd, ret);
        if (is_newer(ret, before))
            return true;
    }
    return false;
}

/* --- showing ------------------------------------------------------------------------------- */

static const char *const counts[] = {"workers",  "tokens",  "connections", "websockets",
                                     "requests", "refused", "bad_tokens",  "limited",
                                     "launches", "terminals"};

static void
show_json(const struct report *r, pid_t pid, bool fresh)
{
    char version[512], address[512];

    printf("%s{\"pid\":%d,\"answers\":%s,\"version\":\"%s\",\"address\":\"%s\","
           "\"started\":%llu,\"uptimeSeconds\":%lld,\"hosted\":%s",
           seen.n_shown > 0 ? "," : "", (int)pid, fresh ? "true" : "false",
           value(r, "version", version), value(r, "address", address), number(r, "started"),
           (long long)time(NULL) - (long long)number(r, "started"),
           number(r, "hosted") != 0 ? "true" : "false");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (fresh)
            printf(",\"%s\":%llu", counts[i], number(r, counts[i]));
    printf("}");
}

static void
show_text(const struct report *r, pid_t pid, bool fresh)
{
    long long up_s = (long long)time(NULL) - (long long)number(r, "started");
    char version[512], address[512];

    up_s = up_s < 0 ? 0 : up_s;
    printf("ssebench-webui %s runs%s: pid %d, up %lld d %02lld:%02lld:%02lld, %s%s\n",
           value(r, "version", version), fresh ? "" : " but does not answer", (int)pid,
           up_s / 86400, up_s / 3600 % 24, up_s / 60 % 60, up_s % 60,
           value(r, "address", address), number(r, "hosted") != 0 ? ", hosted" : "");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (fresh)
            printf("%s%s %llu", i == 0 ? "  " : ", ", counts[i], number(r, counts[i]));
    if (fresh)
        printf("\n");
}

static void
look_at(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct report report;
    struct flock lock;
    bool fresh;

    if (fd < 0 || !find_holder(fd, &lock)) {
        seen.n_unknown += fd >= 0 || errno != ENOENT;
    } else if (lock.l_type == F_UNLCK) {
        if (!seen.json)
            printf("ssebench-webui with pid %s ended without a word.\n", name);
        seen.n_ended++;
    } else {
        fresh = ask(lock.l_pid, fd, &report);
        (seen.json ? show_json : show_text)(&report, lock.l_pid, fresh);
        seen.n_run++;
        seen.n_shown++;
    }
    if (fd >= 0)
        close(fd);
}

/* --- looking -------------------------------------------------------------------------------- */

static void
look_into(const char *state_dir)
{
    char path[HANDOFF_PATH + sizeof(STATUS_DIR) + 1];
    struct dirent *e;
    DIR *dir;
    int fd;

    snprintf(path, sizeof(path), "%s/" STATUS_DIR, state_dir);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL && errno != ENOENT) {
        fprintf(stderr, "[Server] %s cannot be read: %s. Ask as the server's account, or as "
                        "root.\n",
                settings_show(path), strerror(errno));
        seen.n_unknown++;
    }
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (strspn(e->d_name, "0123456789") == strlen(e->d_name))
            look_at(dirfd(dir), e->d_name);
    if (dir != NULL)
        closedir(dir);
}

/* Root's own servers are the system's. */
static void
look_into_system(const char *but)
{
    glob_t found;

    if (geteuid() == 0 && lookup("SSEBENCH_WEBUI_STATE_DIR") == NULL &&
        glob(SYSTEM_STATE, GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (strcmp(found.gl_pathv[i], but) != 0)
                look_into(found.gl_pathv[i]);
        globfree(&found);
    }
}

int
status_command(int argc, char **argv)
{
    static struct settings settings; /* large: not on the stack */

    seen.json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc > 1 && !seen.json) {
        fprintf(stderr, "[Server] Usage: ssebench-webui status [--json]\n");
        return 2;
    }
    if (settings_locate(lookup, &settings, error) != 0) {
        fprintf(stderr, "[Server] %s\n", error);
        return UNKNOWN;
    }
    if (seen.json)
        printf("{\"servers\":[");
    look_into(settings.state_dir);
    look_into_system(settings.state_dir);
    if (seen.json)
        printf("],\"running\":%s,\"ended\":%u}\n", seen.n_run > 0 ? "true" : "false",
               seen.n_ended);
    else if (seen.n_run == 0 && seen.n_ended == 0 && seen.n_unknown == 0)
        printf("No ssebench-webui runs here. (One with another SSEBENCH_WEBUI_STATE_DIR than %s\n"
               "is found with that set.)\n",
               settings.state_dir);
    return seen.n_run > 0       ? RUNS
           : seen.n_unknown > 0 ? UNKNOWN
           : seen.n_ended > 0   ? ENDED
                                : NONE;
}
