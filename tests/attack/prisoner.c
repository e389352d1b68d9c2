/* In the worker's place of a build with -Dprisoner=true: behind the same fences, with the same
 * descriptors, tries one thing and says what came of it. The thing is named by the base path.
 * Every system call number is held against the kernel in tests/unit/test_sandbox.c; here is what
 * takes more than one call, or the live master, broker and sibling. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/channel.h"
#include "common/control.h"
#include "common/handoff.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/sandbox.h"
#include "common/scoreboard.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct worker_config config;
static pid_t master, first_pid;

static long
tell(uint32_t type, uint32_t value, int n_fds)
{
    struct control_head head = {type, value};
    int fds[] = {HANDOFF_LISTENER, HANDOFF_CHANNEL};
    int r = channel_send(HANDOFF_CONTROL, &head, sizeof head, fds, (unsigned)n_fds);

    poll(NULL, 0, 1000); /* time to be killed for it */
    return r;
}

static long
open_proc(pid_t pid, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return open(path, O_RDWR);
}

static long
try_proc_master(void)
{
    return open_proc(master, "mem");
}

static long
try_proc_self(void)
{
    return open("/proc/self/fd/7", O_RDONLY);
}

static long
try_kill_master(void)
{
    return kill(master, SIGKILL);
}

static long
try_kill_everybody(void)
{
    return kill(-1, SIGKILL);
}

static long
try_kill_sibling(void)
{
    return kill(first_pid + 1, SIGKILL);
}

static long
try_pidfd(void)
{
    return syscall(SYS_pidfd_open, master, 0);
}

static long
try_ptrace(void)
{
    return ptrace(PTRACE_ATTACH, master, NULL, NULL);
}

static long
try_vm_read(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};

    return process_vm_readv(master, &here, 1, &there, 1, 0);
}

static long
try_type_in(void)
{
    return ioctl(STDERR_FILENO, TIOCSTI, "x");
}

static long
try_exec_memory(void)
{
    return syscall(SYS_execveat, HANDOFF_SCOREBOARD, "", NULL, NULL, 0x1000);
}

static long
try_timers(void)
{
    for (int i = 0; i < 100000; i++)
        if (timerfd_create(CLOCK_MONOTONIC, 0) < 0)
            return -errno;
    return 0;
}

static long
try_alarm(void)
{
    timer_t t;
    struct sigevent e = {.sigev_notify = SIGEV_NONE};

    return syscall(SYS_timer_create, CLOCK_MONOTONIC, &e, &t);
}

static long
try_raise_limit(void)
{
    return syscall(SYS_prlimit64, 0, 7, &(uint64_t[2]){1u << 20, 1u << 20}, NULL);
}

/* All that is allowed of the address space: refused at the limit, long before the machine ends. */
static long
try_memory(void)
{
    size_t got = 0;

    while (mmap(NULL, 1u << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED)
        if ((got += 1u << 24) > (size_t)16 << 30)
            return 0;
    return -errno;
}

static long
try_epolls(void)
{
    int n = 0;

    while (epoll_create1(EPOLL_CLOEXEC) >= 0)
        if (++n > 1000000)
            return 0;
    return -errno;
}

static long
try_descriptors_from_broker(void)
{
    int flags = fcntl(HANDOFF_CHANNEL, F_GETFL), r = 0;
    struct request_runs_list q = {.head = {.type = MESSAGE_RUNS_LIST}};

    if (flags < 0)
        return -errno;
    for (uint32_t i = 2; i < 5000 && r == 0; i++) {
        q.head.seq = i;
        r = channel_send(HANDOFF_CHANNEL, &q, sizeof q, NULL, 0);
    }
    return r;
}

static long
try_log_flood(void)
{
    char line[LIMIT_LOG_LINE + sizeof(struct control_head)];
    struct control_head head = {CONTROL_LOG, LOG_LEVEL_ERROR};
    int full = 0;

    memset(line, 'x', sizeof line);
    memcpy(line, &head, sizeof head);
    for (int i = 0; i < 200000 && full < 200; i++)
        if (channel_send(HANDOFF_CONTROL, line, sizeof line, NULL, 0) == -EAGAIN) {
            poll(NULL, 0, 5);
            full++;
        }
    return 0;
}

static long
try_stderr_flood(void)
{
    char text[4096];

    memset(text, 'y', sizeof text);
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK | O_WRONLY);
    for (int i = 0; i < 2000; i++)
        if (write(STDERR_FILENO, text, sizeof text) < 0)
            poll(NULL, 0, 1);
    return 0;
}

static long
say(const char *text, size_t len, uint32_t level)
{
    char message[sizeof(struct control_log) + 64];
    struct control_head head = {CONTROL_LOG, level};

    memcpy(message, &head, sizeof head);
    memcpy(message + sizeof head, text, len);
    return channel_send(HANDOFF_CONTROL, message, sizeof head + len, NULL, 0);
}

static long
try_forged_line(void)
{
    static const char text[] =
        "x\n2026-01-01T00:00:00.000Z error master forged-line\r\x1b[2J\x1b]52;c;aGk=\x07"
        "\xe2\x80\xa8\xc2\x9b" "31mred\x00after";

    return say(text, sizeof text - 1, LOG_LEVEL_ERROR) | say(text, sizeof text - 1, 4000000000u) |
           say(text, sizeof text - 1, 0);
}

static long
try_long_line(void)
{
    char text[LIMIT_LOG_LINE + 1];
    long r;

    memset(text, 'z', sizeof text);
    r = say(text, sizeof text, LOG_LEVEL_ERROR);
    poll(NULL, 0, 1000);
    return r;
}

static long
try_ready_again(void)
{
    for (int i = 0; i < 100; i++) {
        struct control_head head = {CONTROL_READY, (uint32_t)i};

        channel_send(HANDOFF_CONTROL, &head, sizeof head, NULL, 0);
    }
    return 0;
}

static long
try_scribble(void)
{
    for (int score = 0; score < 8; score++)
        scoreboard_add((enum score)score, INT64_MAX);
    return 0;
}

static long
try_control_kill(void)
{
    return tell(CONTROL_KILL, 2, 0);
}

static long
try_control_stop(void)
{
    return tell(CONTROL_STOP, 0, 0);
}

static long
try_control_channel(void)
{
    return tell(CONTROL_CHANNEL, 2, 1);
}

static long
try_control_config(void)
{
    return tell(CONTROL_CONFIG, 0, 1);
}

static long
try_control_unknown(void)
{
    return tell(4711, 0, 0);
}

static long
try_smuggle_to_master(void)
{
    return tell(CONTROL_READY, 0, 2);
}

static long
try_smuggle_to_broker(void)
{
    struct request_hello q = {.head = {.type = MESSAGE_HELLO, .seq = 1},
                              .version = MESSAGES_VERSION};
    int fds[] = {HANDOFF_LISTENER, HANDOFF_CONTROL};
    int r = channel_send(HANDOFF_CHANNEL, &q, sizeof q, fds, 2);

    poll(NULL, 0, 2000);
    return r;
}

static long
try_nothing_to_master(void)
{
    long r = send(HANDOFF_CONTROL, "", 0, MSG_NOSIGNAL);

    poll(NULL, 0, 2000); /* time to be killed for it, here and below */
    return r;
}

static long
try_nothing_to_broker(void)
{
    long r = send(HANDOFF_CHANNEL, "", 0, MSG_NOSIGNAL);

    poll(NULL, 0, 2000);
    return r;
}

static long
try_shut_to_master(void)
{
    long r = shutdown(HANDOFF_CONTROL, SHUT_WR);

    poll(NULL, 0, 2000);
    return r;
}

static long
try_shut_to_broker(void)
{
    long r = shutdown(HANDOFF_CHANNEL, SHUT_WR);

    poll(NULL, 0, 2000);
    return r;
}

/* Nobody's to talk to any more; then it stays, holding the listener. */
static long
try_close_channels(void)
{
    return close(HANDOFF_CHANNEL) | close(HANDOFF_CONTROL);
}

static long
try_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static long
try_abstract(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "\0/tmp/.X11-unix/X0"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    return connect(fd, (struct sockaddr *)&to, sizeof to);
}

static long
try_fork(void)
{
    return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static long
try_namespace(void)
{
    return unshare(CLONE_NEWUSER);
}

static long
try_become_root(void)
{
    return setuid(0);
}

static long
try_deaf_listener(void)
{
    return shutdown(HANDOFF_LISTENER, SHUT_RDWR);
}

static long
try_blocking_listener(void)
{
    return fcntl(HANDOFF_LISTENER, F_SETFL, O_RDWR);
}

static long
try_connect_out(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};

    return sendto(HANDOFF_LISTENER, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&to, sizeof to);
}

static long
try_spin(void)
{
    for (volatile unsigned i = 0; config.number == 1; i++)
        ;
    return 0;
}

static long
try_ignore(void)
{
    while (config.number == 1)
        poll(NULL, 0, 60000);
    return 0;
}

static long
try_take_every_connection(void)
{
    struct pollfd p = {HANDOFF_LISTENER, POLLIN, 0};
    int n = 0;

    while (poll(&p, 1, 1500) > 0)
        while (accept4(HANDOFF_LISTENER, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) >= 0)
            n++;
    return n;
}

#define TRY(name) {#name, try_##name}
static const struct {
    const char *name;
    long (*attempt)(void);
} attempts[] = {
    TRY(proc_master), TRY(proc_self), TRY(kill_master), TRY(kill_everybody), TRY(kill_sibling),
    TRY(pidfd), TRY(ptrace), TRY(vm_read), TRY(type_in), TRY(exec_memory), TRY(timers),
    TRY(alarm), TRY(raise_limit), TRY(memory), TRY(epolls), TRY(descriptors_from_broker),
    TRY(log_flood), TRY(stderr_flood), TRY(forged_line), TRY(long_line), TRY(ready_again),
    TRY(scribble), TRY(control_kill), TRY(control_stop), TRY(control_channel),
    TRY(control_config), TRY(control_unknown), TRY(smuggle_to_master), TRY(smuggle_to_broker),
    TRY(deaf_listener), TRY(blocking_listener), TRY(connect_out), TRY(spin), TRY(ignore),
    TRY(take_every_connection), TRY(nothing_to_master), TRY(nothing_to_broker),
    TRY(shut_to_master), TRY(shut_to_broker), TRY(close_channels), TRY(socket), TRY(abstract),
    TRY(fork), TRY(namespace), TRY(become_root),
};

static void
enter(void)
{
    struct sandbox_worker s = {config.drop_uid, config.drop_gid, config.max_connections + 64};
    struct control_head fences = {CONTROL_FENCES, 0}, ready = {CONTROL_READY, 0};
    int r = sandbox_worker_enter(&s, &fences.value);

    if (r < 0)
        log_die("sandbox: %s", strerror(-r));
    channel_send(HANDOFF_CONTROL, &fences, sizeof fences, NULL, 0);
    channel_send(HANDOFF_CONTROL, &ready, sizeof ready, NULL, 0);
}

/* Like a worker that has nothing to do: until the master says so, or is gone. */
static void
idle(void)
{
    static struct channel_packet packet;
    struct control_head alive = {CONTROL_ALIVE, 0};
    struct pollfd p = {HANDOFF_CONTROL, POLLIN, 0};

    for (;;) {
        struct control_head head = {0};
        int r;

        channel_send(HANDOFF_CONTROL, &alive, sizeof alive, NULL, 0);
        poll(&p, 1, 1000);
        r = channel_receive(HANDOFF_CONTROL, &packet);
        if (r == 0 && packet.len >= sizeof head) {
            memcpy(&head, packet.bytes, sizeof head);
            channel_packet_done(&packet);
        }
        if ((r < 0 && r != -EAGAIN) || head.type == CONTROL_STOP)
            _exit(0);
    }
}

int
main(void)
{
    long r = -EINVAL;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    master = getppid();
    first_pid = getpid();
    if (handoff_read_config(HANDOFF_CONFIG, &config, sizeof config) < 0) {
        dprintf(STDERR_FILENO, "a prisoner build serves nobody: this is no server of a test\n");
        return 1;
    }
    log_init(config.number == 1 ? "prisoner.1" : "prisoner.2", HANDOFF_CONTROL, LOG_LEVEL_DEBUG);
    scoreboard_map(HANDOFF_SCOREBOARD, config.n_workers + 1, config.number - 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    enter();
    if (config.number != 1)
        idle();
    poll(NULL, 0, 200); /* let the others come up: they are who is attacked */
    for (size_t i = 0; i < N(attempts); i++)
        if (strcmp(config.base_path + 1, attempts[i].name) == 0) {
            errno = 0;
            r = attempts[i].attempt();
            log_event(LOG_LEVEL_INFO, "attempt", "name=%s result=%ld errno=%d",
                      attempts[i].name, r, errno);
        }
    idle();
}
