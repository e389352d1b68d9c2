/* The export's fence, tried from inside: what it may reach, and what it dies or fails of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/export/fence.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define KILLED 1000 /* by the filter */
#define NO_LANDLOCK 200

static char top[] = "/tmp/test_export_fence.XXXXXX";
static int in, out;

static int
told(int result)
{
    return result >= 0 ? 0 : errno;
}

static int
read_inside(void)
{
    return told(openat(in, "file", O_RDONLY));
}

static int
write_inside(void)
{
    return told(openat(in, "file", O_WRONLY));
}

static int
make_inside(void)
{
    return told(openat(in, "new", O_WRONLY | O_CREAT | O_EXCL, 0600));
}

static int
remove_inside(void)
{
    return told(unlinkat(in, "file", 0));
}

static int
read_elsewhere(void)
{
    return told(open("/etc/passwd", O_RDONLY));
}

static int
read_above(void)
{
    return told(openat(in, "../beside", O_RDONLY));
}

static int
read_environment(void)
{
    return told(open("/proc/self/environ", O_RDONLY));
}

static int
make_outside(void)
{
    return told(openat(out, "../new", O_WRONLY | O_CREAT | O_EXCL, 0600));
}

static int
make_folder(void)
{
    return told(mkdirat(out, "folder", 0700));
}

static int
replace_file(void)
{
    int fd = openat(out, "fresh", O_WRONLY | O_CREAT | O_EXCL, 0600);

    return fd < 0 ? errno : told(renameat(out, "fresh", out, "file"));
}

static int
make_socket(void)
{
    return told(socket(AF_INET, SOCK_STREAM, 0));
}

static int
make_pair(void)
{
    int pair[2];

    return told(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
}

static int
execute(void)
{
    char *const argv[] = {(char *)"true", NULL};

    return told(execv("/bin/true", argv));
}

static int
start_process(void)
{
    return told(fork());
}

static int
trace(void)
{
    return told((int)ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int
make_link(void)
{
    return told(symlinkat("/etc/passwd", out, "link"));
}

static int
change_mode(void)
{
    return told(fchmodat(out, "file", 04755, 0));
}

static int
map_code(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? errno : 0;
}

static const struct {
    const char *label;
    int (*attempt)(void);
    int verdict;
    bool by_landlock;
} rows[] = {
    {"read a result", read_inside, 0, false},
    {"write to a result", write_inside, EACCES, true},
    {"make a file among the results", make_inside, EACCES, true},
    {"remove a result", remove_inside, EACCES, true},
    {"read a file elsewhere", read_elsewhere, EACCES, true},
    {"read a file beside the results", read_above, EACCES, true},
    {"read the environment", read_environment, EACCES, true},
    {"make a file beside the site", make_outside, EACCES, true},
    {"make a folder in the site", make_folder, 0, false},
    {"replace a file of the site", replace_file, 0, false},
    {"a socket", make_socket, KILLED, false},
    {"a pair of sockets", make_pair, KILLED, false},
    {"a program", execute, KILLED, false},
    {"a process", start_process, KILLED, false},
    {"ptrace", trace, KILLED, false},
    {"a link", make_link, KILLED, false},
    {"a mode", change_mode, KILLED, false},
    {"memory to run", map_code, KILLED, false},
};

/* In a child; its status is the answer. */
static int
try(int (*attempt)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        bool landlock = false;

        if (fence_up(in, out, &landlock) != 0)
            _exit(255);
        if (attempt == NULL)
            _exit(landlock ? 0 : NO_LANDLOCK);
        _exit(attempt());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGSYS ? KILLED : -WTERMSIG(status);
    return WEXITSTATUS(status);
}

static int
make_folders(void **state)
{
    int fd;

    if (mkdtemp(top) == NULL || chdir(top) != 0 || mkdir("in", 0700) != 0 ||
        mkdir("out", 0700) != 0)
        return -1;
    fd = open("beside", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    fd = open("in/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    fd = open("out/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    in = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    out = open("out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return in < 0 || out < 0 ? -1 : 0;
}

static int
remove_folders(void **state)
{
    static const char *const files[] = {"in/file", "in/new", "out/file", "out/fresh",
                                        "beside",  "new"};

    for (size_t i = 0; i < N(files); i++)
        unlink(files[i]);
    rmdir("out/folder");
    rmdir("in");
    rmdir("out");
    return chdir("/") == 0 ? rmdir(top) : -1;
}

static void
test_verdicts(void **state)
{
    bool landlock = try(NULL) == 0;
    unsigned wrong = 0;

    for (size_t i = 0; i < N(rows); i++) {
        int verdict;

        if (rows[i].by_landlock && !landlock)
            continue;
        verdict = try(rows[i].attempt);
        if (verdict == rows[i].verdict)
            continue;
        print_error("%s: %d, not %d\n", rows[i].label, verdict, rows[i].verdict);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_verdicts)};

    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
