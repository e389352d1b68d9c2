/*
 * The broker: the only process that opens files, connects and runs the CLI, for workers it
 * does not trust. Take what was handed down, set up, lock down, loop.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/master_link.h"
#include "common/handoff.h"
#include "common/log.h"
#include "common/open_beneath.h"
#include "common/sandbox.h"
#include "common/scoreboard.h"

/* The master orders, by its channel; what a terminal or a service manager sends to the whole
 * group is the master's to act on. */
static void
ignore_signals(void)
{
    static const int signals[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_IGN);
}

/* Nothing but what was handed down may be open, and none of it may reach a child. */
static void
take_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            log_die("no /dev/null");
    if (fcntl(HANDOFF_CONTROL, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(HANDOFF_CONFIG, F_SETFD, FD_CLOEXEC) != 0)
        log_die("started by hand: the master starts the broker");
    close(HANDOFF_CHANNEL);
    if (close_range(HANDOFF_SCOREBOARD + 1, ~0u, 0) != 0)
        log_die("close_range: %s", strerror(errno));
}

/* Our page is the last. Counters are for people: without them we serve as well. */
static void
take_scoreboard(uint32_t n_workers)
{
    if (fcntl(HANDOFF_SCOREBOARD, F_GETFD) >= 0 &&
        scoreboard_map(HANDOFF_SCOREBOARD, n_workers + 1, n_workers) != 0)
        close(HANDOFF_SCOREBOARD);
}

/* Without the kernel's own refusal of links there is no safe way to open a run's file. */
static void
check_kernel(void)
{
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0 ? -errno : open_beneath(root, ".", O_PATH | O_DIRECTORY);

    if (fd < 0)
        log_die("openat2 does not work here: %s", strerror(-fd));
    close(fd);
    close(root);
}

static void
make_base(struct broker *b)
{
    b->base = event_base_new();
    if (b->base == NULL || event_base_priority_init(b->base, BROKER_PRIORITIES) != 0)
        log_die("no event loop");
}

int
main(void)
{
    static struct broker broker;
    uint32_t fences = 0;
    int r;

    ignore_signals();
    take_descriptors();
    r = handoff_read_config(HANDOFF_CONFIG, &broker.config, sizeof broker.config);
    if (r < 0)
        log_die("configuration: %s", strerror(-r));
    broker.control_fd = HANDOFF_CONTROL;
    log_init("broker", HANDOFF_CONTROL, (enum log_level)broker.config.log_level);
    take_scoreboard(broker.config.n_workers);

    check_kernel();
    r = sandbox_broker_enter(broker.config.drop_uid, broker.config.drop_gid, &fences);
    if (r < 0)
        log_die("locking down: %s", strerror(-r));
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* here: a change of account clears it */
    make_base(&broker);
    r = broker_init(&broker);
    if (r < 0)
        log_die("setting up: %s", strerror(-r));
    r = master_link_start(&broker, fences);
    if (r < 0)
        log_die("the master does not listen: %s", strerror(-r));

    event_base_dispatch(broker.base);
    broker_done(&broker);
    return 0;
}
