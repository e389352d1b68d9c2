/* Random conversations of the right shape with the real broker, for a given time: it stays
 * alive and what it was, and hands out nothing that a worker may not hold. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/messages.h"
#include "tests/attack/broker_process.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define WORKERS 4u
#define CHECK_EVERY 5000u

static struct broker_process broker;
static struct channel_packet packet;
static int channels[WORKERS + 1];
static uint64_t learned[16]; /* numbers that the broker said: epochs, references, children */
static unsigned n_learned;
static uint64_t state;

/* xorshift: the same seed is the same run. */
static uint32_t
dice(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % n;
}

static const char *const words[] = {
    "", "run", "linked", "fifo", "folder", "away", "dev", "task", "model", "agent", "linktask",
    "linkmodel", "..", ".", "/", "../secret", "task/model", "latest", "-rf", "--config=/etc",
    "a\nb", "archive", "summary.json", "01234567-89ab-4cde-8f01-23456789abcd", "reference",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
};

static uint64_t
number(void)
{
    static const uint64_t numbers[] = {0, 1, 2, 7, 8, 255, 65535, INT32_MAX, UINT32_MAX,
                                       INT64_MAX, UINT64_MAX};

    switch (dice(3)) {
    case 0: return learned[dice(N(learned))];
    case 1: return dice(16);
    default: return numbers[dice(N(numbers))];
    }
}

/* Fill the body with words, numbers and noise on the boundaries that structs have. */
static void
fill(unsigned char *bytes, size_t len)
{
    size_t at = sizeof(struct message_head);

    switch (dice(4)) {
    case 0: return; /* all zero */
    case 1: /* right where the first field is */
        if (dice(2)) {
            const char *w = words[dice(N(words))];

            memcpy(bytes + at, w, strlen(w) < len - at ? strlen(w) : len - at);
        }
        return;
    default: break;
    }
    while (at + 8 <= len) {
        uint64_t n = number();
        const char *w = words[dice(N(words))];

        if (dice(3) == 0 && at + strlen(w) < len)
            memcpy(bytes + at, w, strlen(w));
        else if (dice(2))
            memcpy(bytes + at, &n, sizeof n);
        at += dice(4) == 0 ? 1 + dice(70) : 8;
    }
}

/* Whole and sensible, so that fuzz reaches behind the first check. */
static void
make_sensible(uint16_t type, unsigned char *bytes)
{
    static const char *const ids[] = {"run", "linked", "fifo", "folder", "away", "none"};
    const char *id = ids[dice(N(ids))];

    if (type == MESSAGE_HELLO)
        ((struct request_hello *)bytes)->version = MESSAGES_VERSION;
    if (type == MESSAGE_TOKEN_SHOW) {
        struct request_token_show *q = (struct request_token_show *)bytes;

        q->number = BROKER_TOKEN_VIEW + dice(5);
        memset(q->proof, (int)q->number, sizeof q->proof);
        q->proof[31] ^= dice(20) == 0;
    }
    if (type == MESSAGE_RUN_STOP || type == MESSAGE_RUN_REMOVE)
        strcpy(((struct request_run *)bytes)->run_id, id);
    if (type == MESSAGE_RUN_LOGS) {
        struct request_run_logs *q = (struct request_run_logs *)bytes;

        strcpy(q->run_id, id);
        q->once = (uint8_t)dice(2);
    }
    if (type == MESSAGE_RUN_LOCATE) {
        struct request_run_locate *q = (struct request_run_locate *)bytes;

        strcpy(q->run_id, id);
        strcpy(q->task, "task");
        strcpy(q->agent, "agent");
        strcpy(q->model, "model");
    }
    if (type == MESSAGE_RUN_FILE) {
        struct request_run_file *q = (struct request_run_file *)bytes;

        q->epoch = number();
        q->ref = number();
        q->file = 1 + dice(RUN_FILES - 1);
    }
    if (type == MESSAGE_RUN_CONNECT) {
        strcpy(((struct request_run_connect *)bytes)->run_id, id);
        ((struct request_run_connect *)bytes)->port = 1 + dice(RUN_PORTS - 1);
    }
    if (type == MESSAGE_RUN_WATCH) {
        ((struct request_run_watch *)bytes)->epoch = number();
        ((struct request_run_watch *)bytes)->ref = number();
    }
    if (type == MESSAGE_RUN_UNWATCH)
        ((struct request_run_unwatch *)bytes)->watch = number();
    if (type == MESSAGE_TASK_FILE) {
        strcpy(((struct request_task_file *)bytes)->task, dice(2) ? "trap" : "away");
        strcpy(((struct request_task_file *)bytes)->path, words[dice(N(words))]);
    }
    if (type == MESSAGE_TTY_OPEN) {
        struct request_tty_open *q = (struct request_tty_open *)bytes;

        strcpy(q->run_id, id);
        q->program = 1 + dice(TTY_PROGRAMS - 1);
        q->cols = q->rows = (uint16_t)(1 + dice(200));
        q->passes_env = dice(2);
    }
    if (type == MESSAGE_TTY_END && dice(2))
        ((struct request_tty_end *)bytes)->number = 1 + dice(20);
    else if (type == MESSAGE_TTY_END)
        ((struct request_tty_end *)bytes)->session[dice(MESSAGE_TTY_SESSION)] = 1;
    if (type == MESSAGE_CHILD_END)
        ((struct request_child_end *)bytes)->child = number();
}

static void
learn(void)
{
    uint64_t n;

    for (size_t at = 16; at + 8 <= packet.len && at <= 32; at += 8) {
        memcpy(&n, packet.bytes + at, sizeof n);
        if (n != 0)
            learned[n_learned++ % N(learned)] = n;
    }
}

/* Read what came; false: something was handed out that may not be. */
static bool
read_answers(unsigned w)
{
    const char *fault = NULL;
    int r;

    while (channels[w] >= 0 && (r = channel_receive(channels[w], &packet)) != -EAGAIN) {
        if (r < 0) {
            close(channels[w]);
            channels[w] = -1;
            break;
        }
        for (unsigned i = 0; i < packet.n_fds && fault == NULL; i++)
            fault = broker_process_judge(&broker, packet.fds[i]);
        channel_packet_done(&packet);
        learn();
    }
    if (fault != NULL)
        printf("FAIL channel-fuzz: %s\n", fault);
    return fault == NULL;
}

static void
send_one(unsigned w)
{
    _Alignas(8) unsigned char bytes[CHANNEL_MESSAGE_MAX] = {0};
    uint16_t type = (uint16_t)(dice(40) == 0 ? dice(65536) : 1 + dice(MESSAGE_TYPES));
    const struct message_shape *shape = message_shape(type);
    struct message_head head = {.type = type, .seq = 2 + dice(1u << 20)};
    size_t len = shape != NULL && shape->request_len > 0 ? shape->request_len : 8 + dice(4000);
    unsigned n_fds = shape != NULL ? shape->request_fds : dice(3);
    int fds[4] = {0, 1, channels[w], broker.control};

    if (type == MESSAGE_HELLO && dice(20) != 0)
        return; /* a second one ends the channel: not too often */
    if (dice(4) != 0)
        make_sensible(type, bytes);
    else
        fill(bytes, len);
    if (dice(20) == 0)
        head.as = (uint16_t)(dice(4) != 0 ? BROKER_TOKEN_VIEW + dice(4) : dice(65536));
    if (dice(200) == 0)
        head.seq = 0;
    memcpy(bytes, &head, sizeof head);
    if (dice(150) == 0)
        len = 1 + dice(CHANNEL_MESSAGE_MAX);
    if (dice(150) == 0)
        n_fds = dice(5);
    channel_send(channels[w], bytes, len, fds, n_fds);
}

static const char *
check(void)
{
    const char *fault;

    for (unsigned w = 1; w <= WORKERS; w++) {
        if (channels[w] >= 0)
            close(channels[w]);
        channels[w] = -1;
    }
    fault = broker_process_check(&broker);
    return fault != NULL ? fault : broker_process_calls(&broker, NULL);
}

int
main(int argc, char **argv)
{
    uint64_t end, seed, n = 0;
    unsigned long before;
    const char *fault = NULL;

    if (argc < 3)
        return 2;
    seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)getpid() * 2654435761u + now_ms();
    state = seed | 1;
    if (dice(4) == 0)
        broker_process_start_with_tokens(&broker, argv[1]);
    else
        broker_process_start(&broker, argv[1], dice(4) == 0);
    for (unsigned w = 0; w <= WORKERS; w++)
        channels[w] = -1;
    before = process_rss_kib(broker.pid);
    for (end = now_ms() + strtoull(argv[2], NULL, 0) * 1000; now_ms() < end && fault == NULL; n++) {
        unsigned w = 1 + dice(WORKERS);

        if (channels[w] < 0)
            channels[w] = dice(20) == 0 ? broker_process_channel(&broker, w)
                                        : broker_process_worker(&broker, w);
        send_one(w);
        if (dice(4) == 0 && !read_answers(w))
            return 1;
        if (!broker_process_listen(&broker))
            fault = "the broker ended";
        else if (n % CHECK_EVERY == CHECK_EVERY - 1)
            fault = check();
    }
    if (fault == NULL)
        fault = check();
    if (fault == NULL && process_rss_kib(broker.pid) > before + 65536)
        fault = "memory grown by more than 64 MiB";
    if (fault != NULL)
        printf("FAIL channel-fuzz: %s (seed %llu, message %llu)\n", fault,
               (unsigned long long)seed, (unsigned long long)n);
    else
        printf("PASS channel-fuzz: %llu messages, %lu to %lu KiB, seed %llu\n",
               (unsigned long long)n, before, process_rss_kib(broker.pid),
               (unsigned long long)seed);
    broker_process_stop(&broker);
    return fault != NULL;
}
