/* The ring of a terminal's output: order, wrap, what is lost, and a head that lies. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/limits.h"
#include "common/tty_ring.h"

static unsigned char scratch[2 * LIMIT_TTY_RING];

static int
make(void **state)
{
    static int fd;

    fd = tty_ring_new();
    *state = &fd;
    return fd >= 0 ? 0 : -1;
}

static int
drop(void **state)
{
    return close(*(int *)*state);
}

/* Which byte stands at which place: a period that divides no power of two. */
static unsigned char
expected(uint64_t at)
{
    return (unsigned char)(at % 251);
}

static void
append(int fd, struct tty_ring_head *head, size_t len)
{
    static unsigned char bytes[2 * LIMIT_TTY_RING];

    for (size_t i = 0; i < len; i++)
        bytes[i] = expected(head->written + i);
    assert_int_equal(tty_ring_append(fd, head, bytes, len), 0);
}

/* Read all in pieces of `piece`; what comes must be what stood there. Number of bytes.
 */
static size_t
read_all(int fd, uint64_t *position, size_t piece)
{
    size_t total = 0;
    long n;

    while ((n = tty_ring_read(fd, position, scratch, piece)) > 0) {
        for (long i = 0; i < n; i++)
            assert_int_equal(scratch[i],
                             expected(*position - (uint64_t)n + (uint64_t)i));
        total += (size_t)n;
    }
    assert_int_equal(n, 0);
    return total;
}

static void
a_new_ring_is_empty_and_of_fixed_size(void **state)
{
    int fd = *(int *)*state;
    uint64_t position = 0;

    assert_int_equal(tty_ring_read(fd, &position, scratch, sizeof scratch), 0);
    assert_int_equal(position, 0);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, TTY_RING_SIZE + 1), -1);
    assert_int_equal(pwrite(fd, "x", 1, TTY_RING_SIZE),
                     -1); /* a worker cannot make it grow */
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* `kept`: how many of the bytes a reader from the very beginning still gets. */
static const struct {
    const char *label;
    size_t first, second, piece, kept;
} appends[] = {
    {"a byte", 1, 0, 64, 1},
    {"pieces", 1000, 1000, 7, 2000},
    {"exactly full", LIMIT_TTY_RING, 0, 4096, LIMIT_TTY_RING},
    {"one over", LIMIT_TTY_RING, 1, 4096, LIMIT_TTY_RING},
    {"across the border", LIMIT_TTY_RING - 3, 6, 4096, LIMIT_TTY_RING},
    {"to the border", LIMIT_TTY_RING - 3, 3, LIMIT_TTY_RING, LIMIT_TTY_RING},
    {"more than it holds at once", 5, LIMIT_TTY_RING + 77, 8191, LIMIT_TTY_RING},
    {"nothing", 0, 0, 64, 0},
};

static void
bytes_come_back_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof appends / sizeof appends[0]; i++) {
        struct tty_ring_head head = {0};
        uint64_t position = 0;
        int fd = tty_ring_new();

        append(fd, &head, appends[i].first);
        append(fd, &head, appends[i].second);
        if (read_all(fd, &position, appends[i].piece) != appends[i].kept)
            fail_msg("%s", appends[i].label);
        assert_int_equal(position, appends[i].first + appends[i].second);
        close(fd);
    }
}

/* A reader of its own pace: what it had not read when the writer lapped it is skipped.
 */
static void
a_lapped_reader_goes_on_with_the_oldest(void **state)
{
    int fd = *(int *)*state;
    struct tty_ring_head head = {0};
    uint64_t position = 0, before;

    append(fd, &head, 100);
    assert_int_equal(read_all(fd, &position, 64), 100);
    append(fd, &head, LIMIT_TTY_RING + 500);
    before = position;
    assert_int_equal(tty_ring_read(fd, &position, scratch, 10), 10);
    assert_int_equal(position - before, 500 + 10);
    assert_int_equal(read_all(fd, &position, 4096), LIMIT_TTY_RING - 10);
}

/* Two openings of one ring, as broker and worker hold it, have a position each. */
static void
a_replay_reads_what_another_wrote(void **state)
{
    int fd = *(int *)*state, other;
    struct tty_ring_head head = {0}, found;
    char path[32];
    uint64_t position = 0;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    other = open(path, O_RDWR | O_CLOEXEC);
    assert_true(other >= 0);
    append(fd, &head, 3000);
    assert_int_equal(tty_ring_head(other, &found), 0);
    assert_int_equal(found.written, 3000);
    append(other, &found, 3000); /* it takes over as the writer */
    assert_int_equal(tty_ring_head(fd, &head), 0);
    append(fd, &head, 5);
    assert_int_equal(read_all(other, &position, 100), 6005);
    close(other);
}

/* The writer died after the bytes, before the head: they never were, and nothing else
 * breaks. */
static void
bytes_without_their_head_are_not_there(void **state)
{
    int fd = *(int *)*state;
    struct tty_ring_head head = {0};
    uint64_t position = 0;

    append(fd, &head, 40);
    assert_int_equal(pwrite(fd, "torn", 4, TTY_RING_DATA + 40), 4);
    assert_int_equal(read_all(fd, &position, 64), 40);
    assert_int_equal(tty_ring_head(fd, &head), 0);
    append(fd, &head, 10);
    assert_int_equal(read_all(fd, &position, 64), 10);
}

/* What a worker that was taken over may write there. Positions are a reader's before.
 */
static const struct {
    const char *label;
    uint64_t written, position;
    long most; /* bytes that a read of the whole scratch may give */
} lies[] = {
    {"the past", 10, 5000, 0},
    {"nothing", 0, UINT64_MAX, 0},
    {"the end of numbers", UINT64_MAX, 0, LIMIT_TTY_RING},
    {"the end, nearly read", UINT64_MAX, UINT64_MAX - 3, 3},
    {"negative as off_t", (uint64_t)1 << 63, 0, LIMIT_TTY_RING},
    {"just over the ring", LIMIT_TTY_RING + 1, 0, LIMIT_TTY_RING},
};

static void
a_lying_head_costs_no_more_than_wrong_bytes(void **state)
{
    int fd = *(int *)*state;

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct tty_ring_head head = {.written = lies[i].written};
        uint64_t position = lies[i].position;
        long n;

        assert_int_equal(pwrite(fd, &head, sizeof head, 0), sizeof head);
        n = tty_ring_read(fd, &position, scratch, sizeof scratch);
        if (n != lies[i].most || position != lies[i].written)
            fail_msg("%s: %ld bytes", lies[i].label, n);
        /* the broker goes on as the writer from there, over the end of numbers too */
        assert_int_equal(tty_ring_append(fd, &head, "abcdef", 6), 0);
        assert_int_equal(head.written, lies[i].written + 6);
        position = lies[i].written;
        if (head.written > position) {
            assert_int_equal(tty_ring_read(fd, &position, scratch, sizeof scratch), 6);
            assert_memory_equal(scratch, "abcdef", 6);
        }
    }
}

/* Read all; what comes with which size, as "bytes@colsxrows " each. */
static const char *
sized(int fd, uint64_t position)
{
    static char text[8192];
    struct tty_ring_size size;
    size_t at = 0;
    long n;

    text[0] = '\0';
    while ((n = tty_ring_read_sized(fd, &position, scratch, sizeof scratch, &size)) > 0)
        at += (size_t)snprintf(text + at, sizeof text - at, "%ld@%ux%u ", n, size.cols,
                               size.rows);
    assert_int_equal(n, 0);
    snprintf(text + at, sizeof text - at, "now %ux%u", size.cols, size.rows);
    return text;
}

static void
resize(int fd, struct tty_ring_head *head, uint16_t cols, uint16_t rows)
{
    assert_int_equal(tty_ring_resize(fd, head, (struct tty_ring_size){cols, rows}), 0);
}

static void
bytes_know_the_size_they_were_made_for(void **state)
{
    int fd = *(int *)*state;
    struct tty_ring_head head = {0};

    append(fd, &head, 3);
    assert_string_equal(sized(fd, 0), "3@0x0 now 0x0");
    resize(fd, &head, 80, 24);
    append(fd, &head, 10);
    resize(fd, &head, 100, 30);
    resize(fd, &head, 101, 30); /* nothing came at 100 */
    append(fd, &head, 20);
    resize(fd, &head, 101, 30); /* no change */
    append(fd, &head, 1);
    resize(fd, &head, 90, 20);
    assert_string_equal(sized(fd, 0), "3@0x0 10@80x24 21@101x30 now 90x20");
    assert_string_equal(sized(fd, 5), "8@80x24 21@101x30 now 90x20");
    assert_int_equal(head.n_marks, 3);
    /* the oldest bytes go, the size of what stays does not */
    append(fd, &head, LIMIT_TTY_RING - 5);
    assert_string_equal(sized(fd, 0), "5@101x30 262139@90x20 now 90x20");
    resize(fd, &head, 70, 20);
    assert_int_equal(head.n_marks, 3);
    append(fd, &head, LIMIT_TTY_RING);
    resize(fd, &head, 71, 20);
    assert_int_equal(head.n_marks, 2);
    assert_string_equal(sized(fd, 0), "262144@70x20 now 71x20");
}

static void
of_many_sizes_the_newest_stay(void **state)
{
    int fd = *(int *)*state;
    struct tty_ring_head head = {0}, found;

    for (uint16_t i = 1; i <= 300; i++) {
        resize(fd, &head, i, 24);
        append(fd, &head, 1);
    }
    assert_int_equal(tty_ring_head(fd, &found), 0);
    assert_int_equal(found.n_marks, TTY_RING_MARKS);
    assert_int_equal(found.marks[0].size.cols, 300 - TTY_RING_MARKS + 1);
    assert_int_equal(found.marks[TTY_RING_MARKS - 1].size.cols, 300);
}

/* A reader comes to its end whatever the marks say, and believes no impossible size. */
static void
lying_marks_cost_no_more_than_wrong_sizes(void **state)
{
    static const uint64_t numbers[] = {0, 1, 5, TTY_RING_MARKS, TTY_RING_MARKS + 1, UINT64_MAX};
    static const uint64_t places[] = {0, 1, 9, 10, 11, UINT64_MAX};
    int fd = *(int *)*state;

    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        for (size_t first = 0; first < 6; first++)
            for (size_t second = 0; second < 6; second++) {
                struct tty_ring_head head = {.written = 10, .n_marks = numbers[n]};
                struct tty_ring_size size = {0};
                uint64_t position = 0, total = 0;
                long got;

                head.marks[0] = (struct tty_ring_mark){places[first], {UINT16_MAX, 3}, 0};
                head.marks[1] = (struct tty_ring_mark){places[second], {9, 3}, 0};
                assert_int_equal(pwrite(fd, &head, sizeof head, 0), sizeof head);
                while ((got = tty_ring_read_sized(fd, &position, scratch, 4, &size)) > 0) {
                    total += (uint64_t)got;
                    assert_true(size.cols <= LIMIT_TTY_SIZE);
                }
                assert_int_equal(total, 10);
                resize(fd, &head, 80, 24);
                assert_true(head.n_marks <= TTY_RING_MARKS);
            }
}

static void
a_descriptor_that_cannot_is_an_error(void **state)
{
    struct tty_ring_head head = {0};
    uint64_t position = 0;
    int pipes[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_true(tty_ring_append(pipes[1], &head, "x", 1) < 0);
    assert_true(tty_ring_read(pipes[0], &position, scratch, 1) < 0);
    assert_true(tty_ring_head(null, &head) < 0); /* short */
    close(pipes[0]);
    close(pipes[1]);
    close(null);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_ring_is_empty_and_of_fixed_size, make,
                                        drop),
        cmocka_unit_test(bytes_come_back_in_order),
        cmocka_unit_test_setup_teardown(a_lapped_reader_goes_on_with_the_oldest, make,
                                        drop),
        cmocka_unit_test_setup_teardown(a_replay_reads_what_another_wrote, make, drop),
        cmocka_unit_test_setup_teardown(bytes_without_their_head_are_not_there, make,
                                        drop),
        cmocka_unit_test_setup_teardown(a_lying_head_costs_no_more_than_wrong_bytes,
                                        make, drop),
        cmocka_unit_test_setup_teardown(bytes_know_the_size_they_were_made_for, make, drop),
        cmocka_unit_test_setup_teardown(of_many_sizes_the_newest_stay, make, drop),
        cmocka_unit_test_setup_teardown(lying_marks_cost_no_more_than_wrong_sizes, make, drop),
        cmocka_unit_test(a_descriptor_that_cannot_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
