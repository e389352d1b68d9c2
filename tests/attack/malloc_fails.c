/* Preloaded by test_memory.py: one allocation in as many as MALLOC_FAILS_FILE says at this moment
 * fails, 0: none. The file is mapped before any fence, so that reading it needs no call. Who is
 * started from here allocates as ever. */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

struct orders {
    uint64_t one_in;
    uint64_t n_failed; /* of all processes: what the test counts */
};

static struct orders nothing;
static volatile struct orders *orders = &nothing;
static uint64_t dice;
static time_t born;

static time_t
now_s(void);

/* The log gets the places to look at (addr2line). */
static void
tell_where(int number)
{
    void *frames[24];
    int n = backtrace(frames, sizeof frames / sizeof frames[0]);

    orders = &nothing;
    backtrace_symbols_fd(frames, n, STDERR_FILENO);
    signal(number, SIG_DFL);
    raise(number);
}

__attribute__((constructor)) static void
map_orders(void)
{
    const char *path = getenv("MALLOC_FAILS_FILE");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at = fd < 0 ? MAP_FAILED
                      : mmap(NULL, sizeof nothing, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    void *here;

    backtrace(&here, 1); /* loads what it needs, which no fence would let it do later */
    signal(SIGSEGV, tell_where);
    signal(SIGABRT, tell_where);
    born = now_s();
    dice = (uint64_t)getpid() * 0x9e3779b97f4a7c15u | 1;
    if (at != MAP_FAILED)
        orders = at;
    unsetenv("LD_PRELOAD");
    unsetenv("MALLOC_FAILS_FILE");
}

static time_t
now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now); /* no call into the kernel */
    return now.tv_sec;
}

static int
fails(void)
{
    uint64_t one_in = orders->one_in;

    if (one_in == 0 || now_s() - born < 1) /* what starts, starts */
        return 0;
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    if (dice % one_in != 0)
        return 0;
    __atomic_add_fetch(&orders->n_failed, 1, __ATOMIC_RELAXED);
    errno = ENOMEM;
    return 1;
}

void *
malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *old, size_t size)
{
    return size > 0 && fails() ? NULL : __libc_realloc(old, size);
}
