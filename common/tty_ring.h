/*
 * The newest output of a terminal in a memfd, kept for who comes back. One writer at a time:
 * the worker that reads the terminal, or the broker while nobody watches. Who reads it trusts
 * no byte of it: its writer may have been taken over.
 *
 * With it stands how wide the terminal was: old lines, wrapped and redrawn for one width, make
 * sense at that width only.
 *
 * Written with lseek and write, read with pread: a worker may map nothing for writing.
 */
#ifndef COMMON_TTY_RING_H
#define COMMON_TTY_RING_H

#include <stddef.h>
#include <stdint.h>

struct tty_ring_size {
    uint16_t cols, rows; /* 0: unknown */
};

/* From byte `at` (of those ever written) on, the terminal had this size. */
struct tty_ring_mark {
    uint64_t at;
    struct tty_ring_size size;
    uint32_t reserved;
};

#define TTY_RING_MARKS 128u

/* At offset 0; the bytes begin at TTY_RING_DATA. */
struct tty_ring_head {
    uint64_t written; /* bytes ever; the next one goes to written % LIMIT_TTY_RING */
    uint64_t n_marks;
    struct tty_ring_mark marks[TTY_RING_MARKS]; /* the oldest first */
};

#define TTY_RING_DATA 4096u
#define TTY_RING_SIZE (TTY_RING_DATA + LIMIT_TTY_RING)

/* A new, empty one of fixed size: descriptor, or -errno. */
int
tty_ring_new(void);

int
tty_ring_head(int fd, struct tty_ring_head *ret_head);

/* Append, then say so in the head. `head` is the writer's own copy. 0 or -errno. */
int
tty_ring_append(int fd, struct tty_ring_head *head, const void *bytes, size_t len);

/* The terminal has another size from here on. Of more changes than TTY_RING_MARKS the oldest
 * are forgotten. 0 or -errno. */
int
tty_ring_resize(int fd, struct tty_ring_head *head, struct tty_ring_size size);

/* Copy what follows `*position` (bytes ever written) into `into`, at most `size` bytes; moves
 * the position, past what is lost already too. Returns the number of bytes or -errno. */
long
tty_ring_read(int fd, uint64_t *position, void *into, size_t size);

/* The same, but no further than the next change of size. `*ret_size`: the size that belongs to
 * what was read, or with nothing to read the newest one. */
long
tty_ring_read_sized(int fd, uint64_t *position, void *into, size_t size,
                    struct tty_ring_size *ret_size);

#endif
