/*
 * The newest output of a terminal in a memfd, kept for who comes back. One writer at a time:
 * the worker that reads the terminal, or the broker while nobody watches. Who reads it trusts
 * no byte of it: its writer may have been taken over.
 *
 * Written with lseek and write, read with pread: a worker may map nothing for writing.
 */
#ifndef COMMON_TTY_RING_H
#define COMMON_TTY_RING_H

#include <stddef.h>
#include <stdint.h>

/* At offset 0; the bytes begin at TTY_RING_DATA. */
struct tty_ring_head {
    uint64_t written; /* bytes ever; the next one goes to written % LIMIT_TTY_RING */
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

/* Copy what follows `*position` (bytes ever written) into `into`, at most `size` bytes; moves
 * the position, past what is lost already too. Returns the number of bytes or -errno. */
long
tty_ring_read(int fd, uint64_t *position, void *into, size_t size);

#endif
