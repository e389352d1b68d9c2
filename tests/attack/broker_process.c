/* Starting the broker with handed-down descriptors, and looking at it through /proc. */
#include "policy/role.h"
#include "tests/attack/broker_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/control.h"
#include "common/handoff.h"
#include "common/messages.h"

/* Remembers how it was called; stop and remove take a moment so that calls overlap. */
static const char cli_script[] =
    "#!/bin/sh\n"
    "line=$(printf '%s|' \"$@\")\n" /* one write: calls overlap */
    "echo \"$line\" >>\"$ATTACK_CALLS\"\n"
    "case \"$1 $2\" in\n"
    "'runs list') echo '{\"runs\": []}' ;;\n"
    "'runs logs') echo a line; exec sleep 1000 ;;\n"
    "'runs stop' | 'runs remove') sleep 0.05; exit 3 ;;\n"
    "*) exit 0 ;;\n"
    "esac\n";

static const char *const run_files[] = {
    "summary.json", "result.json", "final.patch",          "reference.patch",
    "post-review.txt", "agent.log", "archive/dialog.jsonl", "evaluator.log",
};

uint64_t
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void
give_up(const char *what)
{
    printf("FAIL broker-start: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- the checkout --------------------------------------------------------------------------- */

static void
put(const char *dir, const char *name, const char *text, mode_t mode)
{
    char path[256];
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    for (char *slash = strchr(path + 5, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    if (text == NULL) {
        mkdir(path, 0755);
        return;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        give_up(path);
    close(fd);
}

static void
link_to(const char *dir, const char *name, const char *target)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (symlink(target, path) != 0)
        give_up(path);
}

/* One whole run, and one directory per trap; the names are what the tables ask for. */
static void
make_checkout(const char *dir)
{
    char path[256];

    put(dir, "cli", cli_script, 0755);
    put(dir, "state", NULL, 0);
    put(dir, "secret/summary.json", "{\"secret\": 1}", 0600);
    put(dir, "secret/agent/run/summary.json", "{\"secret\": 1}", 0600);
    for (size_t i = 0; i < sizeof run_files / sizeof run_files[0]; i++) {
        snprintf(path, sizeof path, "results/task/model/agent/run/%s", run_files[i]);
        put(dir, path, "{}", 0644);
    }
    put(dir, "results/task/model/agent/linked/archive", NULL, 0);
    link_to(dir, "results/task/model/agent/linked/summary.json", "../../../../../secret/summary.json");
    link_to(dir, "results/task/model/agent/linked/agent.log", "/proc/version");
    link_to(dir, "results/task/model/agent/linked/archive/dialog.jsonl", "../../run/agent.log");
    put(dir, "results/task/model/agent/fifo", NULL, 0);
    snprintf(path, sizeof path, "%s/results/task/model/agent/fifo/summary.json", dir);
    mkfifo(path, 0644);
    put(dir, "results/task/model/agent/folder/summary.json", NULL, 0);
    put(dir, "local/trap/sse", NULL, 0);
    link_to(dir, "local/trap/sse/link", "../../../secret/summary.json");
    link_to(dir, "local/trap/sse/etc", "/etc");
    link_to(dir, "local/away", "../secret");
    link_to(dir, "results/task/model/agent/away", "../../../../secret");
    link_to(dir, "results/linktask", "../secret");
    link_to(dir, "results/task/linkmodel", "/");
    link_to(dir, "results/task/model/agent/dev", "/dev");
}

/* --- the process ---------------------------------------------------------------------------- */

static int
make_config(const char *dir, const char *program, bool hosted, bool tokens)
{
    static struct broker_config c;
    char *slash;

    memset(&c, 0, sizeof c);
    c.version = HANDOFF_VERSION;
    c.n_workers = 4;
    c.hosted = hosted;
    c.terminal = 0;
    c.log_level = LOG_LEVEL_DEBUG;
    c.drop_uid = c.drop_gid = (uint32_t)-1;
    c.max_launches = 2;
    c.has_token = tokens;
    for (uint16_t n = BROKER_TOKEN_VIEW; tokens && n <= BROKER_TOKEN_EXPIRED; n++) {
        struct handoff_token *t = &c.tokens[c.n_tokens++];

        t->number = n;
        t->role = (uint8_t)(n == BROKER_TOKEN_EXPIRED ? ROLE_FULL
                                                      : ROLE_VIEW + n - BROKER_TOKEN_VIEW);
        t->expires_s = n == BROKER_TOKEN_EXPIRED;
        memset(t->digest, n, sizeof t->digest);
    }
    snprintf(c.cli, sizeof c.cli, "%s/cli", dir);
    snprintf(c.checkout, sizeof c.checkout, "%s", dir);
    snprintf(c.roots, sizeof c.roots, "%s/results", dir);
    snprintf(c.local_tasks, sizeof c.local_tasks, "%s/local", dir);
    snprintf(c.state_dir, sizeof c.state_dir, "%s/state", dir);
    snprintf(c.keeper, sizeof c.keeper, "%s", program);
    slash = strrchr(c.keeper, '/');
    if (slash != NULL)
        snprintf(slash + 1, sizeof c.keeper - (size_t)(slash + 1 - c.keeper),
                 "ssebench-webui-keeper");
    return handoff_seal("config", &c, sizeof c);
}

static void
become_broker(const char *program, const char *dir, int control, int config)
{
    char *argv[] = {(char *)"ssebench-webui-broker", (char *)"1", NULL};
    char calls[128], home[80];
    const char *sanitizer = getenv("ASAN_OPTIONS");
    char asan[256];
    char *envp[] = {(char *)"PATH=/usr/bin:/bin", calls, home, asan, NULL};
    int null = open("/dev/null", O_RDWR);

    snprintf(calls, sizeof calls, "ATTACK_CALLS=%s/calls", dir);
    snprintf(home, sizeof home, "HOME=%s", dir);
    /* Out of the way of the numbers that they get. */
    control = fcntl(control, F_DUPFD, 20);
    config = fcntl(config, F_DUPFD, 20);
    dup2(null, 0);
    dup2(null, 1);
    dup2(control, HANDOFF_CONTROL);
    dup2(config, HANDOFF_CONFIG);
    close_range(HANDOFF_CONFIG + 1, ~0u, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(asan, sizeof asan, "ASAN_OPTIONS=%s", sanitizer != NULL ? sanitizer : "");
    execve(program, argv, envp);
    _exit(127);
}

/* Everything that is opened once is opened now, so that later counts can be compared. */
static void
warm_up(struct broker_process *p)
{
    static struct channel_packet packet;
    struct request_runs_list list = {.head = {.type = MESSAGE_RUNS_LIST, .seq = 2}};
    struct request_results_scan scan = {.head = {.type = MESSAGE_RESULTS_SCAN, .seq = 3}};
    int fd = broker_process_worker(p, 1);

    channel_send(fd, &list, sizeof list, NULL, 0);
    channel_send(fd, &scan, sizeof scan, NULL, 0);
    for (int i = 0; i < 2; i++) {
        if (broker_process_receive(p, fd, &packet) != 0)
            give_up("warming up");
        channel_packet_done(&packet);
    }
    usleep(300 * 1000);
    close(fd);
    for (uint64_t end = now_ms() + 3000; now_ms() < end;) {
        unsigned n = process_fds(p->pid);

        usleep(100 * 1000);
        if (process_children(p->pid) == 0 && n == process_fds(p->pid))
            break;
    }
    p->base_fds = process_fds(p->pid);
}

static void
start(struct broker_process *p, const char *program, bool hosted, bool tokens)
{
    int ends[2], config;

    signal(SIGPIPE, SIG_IGN);
    *p = (struct broker_process){0};
    strcpy(p->dir, "/tmp/attack-broker-XXXXXX");
    if (mkdtemp(p->dir) == NULL || channel_pair(ends) != 0)
        give_up("preparing");
    chmod(p->dir, 0755);
    make_checkout(p->dir);
    config = make_config(p->dir, program, hosted, tokens);
    p->pid = fork();
    if (p->pid == 0)
        become_broker(program, p->dir, ends[1], config);
    close(ends[1]);
    close(config);
    p->control = ends[0];
    warm_up(p);
}

void
broker_process_start(struct broker_process *p, const char *program, bool hosted)
{
    start(p, program, hosted, false);
}

void
broker_process_start_with_tokens(struct broker_process *p, const char *program)
{
    start(p, program, false, true);
}

void
broker_process_stop(struct broker_process *p)
{
    char command[128];

    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    close(p->control);
    snprintf(command, sizeof command, "rm -rf '%s'", p->dir);
    if (system(command) != 0)
        printf("FAIL clean-up: %s\n", p->dir);
}

bool
broker_process_listen(struct broker_process *p)
{
    static struct channel_packet packet;
    struct control_head head;
    int r;

    while ((r = channel_receive(p->control, &packet)) == 0) {
        memcpy(&head, packet.bytes, sizeof head);
        if (head.type == CONTROL_KILL)
            p->killed = head.value;
        p->n_lines += head.type == CONTROL_LOG;
        if (head.type == CONTROL_LOG && getenv("ATTACK_VERBOSE") != NULL)
            fprintf(stderr, "%.*s\n", (int)(packet.len - sizeof head),
                    (char *)packet.bytes + sizeof head);
        channel_packet_done(&packet);
    }
    return r == -EAGAIN;
}

int
broker_process_channel(struct broker_process *p, uint32_t number)
{
    struct control_head head = {.type = CONTROL_CHANNEL, .value = number};
    int ends[2];

    if (channel_pair(ends) != 0)
        give_up("a channel");
    for (uint64_t end = now_ms() + PATIENCE_MS;
         channel_send(p->control, &head, sizeof head, &ends[1], 1) == -EAGAIN &&
         now_ms() < end;)
        usleep(1000);
    close(ends[1]);
    return ends[0];
}

int
broker_process_receive(struct broker_process *p, int fd, struct channel_packet *packet)
{
    uint64_t end = now_ms() + PATIENCE_MS;
    int r;

    for (;;) {
        struct pollfd fds[] = {{fd, POLLIN, 0}, {p->control, POLLIN, 0}};

        r = channel_receive(fd, packet);
        if (r != -EAGAIN)
            return r;
        if (!broker_process_listen(p))
            return -EPIPE;
        if (now_ms() > end)
            return -ETIMEDOUT;
        poll(fds, 2, 100);
    }
}

int
broker_process_worker(struct broker_process *p, uint32_t number)
{
    static struct channel_packet packet;
    struct request_hello hello = {.head = {.type = MESSAGE_HELLO, .seq = 1},
                                  .version = MESSAGES_VERSION};
    int fd = broker_process_channel(p, number);

    if (channel_send(fd, &hello, sizeof hello, NULL, 0) != 0 ||
        broker_process_receive(p, fd, &packet) != 0)
        give_up("HELLO");
    channel_packet_done(&packet);
    return fd;
}

/* --- the kernel's view ---------------------------------------------------------------------- */

unsigned
process_fds(pid_t pid)
{
    char path[64];
    struct dirent *e;
    unsigned n = 0;
    DIR *d;

    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    d = opendir(path);
    while (d != NULL && (e = readdir(d)) != NULL)
        n += e->d_name[0] != '.';
    if (d != NULL)
        closedir(d);
    return n;
}

unsigned
process_children(pid_t pid)
{
    char path[64], bytes[8192];
    unsigned n = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    f = fopen(path, "r");
    if (f == NULL)
        return 0;
    bytes[fread(bytes, 1, sizeof bytes - 1, f)] = '\0';
    fclose(f);
    for (char *at = bytes; *at != '\0'; at++)
        n += *at == ' ';
    return n;
}

unsigned long
process_rss_kib(pid_t pid)
{
    unsigned long size = 0, pages = 0;
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    f = fopen(path, "r");
    if (f == NULL || fscanf(f, "%lu %lu", &size, &pages) != 2)
        pages = 0;
    if (f != NULL)
        fclose(f);
    return pages * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}

const char *
broker_process_check(struct broker_process *p)
{
    static char text[128];
    unsigned fds = 0, children = 0;

    for (uint64_t end = now_ms() + PATIENCE_MS; now_ms() < end; usleep(2000)) {
        if (waitpid(p->pid, NULL, WNOHANG) == p->pid || !broker_process_listen(p))
            return "the broker ended";
        fds = process_fds(p->pid);
        children = process_children(p->pid);
        if (fds <= p->base_fds && children == 0)
            return NULL;
    }
    snprintf(text, sizeof text, "%u descriptors (idle %u), %u children", fds, p->base_fds,
             children);
    return text;
}

const char *
broker_process_judge(const struct broker_process *p, int fd)
{
    static char text[512];
    char link[64], target[256], results[96], state[96];
    int mode = fcntl(fd, F_GETFL) & O_ACCMODE, seals = fcntl(fd, F_GET_SEALS);
    struct stat st;
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, target, sizeof target - 1);
    target[n < 0 ? 0 : n] = '\0';
    snprintf(results, sizeof results, "%s/results/", p->dir);
    snprintf(state, sizeof state, "%s/state/", p->dir);
    snprintf(text, sizeof text, "handed out %s (mode %d)", target, mode);
    if (strncmp(target, "/memfd:", 7) == 0)
        return mode == O_RDONLY || (seals >= 0 && (seals & F_SEAL_WRITE)) ? NULL : text;
    if (mode != O_RDONLY || fstat(fd, &st) != 0)
        return text;
    if (strncmp(target, "pipe:", 5) == 0)
        return NULL;
    if (!S_ISREG(st.st_mode))
        return text;
    if (strncmp(target, state, strlen(state)) == 0)
        return NULL;
    if (strncmp(target, results, strlen(results)) != 0)
        return text;
    for (size_t i = 0; i < sizeof run_files / sizeof run_files[0]; i++) {
        size_t len = strlen(run_files[i]), have = strlen(target);

        if (have > len && strcmp(target + have - len, run_files[i]) == 0)
            return NULL;
    }
    return text;
}

/* runs list --json; runs stop|remove ID; runs logs [--follow] ID; runs endpoint ID PORT;
 * doctor.
 * Never: run, runs exec (no model is listed here, and the terminal is off). */
static bool
call_is_allowed(const char *line)
{
    static const struct {
        const char *begin, *end;
    } shapes[] = {
        {"runs|stop|", "|\n"},
        {"runs|remove|", "|\n"},
        {"runs|logs|", "|\n"},
        {"runs|logs|--follow|", "|\n"},
        {"runs|endpoint|", "|4263|\n"},
        {"runs|endpoint|", "|4096|\n"},
        {"runs|endpoint|", "|4098|\n"},
    };

    if (strncmp(line, "runs|list|", 10) == 0 || strncmp(line, "doctor|", 7) == 0)
        return true;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const char *id = line + strlen(shapes[i].begin);
        size_t len = 0;

        if (strncmp(line, shapes[i].begin, strlen(shapes[i].begin)) == 0)
            len = strcspn(id, "|");
        if (len >= 1 && len <= 64 && strcmp(id + len, shapes[i].end) == 0 && id[0] != '-' &&
            id[0] != '.' && strncmp(id, "latest|", 7) != 0 &&
            strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") >= len)
            return true;
    }
    return false;
}

const char *
broker_process_calls(const struct broker_process *p, unsigned *ret_n)
{
    static char line[1024];
    char path[96];
    bool fine = true;
    FILE *f;

    snprintf(path, sizeof path, "%s/calls", p->dir);
    f = fopen(path, "r");
    if (ret_n != NULL)
        *ret_n = 0;
    while (f != NULL && fine && fgets(line, sizeof line, f) != NULL) {
        fine = call_is_allowed(line);
        if (ret_n != NULL)
            ++*ret_n;
    }
    if (f != NULL)
        fclose(f);
    return fine ? NULL : line;
}
