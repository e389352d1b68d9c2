/* A brokered file open beside a direct one: microseconds each, broker in a process of its own. */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/dispatch.h"
#include "common/channel.h"
#include "common/log.h"
#include "common/messages.h"

#define OPENS 20000u
#define ROUNDS 5u

static char top[] = "/tmp/bench-open-XXXXXX";
static char file[256];
static int channel;
static uint32_t seq;
static struct channel_packet packet;

static _Noreturn void
give_up(const char *what)
{
    fprintf(stderr, "bench_open: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void
make_run(void)
{
    char path[256];

    if (mkdtemp(top) == NULL)
        give_up(top);
    snprintf(path, sizeof path, "mkdir -p %s/results/t/m/a/run-1/archive", top);
    if (system(path) != 0)
        give_up(path);
    snprintf(path, sizeof path, "%s/results/t/m/a/run-1/summary.json", top);
    FILE *f = fopen(path, "w");
    if (f == NULL || fputs("{\"task\":{\"id\":\"t\"}}", f) < 0 || fclose(f) != 0)
        give_up(path);
    snprintf(file, sizeof file, "%s/results/t/m/a/run-1/archive/dialog.jsonl", top);
    f = fopen(file, "w");
    if (f == NULL || fputs("{}\n", f) < 0 || fclose(f) != 0)
        give_up(file);
}

/* The broker as its main sets it up, but for the lock-down, which costs nothing here. */
static _Noreturn void
be_broker(int end)
{
    static struct broker b;
    int control[2];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    if (channel_pair(control) != 0)
        _exit(1);
    b.control_fd = control[0];
    snprintf(b.config.cli, sizeof b.config.cli, "/bin/false");
    snprintf(b.config.checkout, sizeof b.config.checkout, "%s", top);
    snprintf(b.config.roots, sizeof b.config.roots, "%s/results", top);
    log_init("broker", control[0], LOG_LEVEL_ERROR);
    b.base = event_base_new();
    if (b.base == NULL || event_base_priority_init(b.base, BROKER_PRIORITIES) != 0 ||
        broker_init(&b) != 0 || dispatch_add_worker(b.dispatch, 1, end) != 0)
        _exit(1);
    event_base_dispatch(b.base);
    _exit(0);
}

static const void *
ask(uint16_t type, void *request)
{
    struct pollfd p = {channel, POLLIN, 0};
    const struct message_head *head = (const struct message_head *)packet.bytes;

    *(struct message_head *)request = (struct message_head){.type = type, .seq = ++seq};
    if (channel_send(channel, request, message_shape(type)->request_len, NULL, 0) != 0)
        give_up("send");
    do {
        channel_packet_done(&packet);
        packet.n_fds = 0;
        if (poll(&p, 1, 10000) != 1)
            give_up("no answer");
        errno = -channel_receive(channel, &packet);
        if (errno != 0)
            give_up("receive");
    } while (head->type != type || head->seq != seq);
    return packet.bytes;
}

/* The reference of the one run, from the broker's scan. */
static void
find_run(uint64_t *ret_epoch, uint64_t *ret_ref)
{
    struct request_hello hello = {.version = MESSAGES_VERSION};
    struct request_results_scan scan = {0};

    ask(MESSAGE_HELLO, &hello);
    for (unsigned tries = 0; tries < 100; tries++) {
        const struct answer_results_scan *a = ask(MESSAGE_RESULTS_SCAN, &scan);
        struct scan_record record;

        if (packet.n_fds == 1 && a->size >= sizeof record &&
            pread(packet.fds[0], &record, sizeof record, 0) == sizeof record) {
            *ret_epoch = a->epoch;
            *ret_ref = record.ref;
            return;
        }
        usleep(20000);
    }
    give_up("the run is not found");
}

static void
open_brokered(uint64_t epoch, uint64_t ref)
{
    struct request_run_file request = {.epoch = epoch, .ref = ref, .file = RUN_FILE_DIALOG};
    const struct answer_run_file *a = ask(MESSAGE_RUN_FILE, &request);

    if (a->status != ANSWER_OK || packet.n_fds != 1)
        give_up("the file is refused");
    channel_packet_done(&packet);
    packet.n_fds = 0;
}

static void
open_directly(void)
{
    struct stat st;
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0)
        give_up(file);
    close(fd);
}

static double
now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int
main(void)
{
    double brokered[ROUNDS], directly[ROUNDS];
    uint64_t epoch, ref;
    int ends[2];
    pid_t broker;

    make_run();
    if (channel_pair(ends) != 0)
        give_up("channel");
    broker = fork();
    if (broker == 0) {
        close(ends[1]);
        be_broker(ends[0]);
    }
    close(ends[0]);
    channel = ends[1];
    find_run(&epoch, &ref);
    for (unsigned i = 0; i < ROUNDS; i++) {
        double start = now_us();

        for (unsigned n = 0; n < OPENS; n++)
            open_brokered(epoch, ref);
        brokered[i] = (now_us() - start) / OPENS;
        start = now_us();
        for (unsigned n = 0; n < OPENS; n++)
            open_directly();
        directly[i] = (now_us() - start) / OPENS;
    }
    qsort(brokered, ROUNDS, sizeof *brokered, compare);
    qsort(directly, ROUNDS, sizeof *directly, compare);
    printf("\nOpening a run's file, microseconds (median of %u x %u, one after the other)\n"
           "  through the broker  %6.1f\n  open and fstat      %6.1f\n  difference          %6.1f\n",
           ROUNDS, OPENS, brokered[ROUNDS / 2], directly[ROUNDS / 2],
           brokered[ROUNDS / 2] - directly[ROUNDS / 2]);
    close(channel);
    kill(broker, SIGKILL);
    waitpid(broker, NULL, 0);
    fflush(NULL);
    execlp("rm", "rm", "-rf", top, (char *)NULL);
    return 1;
}
