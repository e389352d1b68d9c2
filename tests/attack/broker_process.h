/* The real broker as a child of a test that plays its master and its workers. */
#ifndef TESTS_ATTACK_BROKER_PROCESS_H
#define TESTS_ATTACK_BROKER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/channel.h"

#define PATIENCE_MS 20000 /* the machine is shared; nothing here measures time */

struct broker_process {
    pid_t pid;
    int control;       /* the master's end */
    char dir[64];      /* everything of this test lies below */
    unsigned base_fds; /* descriptors when idle, after its first use */
    uint32_t killed;   /* number of the last worker it wants ended; 0: none */
    unsigned n_lines;  /* log lines it sent */
};

/* Start `program` on a new checkout with one finished run and a set of traps. Exits the test
 * when that fails. */
void
broker_process_start(struct broker_process *p, const char *program, bool hosted);

/* The same, not hosted, with the tokens below. */
void
broker_process_start_with_tokens(struct broker_process *p, const char *program);

/* Numbers of those tokens; the proof of each is its number, 32 times. */
enum { BROKER_TOKEN_VIEW = 11, BROKER_TOKEN_OPERATE, BROKER_TOKEN_FULL, BROKER_TOKEN_EXPIRED };

/* SIGKILL, and remove the folder. */
void
broker_process_stop(struct broker_process *p);

/* A new channel for worker `number`: our end. */
int
broker_process_channel(struct broker_process *p, uint32_t number);

/* The same, with HELLO said. */
int
broker_process_worker(struct broker_process *p, uint32_t number);

/* Read what it tells the master, without waiting. False: it has closed that channel. */
bool
broker_process_listen(struct broker_process *p);

/* Wait for one message on a channel: 0, -EPIPE (closed), -ETIMEDOUT. */
int
broker_process_receive(struct broker_process *p, int fd, struct channel_packet *packet);

/* Is it alive, with no more descriptors than when idle and without children? Waits for that.
 * Otherwise says what is wrong. */
const char *
broker_process_check(struct broker_process *p);

/* What may a worker hold: sealed memory, the reading end of a pipe, a known file of a run.
 * NULL, or what is wrong with this descriptor. */
const char *
broker_process_judge(const struct broker_process *p, int fd);

/* Every argument vector with which the CLI was called is one that policy allows. NULL, or the
 * offending line. `ret_n`: how many there were; NULL: not wanted. */
const char *
broker_process_calls(const struct broker_process *p, unsigned *ret_n);

unsigned
process_fds(pid_t pid);
unsigned
process_children(pid_t pid);
unsigned long
process_rss_kib(pid_t pid);
uint64_t
now_ms(void);

#endif
