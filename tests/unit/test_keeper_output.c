/* A launch's output against writers that are as fast as its keeper. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker/keeper_output.h"
#include "broker/launch_record.h"
#include "common/limits.h"

#define PIECE 4096u
#define PIECES 12u /* of its own last words: less than any FIFO holds */
#define TOO_MANY 100000u

static struct keeper_output o;
static char path[32];
static int dir_fd, writer_fd;
static unsigned n_refills;
static bool disk_full;

/* In place of the system's: a piece is moved, and another process has filled the gap before
 * anybody looks again. */
ssize_t
splice(int in, off_t *in_at, int out, off_t *out_at, size_t len, unsigned flags)
{
    char bytes[PIECE], more[PIECE];
    ssize_t n;

    (void)in_at;
    (void)len;
    (void)flags;
    if (++n_refills > TOO_MANY)
        fail_msg("it never comes to an end");
    if (disk_full) {
        errno = ENOSPC;
        return -1;
    }
    n = read(in, bytes, sizeof bytes);
    if (n <= 0)
        return n;
    memset(more, 'f', sizeof more);
    assert_int_equal(write(writer_fd, more, sizeof more), sizeof more);
    return pwrite(out, bytes, (size_t)n, *out_at);
}

static int
setup(void **state)
{
    char pipe[64];

    (void)state;
    snprintf(path, sizeof path, "/tmp/keeper-test.XXXXXX");
    assert_non_null(mkdtemp(path));
    dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(pipe, sizeof pipe, "%s/" LAUNCH_PIPE, path);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    writer_fd = open(pipe, O_RDWR | O_CLOEXEC);
    assert_true(writer_fd >= 0);
    assert_int_equal(keeper_output_open(&o, dir_fd), 0);
    n_refills = 0;
    disk_full = false;
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    free(o.held);
    close(o.pipe_fd);
    close(o.file_fd);
    if (writer_fd >= 0)
        close(writer_fd);
    unlinkat(dir_fd, LAUNCH_PIPE, 0);
    unlinkat(dir_fd, LAUNCH_OUTPUT, 0);
    close(dir_fd);
    rmdir(path);
    return 0;
}

static void
say_last_words(void)
{
    char bytes[PIECE];

    memset(bytes, 'w', sizeof bytes);
    for (unsigned i = 0; i < PIECES; i++)
        assert_int_equal(write(writer_fd, bytes, sizeof bytes), sizeof bytes);
}

static void
check_last_words(const char *bytes, uint64_t size)
{
    assert_true(size >= PIECES * PIECE);
    for (unsigned i = 0; i < PIECES * PIECE; i++)
        assert_int_equal(bytes[i], 'w');
}

/* All that was there before is moved, and the flood behind it holds nobody up. */
static void
test_flood(void **state)
{
    char bytes[PIECES * PIECE];

    (void)state;
    say_last_words();
    keeper_output_take_present(&o);
    assert_in_range(o.size, PIECES * PIECE, (PIECES + 1) * PIECE);
    assert_false(o.eof);
    assert_int_equal(pread(o.file_fd, bytes, sizeof bytes, 0), sizeof bytes);
    check_last_words(bytes, o.size);
    /* and one turn of the keeper's loop takes a bounded part of the flood */
    assert_int_equal(keeper_output_drain(&o), 1);
    assert_true(o.size > (PIECES + 1) * PIECE && n_refills < TOO_MANY / 10);
}

/* The disk takes nothing: kept in memory. */
static void
test_flood_and_full_disk(void **state)
{
    (void)state;
    disk_full = true;
    say_last_words();
    keeper_output_take_present(&o);
    assert_int_equal(o.error, ENOSPC);
    check_last_words(o.held, o.n_held);
}

static void
test_nothing_there(void **state)
{
    (void)state;
    keeper_output_take_present(&o);
    assert_int_equal(o.size, 0);
    assert_false(o.eof);
}

/* The end of file is seen, with last words before it and without: poll() tells nothing of it to a
 * keeper that came after the last writer. */
static void
test_nobody_writes(void **state)
{
    struct keeper_output late;

    (void)state;
    disk_full = true; /* no refills */
    say_last_words();
    close(writer_fd);
    writer_fd = -1;
    assert_int_equal(keeper_output_open(&late, dir_fd), 0);
    keeper_output_take_present(&late);
    check_last_words(late.held, late.n_held);
    assert_true(late.eof);
    keeper_output_take_present(&o);
    assert_true(o.eof);
    free(late.held);
    close(late.pipe_fd);
    close(late.file_fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flood_and_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nobody_writes, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
